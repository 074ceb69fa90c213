// The network between the workers and the server. Sessions are streams as gRPC's: ordered, either whole or broken; what
// is on its way in one that breaks is lost. Calls are independent of each other: each may be delayed, overtaken, lost,
// doubled, cut after any byte, corrupted, or answered into the void. A partition holds back everything of one link.
#ifndef AUTOLOCO_TESTS_SIM_NETWORK_H_
#define AUTOLOCO_TESTS_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/sim/faults.h"
#include "tests/sim/messages.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

namespace autoloco::sim {

// The server's end. Not called while no server runs.
class ServerPort {
 public:
  virtual ~ServerPort() = default;
  virtual void OnMessage(StreamId stream, const ToServer& message) = 0;
  virtual void OnStreamEnded(StreamId stream) = 0;
  virtual void OnCall(CallId call, const Request& request) = 0;
  // Bytes of an admitted push move: at most once a second.
  virtual void OnMoving(CallId call) = 0;
  // The end of an admitted payload; a broken one is shorter than its header said.
  virtual void OnPayload(CallId call, const std::string& payload, bool broken) = 0;
  virtual void OnCallAborted(CallId call) = 0;
};

// A worker's end. Not called after Detach.
class ClientPort {
 public:
  virtual ~ClientPort() = default;
  virtual void OnMessage(StreamId stream, const ToWorker& message) = 0;
  virtual void OnStreamEnded(StreamId stream, const absl::Status& status) = 0;
  virtual void OnReply(CallId call, const Reply& reply) = 0;
  // The call failed in the network.
  virtual void OnCallFailed(CallId call, const absl::Status& status) = 0;
};

class Network {
 public:
  using Client = std::size_t;

  Network(World* world, Faults* faults, Trace* trace, std::uint64_t seed)
      : world_(world), faults_(faults), trace_(trace), dice_(seed, 102) {}

  // The pointers are borrowed until Detach.
  Client Attach(ClientPort* port, std::string name);
  void AttachServer(ServerPort* port);

  // A process ended: what it sent still arrives. `silently`: its machine is gone and no connection tells of it.
  void Detach(Client client, bool silently);
  void DetachServer(bool silently);

  // ------------------------------------------------------------------------------------------------ worker's side
  StreamId OpenStream(Client client, const server::HelloReceived& hello);
  void Send(StreamId stream, const ToServer& message);
  void CancelStream(StreamId stream);
  CallId StartCall(Client client, Request request);
  void CancelCall(CallId call);

  // ------------------------------------------------------------------------------------------------ server's side
  void Send(StreamId stream, const ToWorker& message);
  // Ends the stream after what was sent before.
  void EndStream(StreamId stream, const absl::Status& status);
  // The payload of a push may come: OnPayload or OnCallAborted follows.
  void Admit(CallId call);
  // Ends the call.
  void Answer(CallId call, const Reply& reply);

  // ------------------------------------------------------------------------------------------------ faults
  // Nothing passes between the client and the server for `duration`. `reset`: its connections break besides.
  void Partition(Client client, absl::Duration duration, bool reset);
  void CutStreams(Client client);
  // Ends all partitions.
  void Heal();

 private:
  struct Link {
    ClientPort* port = nullptr;  // null: the process is gone
    std::string name;
    absl::Time blocked_until = absl::InfinitePast();
  };
  struct Stream {
    Client client = 0;
    bool client_open = true;
    bool server_open = true;  // as far as the network knows; the server's process may never have heard of it
    bool heard = false;       // the server has had its Hello
    bool cut = false;
    absl::Time to_server_free = absl::InfinitePast();  // earliest arrival of the next message
    absl::Time to_client_free = absl::InfinitePast();
  };
  struct Call {
    Client client = 0;
    Request request;
    bool client_open = true;
    bool server_open = false;
    bool duplicate = false;  // its reply goes nowhere
    std::string name;
  };

  absl::Time Arrival(Client client);
  absl::Time StreamArrival(Client client, absl::Time* free);
  void DeliverToServer(StreamId id, const ToServer& message);
  void EndAtServer(StreamId id, absl::Time time);
  void EndAtClient(StreamId id, absl::Time time, const absl::Status& status);
  void ArriveCall(CallId id);
  void FailAtClient(CallId id, absl::Time time, const absl::Status& status);
  void AbortAtServer(CallId id, absl::Time time);
  void FinishPayload(CallId id, absl::Duration duration);
  void AnswerPull(CallId id, PullReply reply);
  void ReplyAt(CallId id, absl::Time time, const Reply& reply);
  absl::Duration TransferTime();
  const std::string& NameOf(Client client) const { return links_[client].name; }

  World* const world_;
  Faults* const faults_;
  Trace* const trace_;
  Dice dice_;
  std::vector<Link> links_;
  ServerPort* server_ = nullptr;
  std::uint64_t next_id_ = 1;
  std::map<StreamId, Stream> streams_;
  std::map<CallId, Call> calls_;
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_NETWORK_H_
