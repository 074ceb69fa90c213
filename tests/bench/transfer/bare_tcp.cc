#include "tests/bench/transfer/bare_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "common/base/clock.h"

namespace autoloco::bench {
namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

// What a client says first.
struct Order {
  std::uint64_t is_push = 0;
  std::uint64_t bytes = 0;
};

bool WriteAll(int socket, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool ReadAll(int socket, char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t got = recv(socket, bytes, std::min(count, kPieceBytes), 0);
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

void SendAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void Serve(int socket) {
  SendAtOnce(socket);
  std::vector<char> buffer;
  Order order;
  while (ReadAll(socket, reinterpret_cast<char*>(&order), sizeof(order))) {
    buffer.resize(order.bytes);
    const bool ok = order.is_push != 0 ? ReadAll(socket, buffer.data(), buffer.size()) && WriteAll(socket, "k", 1)
                                       : WriteAll(socket, buffer.data(), buffer.size());
    if (!ok) break;
  }
  close(socket);
}

int Connect(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  int port = 0;
  AUTOLOCO_CHECK(absl::SimpleAtoi(address.substr(colon + 1), &port));
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  AUTOLOCO_CHECK(inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) == 1);
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  AUTOLOCO_CHECK(connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0);
  SendAtOnce(descriptor);
  return descriptor;
}

class BareTcpArm final : public Arm {
 public:
  BareTcpArm(const std::string& address, std::size_t streams, const std::string* payload) : payload_(payload) {
    for (std::size_t i = 0; i < streams; ++i) sockets_.push_back(Connect(address));
    received_.resize(payload->size());
  }
  ~BareTcpArm() override {
    for (const int socket : sockets_) close(socket);
  }

  absl::StatusOr<Moved> Push() override { return OnAll(true); }
  absl::StatusOr<Moved> Pull() override { return OnAll(false); }

 private:
  absl::StatusOr<Moved> OnAll(bool push) {
    std::vector<char> done(sockets_.size());
    const Instant begin = MonotonicClock()->Now();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      threads.emplace_back([&, i] { done[i] = Run(i, push) ? 1 : 0; });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = absl::ToDoubleSeconds(MonotonicClock()->Now() - begin);
    for (const char one : done) {
      if (one == 0) return absl::UnavailableError("tcp: the connection broke");
    }
    return Moved{payload_->size(), seconds};
  }

  bool Run(std::size_t index, bool push) {
    const int socket = sockets_[index];
    const auto [first, count] = PartOf(payload_->size(), index, sockets_.size());
    const Order order{push ? 1U : 0U, count};
    char answer = 0;
    if (!WriteAll(socket, reinterpret_cast<const char*>(&order), sizeof(order))) return false;
    if (!push) return ReadAll(socket, received_.data() + first, count);
    return WriteAll(socket, payload_->data() + first, count) && ReadAll(socket, &answer, 1);
  }

  const std::string* const payload_;
  std::string received_;
  std::vector<int> sockets_;
};

}  // namespace

void ServeBareTcp() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  AUTOLOCO_CHECK(bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  AUTOLOCO_CHECK(listen(listener, SOMAXCONN) == 0);
  AUTOLOCO_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::fprintf(stderr, "serving listen=127.0.0.1:%d\n", ntohs(address.sin_port));
  while (true) {
    const int connection = accept(listener, nullptr, nullptr);
    if (connection >= 0) std::thread(Serve, connection).detach();
  }
}

std::unique_ptr<Arm> MakeBareTcpArm(const std::string& address, std::size_t streams, const std::string* payload) {
  return std::make_unique<BareTcpArm>(address, streams, payload);
}

}  // namespace autoloco::bench
