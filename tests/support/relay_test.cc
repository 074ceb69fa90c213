#include "tests/support/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace autoloco::test {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// A frame head as HTTP/2 has it, and a body of zeros.
std::string Frame(char type, std::size_t body_bytes) {
  std::string frame(9, '\0');
  frame[0] = static_cast<char>(body_bytes >> 16);
  frame[1] = static_cast<char>(body_bytes >> 8);
  frame[2] = static_cast<char>(body_bytes);
  frame[3] = type;
  return frame + std::string(body_bytes, '\0');
}

TEST(Http2FramesTest, FindsHeadersHoweverTheBytesAreCut) {
  const std::string before = Frame(4, 18) + Frame(8, 4) + Frame(0, 70000);
  const std::string all = before + Frame(1, 5) + Frame(0, 3);
  EXPECT_EQ(Http2Frames().FindHeaders(all), before.size());
  for (const std::size_t piece : {1, 2, 8, 9, 10, 1000}) {
    Http2Frames frames;
    std::size_t found_after = 0;
    for (std::size_t at = 0; at < all.size() && found_after == 0; at += piece) {
      if (frames.FindHeaders(all.substr(at, piece)).has_value()) found_after = at + piece;
    }
    EXPECT_GE(found_after, before.size() + 9) << piece;  // the frame's head is whole
    EXPECT_LT(found_after, before.size() + 9 + piece) << piece;
  }
  EXPECT_FALSE(Http2Frames().FindHeaders(before).has_value());
}

