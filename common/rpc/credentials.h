// Who may talk to whom unprotected: plaintext is for loopback, or for whoever says `insecure` explicitly.
#ifndef AUTOLOCO_COMMON_RPC_CREDENTIALS_H_
#define AUTOLOCO_COMMON_RPC_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

// INVALID_ARGUMENT for a malformed host:port; FAILED_PRECONDITION when it is not loopback and `insecure` is false.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(absl::string_view host_port, bool insecure);
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(absl::string_view host_port, bool insecure);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_CREDENTIALS_H_
