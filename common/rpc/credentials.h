// Who may talk to whom unprotected: plaintext is for loopback, or for whoever says `insecure` explicitly.
#ifndef AUTOLOCO_COMMON_RPC_CREDENTIALS_H_
#define AUTOLOCO_COMMON_RPC_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

// Whether "host:port" names this machine only: localhost, 127.0.0.0/8 or [::1]. False for anything that is not
// host:port.
bool IsLoopback(absl::string_view host_port);

// INVALID_ARGUMENT unless `host_port` is host:port with a port of 0 to 65535; IPv6 hosts stand in brackets.
absl::Status CheckHostPort(absl::string_view host_port);

// INVALID_ARGUMENT for a malformed address; FAILED_PRECONDITION when the address is not loopback and `insecure` is false.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(absl::string_view host_port, bool insecure);
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(absl::string_view host_port, bool insecure);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_CREDENTIALS_H_
