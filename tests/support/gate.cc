#include "tests/support/gate.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco::test {
namespace {

// What a visitor says when it comes: nanoseconds of the monotonic clock.
struct Arrival {
  std::int64_t since_ns = 0;
  std::int64_t until_ns = 0;
};

Instant Now() { return MonotonicClock()->Now(); }

absl::Status Gone(absl::string_view who) { return absl::UnavailableError(absl::StrCat("gate: ", who, " is gone")); }

absl::Status SystemError(absl::string_view action) {
  return absl::InternalError(absl::StrCat("gate: ", action, ": ", std::strerror(errno)));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("gate: the path ", path, " is too long"));
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

// Waits until one of them has something to read, or has ended.
absl::Status WaitForAny(std::vector<pollfd>* descriptors, Instant deadline) {
  while (true) {
    const absl::Duration left = std::max(deadline - Now(), absl::ZeroDuration());
    const std::int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready = poll(descriptors->data(), descriptors->size(), static_cast<int>(milliseconds));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("gate: not everybody came in time");
    if (errno != EINTR) return SystemError("poll");
  }
}

bool Send(int descriptor, const void* bytes, std::size_t size) {
  return send(descriptor, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool Receive(int descriptor, void* bytes, std::size_t size) {
  ssize_t got = 0;
  do {
    got = recv(descriptor, bytes, size, MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(size);
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- visitor

absl::StatusOr<std::unique_ptr<Gate>> Gate::Connect(const std::string& path) {
  AUTOLOCO_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return SystemError("socket");
  std::unique_ptr<Gate> gate(new Gate(descriptor));
  if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return Gone("the keeper");
  return gate;
}

Gate::Gate(int descriptor) : descriptor_(descriptor), since_(Now()) {}

Gate::~Gate() { close(descriptor_); }

absl::Status Gate::Pass() {
  const Arrival arrival{.since_ns = absl::ToUnixNanos(since_), .until_ns = absl::ToUnixNanos(Now())};
  char open = 0;
  if (!Send(descriptor_, &arrival, sizeof(arrival)) || !Receive(descriptor_, &open, 1)) return Gone("the keeper");
  since_ = Now();
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------- keeper

absl::StatusOr<std::unique_ptr<GateKeeper>> GateKeeper::Listen(const std::string& path) {
  AUTOLOCO_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return SystemError("socket");
  std::unique_ptr<GateKeeper> keeper(new GateKeeper(listener));
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return SystemError("bind");
  if (listen(listener, SOMAXCONN) != 0) return SystemError("listen");
  return keeper;
}

GateKeeper::~GateKeeper() {
  for (const int visitor : visitors_) close(visitor);
  close(listener_);
}

absl::Status GateKeeper::Admit(std::size_t count, absl::Duration timeout) {
  const Instant deadline = Now() + timeout;
  std::vector<pollfd> listener = {{listener_, POLLIN, 0}};
  while (visitors_.size() < count) {
    AUTOLOCO_RETURN_IF_ERROR(WaitForAny(&listener, deadline));
    const int visitor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (visitor < 0) return SystemError("accept");
    visitors_.push_back(visitor);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GateSpan>> GateKeeper::Gather(absl::Duration timeout) {
  const Instant deadline = Now() + timeout;
  std::vector<GateSpan> spans(visitors_.size());
  std::vector<pollfd> missing;  // by visitor; -1 once it has come
  for (const int visitor : visitors_) missing.push_back({visitor, POLLIN, 0});
  for (std::size_t came = 0; came < spans.size();) {
    AUTOLOCO_RETURN_IF_ERROR(WaitForAny(&missing, deadline));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (missing[i].fd < 0 || missing[i].revents == 0) continue;
      Arrival arrival;
      if (!Receive(missing[i].fd, &arrival, sizeof(arrival))) return Gone("a visitor");
      spans[i] = {.since = absl::FromUnixNanos(arrival.since_ns), .until = absl::FromUnixNanos(arrival.until_ns)};
      missing[i].fd = -1;
      ++came;
    }
  }
  return spans;
}

absl::Status GateKeeper::Open() {
  for (const int visitor : visitors_) {
    const char open = 1;
    if (!Send(visitor, &open, 1)) return Gone("a visitor");
  }
  return absl::OkStatus();
}

}  // namespace autoloco::test
