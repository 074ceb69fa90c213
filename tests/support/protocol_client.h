// A worker without training: speaks the protocol by hand, well or badly, for end-to-end tests.
#ifndef AUTOLOCO_TESTS_SUPPORT_PROTOCOL_CLIENT_H_
#define AUTOLOCO_TESTS_SUPPORT_PROTOCOL_CLIENT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoloco/v1/admin.grpc.pb.h"
#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/layout.h"

namespace autoloco::test {

// Longest time that any call of a test may take.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(60);

// An open Session stream. Not thread-safe; blocks.
class RawSession {
 public:
  explicit RawSession(v1::ParameterServer::Stub* stub);
  // Breaks the stream if it is still open.
  ~RawSession();

  void Send(const v1::WorkerMessage& message) { stream_->Write(message); }
  // The next message of the server; nothing when the stream is over.
  std::optional<v1::ServerMessage> Receive();
  // Skips messages until one of this kind comes; nothing when the stream is over.
  std::optional<v1::ServerMessage> ReceiveKind(v1::ServerMessage::KindCase kind);
  // The server's last word; skips what it sent before.
  absl::Status Finish();
  // As a process that dies: no half-close, the stream is broken.
  void Break() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::ServerMessage>> stream_;
  bool finished_ = false;
};

struct PulledParameters {
  v1::PullHeader header;
  std::vector<float> values;
};

// Stubs on two connections, control and bulk, to one server. Not thread-safe; blocks.
class ProtocolClient {
 public:
  // `address`: host:port. Aborts the test program when that is malformed.
  explicit ProtocolClient(const std::string& address);

  v1::ParameterServer::Stub* control() { return control_.get(); }
  v1::ParameterServer::Stub* bulk() { return bulk_.get(); }
  const std::shared_ptr<grpc::Channel>& control_channel() const { return control_channel_; }

  absl::StatusOr<v1::Status> GetStatus();
  // Asks again until the version is at least `version`; DEADLINE_EXCEEDED with the last status after kCallTimeout.
  absl::StatusOr<v1::Status> WaitForVersion(std::uint64_t version);
  // The current version, or the live view. `value_count`: of the layout.
  absl::StatusOr<PulledParameters> Pull(const v1::Identity& identity, std::uint64_t value_count);
  // Sends the messages as they are, half-closes, and waits for the answer.
  absl::StatusOr<v1::PushReply> Push(const std::vector<v1::PushRequest>& messages);
  absl::StatusOr<v1::PushStatusReply> PushStatus(const v1::PushStatusRequest& request);

 private:
  std::shared_ptr<grpc::Channel> control_channel_;
  std::unique_ptr<v1::ParameterServer::Stub> control_;
  std::unique_ptr<v1::ParameterServer::Stub> bulk_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// The messages of a correct push of `payload`: header and chunks. Tests spoil them.
std::vector<v1::PushRequest> MakePush(const v1::PushHeader& header, const std::string& payload);

// A worker that has joined: session, identity, the parameters it pulled, its assignment.
class RawWorker {
 public:
  // Hello, Welcome, Pull, Ready. `layout`: the run's. `claimed`: what Ready says instead, if anything.
  static absl::StatusOr<std::unique_ptr<RawWorker>> Join(const std::string& address, const std::string& name,
                                                         const Layout& layout,
                                                         const std::optional<Layout>& claimed = std::nullopt);

  ProtocolClient& client() { return client_; }
  RawSession& session() { return session_; }
  const v1::Identity& identity() const { return identity_; }
  const PulledParameters& parameters() const { return parameters_; }
  const v1::RunConfig& run() const { return run_; }

  // Waits for the next assignment on the session.
  absl::StatusOr<v1::Assignment> WaitForAssignment();
  // Header of a push of `payload` for this assignment, with a plausible report.
  v1::PushHeader Header(const v1::Assignment& assignment, const std::string& payload) const;
  // A correct push of `delta` (flat, layout order).
  absl::StatusOr<v1::PushReply> PushDelta(const v1::Assignment& assignment, std::span<const float> delta);
  void SayGoodbye();

 private:
  RawWorker(const std::string& address, const Layout& layout)
      : layout_(layout), client_(address), session_(client_.control()) {}

  const Layout layout_;
  ProtocolClient client_;
  RawSession session_;
  v1::Identity identity_;
  v1::RunConfig run_;
  PulledParameters parameters_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_PROTOCOL_CLIENT_H_
