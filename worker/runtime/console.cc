#include "worker/runtime/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/runtime/console_format.h"

namespace autoloco::worker {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(250);
constexpr absl::string_view kWipe = "\r\x1b[K";

void WriteToTerminal(absl::string_view text) {
  // A terminal that takes no more is not worth an error: the next line tries again.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

int TerminalColumns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

void LogProgress(const ProgressNumbers& numbers) {
  Log line(LogLevel::kInfo, "progress");
  line.Add("phase", WorkerPhaseName(numbers.phase))
      .Add("round", numbers.round)
      .Add("step", numbers.steps_done)
      .Add("steps", numbers.steps_target)
      .Add("inner_step", numbers.inner_steps_done)
      .Add("loss", numbers.loss)
      .Add("tokens_per_second", numbers.tokens_per_second)
      .Add("compute_share", numbers.compute_share);
  if (numbers.bits_per_value > 0) line.Add("bits_per_value", numbers.bits_per_value);
  if (numbers.snr_db) line.Add("snr_db", *numbers.snr_db);
  if (numbers.time_left) line.Add("left", ShortDuration(*numbers.time_left));
}

bool StandardErrorIsTerminal() { return isatty(STDERR_FILENO) == 1; }

Console::Console(const ConsoleOptions& options, const ProgressBoard* board) : options_(options), board_(board) {
  if (options_.terminal) {
    SetLogHook(this);
    Draw();
  }
  thread_ = std::thread(&Console::Run, this);
}

Console::~Console() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
  if (options_.terminal) SetLogHook(nullptr);
  MutexLock lock(&draw_mutex_);
  if (!line_.empty()) WriteToTerminal(kWipe);
}

// The lock is held over the log line in between, so that no Draw comes into it.
void Console::BeforeLine() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  draw_mutex_.Lock();
  if (!line_.empty()) WriteToTerminal(kWipe);
}

void Console::AfterLine() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  WriteToTerminal(line_);
  draw_mutex_.Unlock();
}

void Console::Run() {
  const absl::Duration pause = options_.terminal ? kRedraw : options_.pause;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!stopping_) wake_.WaitFor(&mutex_, pause);
      if (stopping_) return;
    }
    if (options_.terminal) {
      Draw();
    } else {
      LogProgress(board_->Read());
    }
  }
}

void Console::Draw() {
  std::string line = LiveLine(board_->Read(), TerminalColumns() - 1);
  MutexLock lock(&draw_mutex_);
  line_ = std::move(line);
  WriteToTerminal(absl::StrCat(kWipe, line_));
}

}  // namespace autoloco::worker
