// The control channel: one bidirectional stream, on gRPC's callback API. Translates and forwards, decides nothing.
#ifndef AUTOLOCO_WORKER_CLIENT_SESSION_H_
#define AUTOLOCO_WORKER_CLIENT_SESSION_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "worker/core/types.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// SessionEnded is its last event. Send, SendLast and Cancel are thread-safe. The owner destroys it, never a thread of
// gRPC: with the last channel goes gRPC's queue of callbacks, which cannot be taken down from a callback.
//
// At most one read and one write are under way. Messages from outside wait in a short queue while a write is; a hold
// keeps the stream from ending under them. The queue is bounded, since a waiting Progress without an evaluation gives
// way to the next one.
class Session final : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::ServerMessage> {
 public:
  Session(Ticket ticket, std::string worker, EventSink* sink);
  // Cancels the stream if it is open, and returns when its last event has been posted.
  ~Session() override;

  // Opens the stream on `channel` and says Hello. Called once.
  void Start(const std::shared_ptr<grpc::Channel>& channel, const Identity& identity,
             const std::optional<HeldDelta>& held);
  // Sends after what was sent before; ignored when the stream is ending.
  void Send(v1::WorkerMessage message);
  // Sends and closes this side of the stream.
  void SendLast(v1::WorkerMessage message);
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  void Handle(const v1::ServerMessage& message);
  void HandleWelcome(const v1::Welcome& welcome);
  void StartNextWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream breaks: no more writes, and the hold is let go.
  void StopWriting();

  const Ticket ticket_;
  const std::string worker_;
  EventSink* const sink_;
  grpc::ClientContext context_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
  v1::ServerMessage incoming_;  // of the read under way
  v1::WorkerMessage outgoing_;  // of the write under way

  Mutex mutex_;
  CondVar ended_;
  std::deque<v1::WorkerMessage> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;        // our hold on the stream
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;     // this side closes after the queue
  bool open_ ABSL_GUARDED_BY(mutex_) = false;        // from Start until the last event
  absl::Status own_status_ ABSL_GUARDED_BY(mutex_);  // why this side cancelled
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_SESSION_H_
