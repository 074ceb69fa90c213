// A TCP relay in the test's own process: a bad network between real programs. It stands on a loopback port and carries
// every connection to a target; tests make the link slow, long, deaf or broken while it carries.
//
//   worker -> relay.address() ==(delay, rate, cuts)==> server
#ifndef AUTOLOCO_TESTS_SUPPORT_RELAY_H_
#define AUTOLOCO_TESTS_SUPPORT_RELAY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "tests/support/relay_flow.h"

namespace autoloco::test {

struct RelayCounts {
  std::uint64_t opened = 0;                   // connections since the start
  std::uint64_t open = 0;                     // now
  std::uint64_t cut = 0;                      // by a rule, by CutAll or for idleness
  std::array<std::uint64_t, 2> carried = {};  // bytes handed on, by Direction
};

// Thread-safe. Settings hold for connections that are open and for those to come; bytes on their way keep the delay
// they were read with.
class Relay {
 public:
  // `target`: host:port, the host a numeric IPv4 address. It need not listen yet: a connection that finds nobody there
  // is cut.
  static absl::StatusOr<std::unique_ptr<Relay>> Start(const std::string& target);
  ~Relay();  // cuts all connections
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  const std::string& address() const { return address_; }  // host:port to connect to

  // Every byte takes this long, each way.
  void SetDelay(absl::Duration one_way);
  // Bytes a second of all connections together, shared fairly; 0: as fast as it goes.
  void SetRate(Direction direction, double bytes_per_second);
  // A connection on which nothing moved for this long is cut, as middleboxes do. InfiniteDuration: never.
  void SetIdleCut(absl::Duration limit);
  // Nothing moves, not even new connections; nothing is lost. Until Unblock.
  void Block();
  void Unblock();

  void CutAll();
  // Rules for one connection. The bytes count from the newest rule about their direction.
  // Once: the first connection that has carried `bytes` in this direction is cut exactly there.
  void CutAfter(Direction direction, std::uint64_t bytes);
  // Once: on the first connection that has carried `bytes` to the server, the server's next answer (an HTTP/2 HEADERS
  // frame, with which gRPC begins and ends one) is swallowed with all that follows, and the connection is cut.
  void LoseAnswerAfter(std::uint64_t bytes);

  RelayCounts counts();
  // False: `timeout` passed first.
  bool WaitForCuts(std::uint64_t cuts, absl::Duration timeout);

 private:
  struct Connection {
    Connection(int client_end, int server_end) : client(client_end), server(server_end) {}
    const int client;
    const int server;
    std::array<RelayFlow, 2> flows;
    Instant moved;  // last byte either way
  };
  struct CutRule {
    Direction direction;
    std::uint64_t bytes;
  };

  Relay(int listener, int wake, std::string address, std::string target);

  void Run();
  // One turn: everything that can move moves. The longest time until the next.
  absl::Duration Turn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: the connection is over.
  bool Carry(Connection* connection, absl::Duration* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Receive(Connection* connection, Direction direction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Deliver(Connection* connection, Direction direction, absl::Duration* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::size_t Room(Direction direction) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::size_t QueueLimit(Direction direction) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefillRates() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Close(const Connection& connection, bool cut) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForSockets(absl::Duration limit);
  void Wake();

  const int listener_;
  const int wake_;  // an eventfd: settings have changed
  const std::string address_;
  const std::string target_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  absl::Duration idle_limit_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::array<double, 2> rates_ ABSL_GUARDED_BY(mutex_) = {};
  std::array<double, 2> allowances_ ABSL_GUARDED_BY(mutex_) = {};  // bytes that may go out now
  Instant refilled_ ABSL_GUARDED_BY(mutex_);
  std::optional<CutRule> cut_rule_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::uint64_t> lose_answer_after_ ABSL_GUARDED_BY(mutex_);
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  RelayCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_RELAY_H_
