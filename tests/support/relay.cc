#include "tests/support/relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace autoloco::test {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kQuantumBytes = 16 * 1024;            // of one connection in one turn, where the rate is limited
constexpr std::size_t kQueueBytes = 64 * 1024;              // read ahead, beside what the delay holds
constexpr std::size_t kDelayedBytesMax = 16 * 1024 * 1024;  // of one direction of one connection
constexpr int kSocketBufferBytes = 128 * 1024;              // else the kernel hides megabytes from the rate
constexpr absl::Duration kBurst = absl::Milliseconds(20);

constexpr std::size_t Index(Direction direction) { return static_cast<std::size_t>(direction); }

absl::Status SystemError(absl::string_view what) {
  return absl::InternalError(absl::StrCat("relay: ", what, ": ", std::strerror(errno)));
}

// "127.0.0.1:7070"; family AF_UNSPEC when it is no such address.
sockaddr_in ToSocketAddress(const std::string& address) {
  sockaddr_in result = {};
  const std::size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) return result;
  if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &result.sin_addr) != 1) return result;
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  return result;
}

void Prepare(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

void LimitBuffers(int socket) {
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kSocketBufferBytes, sizeof(kSocketBufferBytes));
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes, sizeof(kSocketBufferBytes));
}

int NewSocket() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0) LimitBuffers(descriptor);
  return descriptor;
}

// With a reset: the peer sees a broken connection, not an orderly end.
void CloseHard(int socket) {
  const linger now = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(socket);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Relay>> Relay::Start(const std::string& target) {
  if (ToSocketAddress(target).sin_family != AF_INET) {
    return absl::InvalidArgumentError(absl::StrCat("relay: expected a numeric host:port, found ", target));
  }
  const int listener = NewSocket();
  if (listener < 0) return SystemError("socket");
  sockaddr_in address = ToSocketAddress("127.0.0.1:0");
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    close(listener);
    return SystemError("listen");
  }
  Prepare(listener);
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    close(listener);
    return SystemError("eventfd");
  }
  return std::unique_ptr<Relay>(new Relay(listener, wake, absl::StrCat("127.0.0.1:", ntohs(address.sin_port)), target));
}

Relay::Relay(int listener, int wake, std::string address, std::string target)
    : listener_(listener), wake_(wake), address_(std::move(address)), target_(std::move(target)) {
  thread_ = std::thread([this] { Run(); });
}

Relay::~Relay() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
  MutexLock lock(&mutex_);
  for (const Connection& connection : connections_) Close(connection, /*cut=*/true);
  close(listener_);
  close(wake_);
}

// ---------------------------------------------------------------------------------------------------- settings

void Relay::SetDelay(absl::Duration one_way) {
  MutexLock lock(&mutex_);
  delay_ = one_way;
}

void Relay::SetRate(Direction direction, double bytes_per_second) {
  {
    MutexLock lock(&mutex_);
    RefillRates();
    rates_[Index(direction)] = bytes_per_second;
    allowances_[Index(direction)] = 0;
  }
  Wake();
}

void Relay::SetIdleCut(absl::Duration limit) {
  {
    MutexLock lock(&mutex_);
    idle_limit_ = limit;
  }
  Wake();
}

void Relay::Block() {
  MutexLock lock(&mutex_);
  blocked_ = true;
}

void Relay::Unblock() {
  {
    MutexLock lock(&mutex_);
    blocked_ = false;
  }
  Wake();
}

void Relay::CutAll() {
  {
    MutexLock lock(&mutex_);
    for (const Connection& connection : connections_) Close(connection, /*cut=*/true);
    connections_.clear();
  }
  Wake();
}

void Relay::CutAfter(Direction direction, std::uint64_t bytes) {
  MutexLock lock(&mutex_);
  cut_rule_ = CutRule{direction, bytes};
  for (Connection& connection : connections_) {
    connection.flows[Index(direction)].mark = connection.flows[Index(direction)].carried;
  }
}

