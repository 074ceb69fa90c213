// The worker's connection to the server: sessions on a TCP connection of their own, pulls and pushes on others, so that
// bulk bytes never delay a heartbeat and a delta never waits behind a pull.
#ifndef AUTOLOCO_WORKER_CLIENT_SERVER_CLIENT_H_
#define AUTOLOCO_WORKER_CLIENT_SERVER_CLIENT_H_

#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/byte_ranges.h"
#include "common/base/mutex.h"
#include "common/base/parallel.h"
#include "common/rpc/channel.h"
#include "worker/client/bulk_connections.h"
#include "worker/client/push.h"
#include "worker/client/session.h"
#include "worker/client/transfer.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

struct ServerClientOptions {
  ChannelOptions channel;
  std::string worker;  // name
  absl::Duration control_timeout = absl::Seconds(10);
  absl::Duration stall_timeout = absl::Seconds(60);
  std::size_t streams = 1;  // of a push or a pull, at most, each on a connection of its own
};

// Called by the run loop's thread. Every connection is made anew after a call failed on the old one, so that the pauses
// between attempts are the machine's alone.
class ServerClient final : public ServerConnection {
 public:
  // `sink` is borrowed. INVALID_ARGUMENT, FAILED_PRECONDITION: the address (as MakeChannel).
  static absl::StatusOr<std::unique_ptr<ServerClient>> Create(const ServerClientOptions& options, EventSink* sink);
  // Cancels everything and waits for its end.
  ~ServerClient() override;

  void OpenSession(Ticket session, const Identity& identity, const std::optional<HeldDelta>& held) override;
  void CloseSession(Ticket session) override;
  void SendReady(Ticket session, const ReadyReport& report) override;
  void SendProgress(Ticket session, const ProgressReport& report) override;
  void SendGoodbye(Ticket session, const Identity& identity, const std::string& reason) override;
  void StartPull(const PullJob& job) override;
  void CancelPull(Ticket ticket) override;
  void StartPush(const PushJob& job) override;
  void AskPushStatus(Ticket ticket, const Identity& identity, Round round) override;
  void CancelPush(Ticket ticket) override;

 private:
  // A push that the server has a part of.
  struct PartlySent {
    Identity identity;
    Round round = 0;
    std::vector<ByteRange> missing;
  };

  ServerClient(const ServerClientOptions& options, EventSink* sink);
  Session* Find(Ticket session);
  std::shared_ptr<Transfer> NewTransfer(Ticket ticket);
  void CancelTransfer(Ticket ticket);
  void EndTransfer(Ticket ticket);
  void Pull(const PullJob& job, Transfer* transfer);
  void Push(const PushJob& job, Transfer* transfer);
  void Ask(const PushQuestion& question, Transfer* transfer);
  // What the server said it lacks of this push, once; empty: nothing, or it was not asked.
  std::vector<ByteRange> TakeMissing(const PushJob& job);

  const ServerClientOptions options_;
  EventSink* const sink_;
  std::unique_ptr<Session> session_;  // the one open, or the last one
  Ticket session_ticket_ = 0;
  BulkConnections pull_connections_;
  BulkConnections push_connections_;

  std::optional<PartlySent> partly_sent_;  // push_pool_'s thread only

  Mutex mutex_;
  std::map<Ticket, std::shared_ptr<Transfer>> transfers_ ABSL_GUARDED_BY(mutex_);

  WorkPool pull_pool_{1};
  WorkPool push_pool_{1};
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_SERVER_CLIENT_H_
