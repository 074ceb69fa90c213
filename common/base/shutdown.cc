#include "common/base/shutdown.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/clock.h"

namespace autoloco {
namespace {

// Supervisors often signal the process and then its group: the same signal again this soon is the same request.
constexpr absl::Duration kSameRequest = absl::Seconds(1);

// The self-pipe: the handler writes the signal's number, the thread reads it; 0 asks the thread to end. Opened once and
// never closed, so that a handler that is still running can never write into another file.
struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe OpenPipe() {
  int ends[2];
  AUTOLOCO_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  return {ends[0], ends[1]};
}

const Pipe& ThePipe() {
  static const Pipe pipe = OpenPipe();
  return pipe;
}

std::atomic<int> handler_fd{-1};
std::atomic<bool> installed{false};
struct sigaction former_term;
struct sigaction former_int;

void OnSignal(int signal) {
  const int saved_errno = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe would need thousands of unread signals; the write then waits, and nothing is lost.
  [[maybe_unused]] const ssize_t written = write(handler_fd.load(), &byte, 1);
  errno = saved_errno;
}

}  // namespace

ShutdownSignals::ShutdownSignals(ShutdownListener* listener) : listener_(listener) {
  AUTOLOCO_CHECK(!installed.exchange(true));
  handler_fd.store(ThePipe().write_end);
  thread_ = std::thread(&ShutdownSignals::Run, this);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  AUTOLOCO_CHECK(sigaction(SIGTERM, &action, &former_term) == 0);
  AUTOLOCO_CHECK(sigaction(SIGINT, &action, &former_int) == 0);
}

ShutdownSignals::~ShutdownSignals() {
  sigaction(SIGTERM, &former_term, nullptr);
  sigaction(SIGINT, &former_int, nullptr);
  const unsigned char stop = 0;
  AUTOLOCO_CHECK(write(ThePipe().write_end, &stop, 1) == 1);
  thread_.join();
  installed.store(false);
}

void ShutdownSignals::Run() {
  int count = 0;
  int counted = 0;
  Instant counted_at = absl::InfinitePast();
  while (true) {
    unsigned char signal = 0;
    const ssize_t got = read(ThePipe().read_end, &signal, 1);
    if (got < 0 && errno == EINTR) continue;
    AUTOLOCO_CHECK(got == 1);
    if (signal == 0) return;
    const Instant now = MonotonicClock()->Now();
    if (signal == counted && now - counted_at < kSameRequest) continue;
    counted = signal;
    counted_at = now;
    listener_->OnShutdownSignal(signal, ++count);
  }
}

}  // namespace autoloco