// A socket of the test; blocks, gives up after kPatience.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {
    const timeval limit = {absl::ToInt64Seconds(kPatience), 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~Socket() { close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  static std::unique_ptr<Socket> Connect(const std::string& address) {
    auto connected = std::make_unique<Socket>(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    peer.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(connect(connected->descriptor_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
    return connected;
  }

  bool Send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }
  // Up to `count` bytes: fewer when the stream ends or breaks first.
  std::string Receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t got = 0;
    while (got < count) {
      const ssize_t more = recv(descriptor_, bytes.data() + got, count - got, 0);
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }
  void EndSending() { shutdown(descriptor_, SHUT_WR); }
  void EndBoth() { shutdown(descriptor_, SHUT_RDWR); }

 private:
  const int descriptor_;
};

// Sends back whatever it gets; counts what it got.
class EchoServer {
 public:
  EchoServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~EchoServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& one : echoes_) one.join();
    close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  void Accept() {
    for (int got = accept(listener_, nullptr, nullptr); got >= 0; got = accept(listener_, nullptr, nullptr)) {
      echoes_.emplace_back([got] {
        Socket socket(got);
        for (std::string bytes = socket.Receive(1); !bytes.empty(); bytes = socket.Receive(1)) {
          if (!socket.Send(bytes)) return;
        }
      });
    }
  }

  const int listener_;
  std::string address_;
  std::thread acceptor_;
  std::vector<std::thread> echoes_;
};

class RelayTest : public ::testing::Test {
 protected:
  std::unique_ptr<Socket> Connect() const { return Socket::Connect(relay_->address()); }
  static absl::Duration Since(Instant begin) { return MonotonicClock()->Now() - begin; }

  EchoServer server_;
  const std::unique_ptr<Relay> relay_ = Relay::Start(server_.address()).value();
};

TEST_F(RelayTest, CarriesBothWaysAndEndsInOrder) {
  const auto socket = Connect();
  const std::string text(100000, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(socket->Send(text));
    socket->EndSending();
  });
  EXPECT_EQ(socket->Receive(text.size() + 1), text);  // and the end behind it
  sender.join();
  const RelayCounts counts = relay_->counts();
  EXPECT_EQ(counts.opened, 1u);
  EXPECT_EQ(counts.carried[0], text.size());
  EXPECT_EQ(counts.carried[1], text.size());
  EXPECT_EQ(counts.cut, 0u);
}

TEST_F(RelayTest, DelaysEveryByteEachWay) {
  relay_->SetDelay(absl::Milliseconds(60));
  const auto socket = Connect();
  const Instant begin = MonotonicClock()->Now();
  EXPECT_TRUE(socket->Send("hello"));
  EXPECT_EQ(socket->Receive(5), "hello");
  EXPECT_GE(Since(begin), absl::Milliseconds(120));
}

TEST_F(RelayTest, ARateIsSharedByAllConnections) {
  relay_->SetRate(Direction::kToServer, 100000);
  const auto first = Connect();
  const auto second = Connect();
  const Instant begin = MonotonicClock()->Now();
  const std::string text(15000, 'x');
  EXPECT_TRUE(first->Send(text));
  EXPECT_TRUE(second->Send(text));
  EXPECT_EQ(second->Receive(text.size()), text);
  EXPECT_EQ(first->Receive(text.size()), text);
  EXPECT_GE(Since(begin), absl::Milliseconds(250));  // 30,000 bytes less the burst
}

TEST_F(RelayTest, CutsOneConnectionExactlyWhereToldAndOnce) {
  const auto quiet = Connect();
  EXPECT_TRUE(quiet->Send("a"));
  EXPECT_EQ(quiet->Receive(1), "a");
  relay_->CutAfter(Direction::kToServer, 1000);
  const auto busy = Connect();
  busy->Send(std::string(5000, 'x'));
  EXPECT_LE(busy->Receive(5000).size(), 1000u);
  EXPECT_TRUE(relay_->WaitForCuts(1, kPatience));
  EXPECT_EQ(relay_->counts().carried[0], 1001u);
  EXPECT_TRUE(quiet->Send(std::string(2000, 'y')));
  EXPECT_EQ(quiet->Receive(2000), std::string(2000, 'y'));
  EXPECT_EQ(relay_->counts().cut, 1u);
}

TEST_F(RelayTest, LosesTheAnswerThatFollowsTheBytes) {
  relay_->LoseAnswerAfter(200);
  const auto socket = Connect();
  const std::string small = Frame(1, 50);  // an answer before the bytes are there
  EXPECT_TRUE(socket->Send(small));
  EXPECT_EQ(socket->Receive(small.size()), small);
  const std::string data = Frame(0, 300);
  EXPECT_TRUE(socket->Send(data));
  EXPECT_EQ(socket->Receive(data.size()), data);
  EXPECT_TRUE(socket->Send(small));
  EXPECT_LT(socket->Receive(small.size()).size(), 9u);  // not even the frame's head
  EXPECT_TRUE(relay_->WaitForCuts(1, kPatience));
  EXPECT_EQ(relay_->counts().carried[0], 2 * small.size() + data.size());
}

TEST_F(RelayTest, BlockedNothingMovesAndNothingIsLost) {
  const auto socket = Connect();
  EXPECT_TRUE(socket->Send("a"));
  EXPECT_EQ(socket->Receive(1), "a");
  relay_->Block();
  EXPECT_TRUE(socket->Send("held"));
  const auto late = Connect();
  EXPECT_TRUE(late->Send("late"));
  EXPECT_EQ(relay_->counts().carried[0], 1u);
  EXPECT_EQ(relay_->counts().opened, 1u);
  relay_->Unblock();
  EXPECT_EQ(socket->Receive(4), "held");
  EXPECT_EQ(late->Receive(4), "late");
}

TEST_F(RelayTest, CutsTheIdleOnly) {
  relay_->SetIdleCut(absl::Milliseconds(200));
  const auto idle = Connect();
  const Instant begin = MonotonicClock()->Now();
  EXPECT_EQ(idle->Receive(1), "");
  EXPECT_GE(Since(begin), absl::Milliseconds(150));
  EXPECT_LT(Since(begin), kPatience);
  EXPECT_EQ(relay_->counts().cut, 1u);
}

TEST_F(RelayTest, CutAllLeavesTheDoorOpen) {
  const auto before = Connect();
  EXPECT_TRUE(before->Send("a"));
  EXPECT_EQ(before->Receive(1), "a");
  relay_->CutAll();
  EXPECT_EQ(before->Receive(1), "");
  const auto after = Connect();
  EXPECT_TRUE(after->Send("b"));
  EXPECT_EQ(after->Receive(1), "b");
  EXPECT_EQ(relay_->counts().open, 1u);
}

TEST(RelayStartTest, NobodyBehindItAndNoAddress) {
  EXPECT_EQ(Relay::Start("localhost").status().code(), absl::StatusCode::kInvalidArgument);
  std::string gone;
  { gone = EchoServer().address(); }
  const auto relay = Relay::Start(gone).value();
  const auto socket = Socket::Connect(relay->address());
  EXPECT_EQ(socket->Receive(1), "");
}

}  // namespace
}  // namespace autoloco::test
