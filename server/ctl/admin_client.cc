#include "server/ctl/admin_client.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "autoloco/v1/admin.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace autoloco::server {
namespace {

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
}

// gRPC's own messages can span lines.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

absl::Status ToStatus(const grpc::Status& status, const std::string& address, absl::Duration timeout) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return absl::UnavailableError(
          absl::StrCat("cannot reach the server at ", address, ": ", OneLine(status.error_message())));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::UnavailableError(absl::StrCat("the server at ", address, " did not answer within ",
                                                 absl::FormatDuration(timeout)));
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError(absl::StrCat("what listens at ", address, " is not an autoloco-server"));
    default:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat("the server at ", address, " refused: ", OneLine(status.error_message())));
  }
}

}  // namespace

absl::StatusOr<v1::Status> FetchStatus(const std::string& address, absl::Duration timeout) {
  const std::unique_ptr<v1::Admin::Stub> stub = v1::Admin::NewStub(OpenChannel(address));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  v1::Status reply;
  const grpc::Status status = stub->GetStatus(&context, v1::GetStatusRequest(), &reply);
  if (!status.ok()) return ToStatus(status, address, timeout);
  return reply;
}

}  // namespace autoloco::server