void Relay::LoseAnswerAfter(std::uint64_t bytes) {
  MutexLock lock(&mutex_);
  lose_answer_after_ = bytes;
  for (Connection& connection : connections_) {
    RelayFlow& up = connection.flows[Index(Direction::kToServer)];
    up.mark = up.carried;
  }
}

RelayCounts Relay::counts() {
  MutexLock lock(&mutex_);
  RelayCounts counts = counts_;
  counts.open = connections_.size();
  return counts;
}

bool Relay::WaitForCuts(std::uint64_t cuts, absl::Duration timeout) {
  const Instant deadline = MonotonicClock()->Now() + timeout;
  MutexLock lock(&mutex_);
  while (counts_.cut < cuts) {
    const absl::Duration left = deadline - MonotonicClock()->Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, left);
  }
  return true;
}

void Relay::Wake() {
  const std::uint64_t one = 1;
  if (write(wake_, &one, sizeof(one)) < 0) return;  // full: it is awake
}

// ---------------------------------------------------------------------------------------------------- the thread

void Relay::Run() {
  while (true) {
    absl::Duration next;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      next = Turn();
    }
    WaitForSockets(next);
  }
}

// A socket that CutAll closes meanwhile is at worst a turn for nothing: every read and write is done under the mutex,
// on sockets that are still there.
void Relay::WaitForSockets(absl::Duration limit) {
  std::vector<pollfd> sockets = {{wake_, POLLIN, 0}};
  {
    MutexLock lock(&mutex_);
    if (!blocked_) sockets.push_back({listener_, POLLIN, 0});
    for (const Connection& connection : connections_) {
      if (blocked_) break;
      for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
        const RelayFlow& flow = connection.flows[Index(direction)];
        const bool up = direction == Direction::kToServer;
        if (!flow.source_ended && flow.queued() < QueueLimit(direction)) {
          sockets.push_back({up ? connection.client : connection.server, POLLIN, 0});
        }
        if (flow.blocked) sockets.push_back({up ? connection.server : connection.client, POLLOUT, 0});
      }
    }
  }
  const double milliseconds = std::ceil(absl::ToDoubleMilliseconds(std::min(limit, absl::Seconds(3600))));
  poll(sockets.data(), sockets.size(), static_cast<int>(milliseconds));
  std::uint64_t ignored = 0;
  if (sockets[0].revents != 0 && read(wake_, &ignored, sizeof(ignored)) < 0) return;
}

absl::Duration Relay::Turn() {
  if (blocked_) return absl::InfiniteDuration();
  RefillRates();
  Accept();
  absl::Duration next = absl::InfiniteDuration();
  for (auto it = connections_.begin(); it != connections_.end();) {
    it = Carry(&*it, &next) ? std::next(it) : connections_.erase(it);
  }
  // Fair shares of a limited rate: whoever was first is last in the next turn.
  if (connections_.size() > 1) connections_.splice(connections_.end(), connections_, connections_.begin());
  return next;
}

void Relay::RefillRates() {
  const Instant now = MonotonicClock()->Now();
  const double seconds = absl::ToDoubleSeconds(now - refilled_);
  refilled_ = now;
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    const double most = std::max<double>(rates_[i] * absl::ToDoubleSeconds(kBurst), 1);
    allowances_[i] = std::min(allowances_[i] + rates_[i] * seconds, most);
  }
}

void Relay::Accept() {
  while (true) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    ++counts_.opened;
    const int server = NewSocket();
    const sockaddr_in address = ToSocketAddress(target_);
    if (server < 0 || connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      if (server >= 0) close(server);
      CloseHard(client);
      continue;
    }
    LimitBuffers(client);
    Prepare(client);
    Prepare(server);
    connections_.emplace_back(client, server);
    connections_.back().moved = MonotonicClock()->Now();
  }
}

bool Relay::Carry(Connection* connection, absl::Duration* next) {
  bool over = true;
  for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
    if (!Receive(connection, direction) || !Deliver(connection, direction, next)) {
      Close(*connection, /*cut=*/true);
      return false;
    }
    over = over && connection->flows[Index(direction)].end_passed_on;
  }
  if (over) {
    Close(*connection, /*cut=*/false);
    return false;
  }
  if (idle_limit_ == absl::InfiniteDuration()) return true;
  const absl::Duration left = connection->moved + idle_limit_ - MonotonicClock()->Now();
  if (left <= absl::ZeroDuration()) {
    Close(*connection, /*cut=*/true);
    return false;
  }
  *next = std::min(*next, left);
  return true;
}

