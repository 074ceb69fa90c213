#include "tests/support/protocol_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/codec_proto.h"
#include "common/rpc/layout_proto.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status.h"

namespace autoloco::test {
namespace {

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  ChannelOptions options;
  options.target = address;
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options);
  AUTOLOCO_CHECK(channel.ok());
  return *channel;
}

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace

RawSession::RawSession(v1::ParameterServer::Stub* stub) {
  SetDeadline(&context_);
  stream_ = stub->Session(&context_);
}

RawSession::~RawSession() {
  if (finished_) return;
  context_.TryCancel();
  Finish().IgnoreError();
}

std::optional<v1::ServerMessage> RawSession::Receive() {
  v1::ServerMessage message;
  if (!stream_->Read(&message)) return std::nullopt;
  return message;
}

std::optional<v1::ServerMessage> RawSession::ReceiveKind(v1::ServerMessage::KindCase kind) {
  std::optional<v1::ServerMessage> message = Receive();
  while (message.has_value() && message->kind_case() != kind) message = Receive();
  return message;
}

absl::Status RawSession::Finish() {
  while (Receive().has_value()) {
  }
  finished_ = true;
  return FromGrpcStatus(stream_->Finish());
}

ProtocolClient::ProtocolClient(const std::string& address)
    : control_channel_(Connect(address)),
      control_(v1::ParameterServer::NewStub(control_channel_)),
      bulk_(v1::ParameterServer::NewStub(Connect(address))),
      admin_(v1::Admin::NewStub(control_channel_)) {}

absl::StatusOr<v1::Status> ProtocolClient::GetStatus() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::Status status;
  AUTOLOCO_RETURN_IF_ERROR(FromGrpcStatus(admin_->GetStatus(&context, v1::GetStatusRequest(), &status)));
  return status;
}

absl::StatusOr<v1::Status> ProtocolClient::WaitForVersion(std::uint64_t version) {
  const Instant deadline = MonotonicClock()->Now() + kCallTimeout;
  while (true) {
    AUTOLOCO_ASSIGN_OR_RETURN(v1::Status status, GetStatus());
    if (status.version() >= version) return status;
    if (MonotonicClock()->Now() >= deadline) return absl::DeadlineExceededError(status.ShortDebugString());
  }
}

absl::StatusOr<PulledParameters> ProtocolClient::Pull(const v1::Identity& identity, std::uint64_t value_count) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PullRequest request;
  *request.mutable_identity() = identity;
  const std::unique_ptr<grpc::ClientReader<v1::PullReply>> reader = bulk_->Pull(&context, request);
  PulledParameters pulled;
  std::string payload;
  v1::PullReply reply;
  while (reader->Read(&reply)) {
    if (reply.has_header()) pulled.header = reply.header();
    if (reply.has_chunk() && reply.chunk().offset() != payload.size()) context.TryCancel();
    if (reply.has_chunk()) payload += reply.chunk().data();
    if (reply.has_live_block()) payload += reply.live_block().data();  // together they are one payload
  }
  AUTOLOCO_RETURN_IF_ERROR(FromGrpcStatus(reader->Finish()));
  pulled.values.resize(value_count);
  AUTOLOCO_RETURN_IF_ERROR(DecodeVector(Bytes(payload), Codec::kFp32, pulled.values));
  return pulled;
}

absl::StatusOr<v1::PushReply> ProtocolClient::Push(const std::vector<v1::PushRequest>& messages) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PushReply reply;
  const std::unique_ptr<grpc::ClientWriter<v1::PushRequest>> writer = bulk_->Push(&context, &reply);
  for (const v1::PushRequest& message : messages) {
    if (!writer->Write(message)) break;
  }
  writer->WritesDone();
  AUTOLOCO_RETURN_IF_ERROR(FromGrpcStatus(writer->Finish()));
  return reply;
}

absl::StatusOr<v1::PushStatusReply> ProtocolClient::PushStatus(const v1::PushStatusRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::PushStatusReply reply;
  AUTOLOCO_RETURN_IF_ERROR(FromGrpcStatus(control_->PushStatus(&context, request, &reply)));
  return reply;
}

std::vector<v1::PushRequest> MakePush(const v1::PushHeader& header, const std::string& payload) {
  std::vector<v1::PushRequest> messages(1);
  *messages[0].mutable_header() = header;
  for (std::size_t offset = 0; offset < payload.size(); offset += kChunkBytes) {
    v1::Chunk* chunk = messages.emplace_back().mutable_chunk();
    chunk->set_offset(offset);
    chunk->set_data(payload.substr(offset, kChunkBytes));
  }
  return messages;
}

absl::StatusOr<std::unique_ptr<RawWorker>> RawWorker::Join(const std::string& address, const std::string& name,
                                                           const Layout& layout, const std::optional<Layout>& claimed) {
  std::unique_ptr<RawWorker> worker(new RawWorker(address, layout));
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_protocol_version(kProtocolVersion);
  hello.mutable_hello()->mutable_identity()->set_worker(name);
  worker->session_.Send(hello);
  const std::optional<v1::ServerMessage> welcome = worker->session_.ReceiveKind(v1::ServerMessage::kWelcome);
  if (!welcome.has_value()) return worker->session_.Finish();
  worker->identity_.set_run_id(welcome->welcome().run_id());
  worker->identity_.set_worker(name);
  worker->identity_.set_incarnation(welcome->welcome().incarnation());
  worker->run_ = welcome->welcome().config();
  AUTOLOCO_ASSIGN_OR_RETURN(worker->parameters_, worker->client_.Pull(worker->identity_, layout.value_count()));
  v1::WorkerMessage ready;
  *ready.mutable_ready()->mutable_identity() = worker->identity_;
  *ready.mutable_ready()->mutable_layout() = ToProto(claimed.value_or(layout));
  ready.mutable_ready()->set_version(worker->parameters_.header.version());
  ready.mutable_ready()->mutable_data()->set_samples(1000);
  ready.mutable_ready()->mutable_data()->set_hash(1);
  worker->session_.Send(ready);
  return worker;
}

absl::StatusOr<v1::Assignment> RawWorker::WaitForAssignment() {
  const std::optional<v1::ServerMessage> message = session_.ReceiveKind(v1::ServerMessage::kAssignment);
  if (!message.has_value()) return session_.Finish();
  return message->assignment();
}

v1::PushHeader RawWorker::Header(const v1::Assignment& assignment, const std::string& payload) const {
  v1::PushHeader header;
  *header.mutable_identity() = identity_;
  header.set_round(assignment.round());
  header.set_payload_digest(Digest128(Bytes(payload)));
  header.set_payload_bytes(payload.size());
  header.set_layout_hash(layout_.hash());
  header.set_codec(run_.codec().delta());
  header.mutable_report()->set_inner_steps(assignment.inner_steps());
  header.mutable_report()->set_tokens(assignment.inner_steps());
  header.mutable_report()->set_loss_mean(5);
  return header;
}

absl::StatusOr<v1::PushReply> RawWorker::PushDelta(const v1::Assignment& assignment, std::span<const float> delta) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string payload, EncodeVector(delta, ToCoding(run_.codec()), nullptr));
  return client_.Push(MakePush(Header(assignment, payload), payload));
}

void RawWorker::SayGoodbye() {
  v1::WorkerMessage goodbye;
  *goodbye.mutable_goodbye()->mutable_identity() = identity_;
  goodbye.mutable_goodbye()->set_reason("done");
  session_.Send(goodbye);
}

}  // namespace autoloco::test
