#include "server/ctl/admin_client.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"

namespace autoloco::server {
namespace {

// gRPC's own messages can span lines.
std::string OneLine(absl::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line;
}

absl::Status Explain(const grpc::Status& failure, const std::string& address, absl::Duration timeout) {
  const absl::Status status = FromGrpcStatus(failure);
  const std::string message = OneLine(status.message());
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return absl::UnavailableError(absl::StrCat("cannot reach the server at ", address, ": ", message));
    case absl::StatusCode::kDeadlineExceeded:
      return absl::UnavailableError(
          absl::StrCat("the server at ", address, " did not answer within ", absl::FormatDuration(timeout)));
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(absl::StrCat("what listens at ", address, " is not an autoloco-server"));
    default: return absl::Status(status.code(), absl::StrCat("the server at ", address, " refused: ", message));
  }
}

}  // namespace

absl::StatusOr<AdminClient> AdminClient::Open(const std::string& address, bool insecure) {
  ChannelOptions options;
  options.target = address;
  options.insecure = insecure;
  AUTOLOCO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(options));
  return AdminClient(address, v1::Admin::NewStub(channel));
}

AdminClient::AdminClient(std::string address, std::unique_ptr<v1::Admin::Stub> stub)
    : address_(std::move(address)), stub_(std::move(stub)) {}

absl::StatusOr<v1::Status> AdminClient::GetStatus(absl::Duration timeout) const {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  v1::Status reply;
  const grpc::Status status = stub_->GetStatus(&context, v1::GetStatusRequest(), &reply);
  if (!status.ok()) return Explain(status, address_, timeout);
  return reply;
}

absl::Status AdminClient::Evict(const std::string& worker, bool readmit, absl::Duration timeout) const {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  v1::EvictRequest request;
  request.set_worker(worker);
  request.set_readmit(readmit);
  v1::EvictReply reply;
  const grpc::Status status = stub_->Evict(&context, request, &reply);
  return status.ok() ? absl::OkStatus() : Explain(status, address_, timeout);
}

absl::StatusOr<v1::Rounds> AdminClient::GetRounds(absl::Duration timeout) const {
  v1::Rounds all;
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(timeout));
    v1::GetRoundsRequest request;
    request.set_first_round(static_cast<std::uint64_t>(all.rounds_size()));
    v1::Rounds reply;
    const grpc::Status status = stub_->GetRounds(&context, request, &reply);
    if (!status.ok()) return Explain(status, address_, timeout);
    all.mutable_rounds()->MergeFrom(reply.rounds());
    all.set_rounds_committed(reply.rounds_committed());
    if (reply.rounds_size() == 0) return all;
  }
}

}  // namespace autoloco::server