std::size_t Relay::QueueLimit(Direction direction) const {
  const double rate = rates_[Index(direction)];
  if (delay_ <= absl::ZeroDuration()) return kQueueBytes;
  if (rate <= 0) return kDelayedBytesMax;
  return kQueueBytes + static_cast<std::size_t>(rate * absl::ToDoubleSeconds(delay_));
}

std::size_t Relay::Room(Direction direction) const {
  if (rates_[Index(direction)] <= 0) return kReadBytes;
  return std::min(kQuantumBytes, static_cast<std::size_t>(std::max(0.0, allowances_[Index(direction)])));
}

// False: broken, or an answer that is to be lost.
bool Relay::Receive(Connection* connection, Direction direction) {
  RelayFlow& flow = connection->flows[Index(direction)];
  const int from = direction == Direction::kToServer ? connection->client : connection->server;
  std::string buffer;
  while (!flow.source_ended && flow.queued() < QueueLimit(direction)) {
    buffer.resize(kReadBytes);
    const ssize_t got = recv(from, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got < 0) return false;
    if (got == 0) {
      flow.source_ended = true;
      return true;
    }
    buffer.resize(static_cast<std::size_t>(got));
    connection->moved = MonotonicClock()->Now();
    if (direction == Direction::kToClient) {
      const RelayFlow& up = connection->flows[Index(Direction::kToServer)];
      const bool is_headers = flow.frames.FindHeaders(buffer).has_value();
      if (is_headers && lose_answer_after_.has_value() && up.carried - up.mark >= *lose_answer_after_) {
        lose_answer_after_.reset();
        return false;
      }
    }
    flow.Add(std::move(buffer), connection->moved + delay_);
    buffer.clear();
  }
  return true;
}

// False: broken, or to be cut here.
bool Relay::Deliver(Connection* connection, Direction direction, absl::Duration* next) {
  RelayFlow& flow = connection->flows[Index(direction)];
  const int to = direction == Direction::kToServer ? connection->server : connection->client;
  const bool has_rule = cut_rule_.has_value() && cut_rule_->direction == direction;
  flow.blocked = false;
  while (!flow.empty()) {
    const absl::Duration wait = flow.due() - MonotonicClock()->Now();
    if (wait > absl::ZeroDuration()) {
      *next = std::min(*next, wait);
      return true;
    }
    std::size_t count = std::min(flow.front().size(), Room(direction));
    if (count == 0) {  // the rate is used up
      *next = std::min(*next, absl::Milliseconds(2));
      return true;
    }
    if (has_rule) count = std::min<std::size_t>(count, flow.mark + cut_rule_->bytes - flow.carried);
    const ssize_t sent = send(to, flow.front().data(), count, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      flow.blocked = true;
      return true;
    }
    if (sent < 0) return false;
    flow.Remove(static_cast<std::size_t>(sent));
    connection->moved = MonotonicClock()->Now();
    counts_.carried[Index(direction)] += static_cast<std::uint64_t>(sent);
    allowances_[Index(direction)] -= static_cast<double>(sent);
    if (has_rule && flow.carried - flow.mark >= cut_rule_->bytes) {
      cut_rule_.reset();
      return false;
    }
    if (rates_[Index(direction)] > 0) {
      *next = absl::ZeroDuration();  // the others' turn
      return true;
    }
  }
  if (flow.source_ended && !flow.end_passed_on) {
    shutdown(to, SHUT_WR);
    flow.end_passed_on = true;
  }
  return true;
}

void Relay::Close(const Connection& connection, bool cut) {
  if (cut) {
    CloseHard(connection.client);
    CloseHard(connection.server);
    ++counts_.cut;
    changed_.NotifyAll();
  } else {
    close(connection.client);
    close(connection.server);
  }
}

}  // namespace autoloco::test
