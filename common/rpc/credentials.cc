#include "common/rpc/credentials.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/address.h"

namespace autoloco {
namespace {

absl::Status CheckPlaintext(absl::string_view host_port, bool insecure) {
  AUTOLOCO_ASSIGN_OR_RETURN(const Address address, ParseAddress(host_port));
  if (insecure || address.is_loopback) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(host_port,
                   " is not a loopback address and the connection is not encrypted: set insecure = true to "
                   "use it all the same, on a network that you trust"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(absl::string_view host_port,
                                                                            bool insecure) {
  AUTOLOCO_RETURN_IF_ERROR(CheckPlaintext(host_port, insecure));
  return grpc::InsecureChannelCredentials();
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(absl::string_view host_port, bool insecure) {
  AUTOLOCO_RETURN_IF_ERROR(CheckPlaintext(host_port, insecure));
  return grpc::InsecureServerCredentials();
}

}  // namespace autoloco
