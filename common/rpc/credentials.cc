#include "common/rpc/credentials.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco {
namespace {

struct HostPort {
  absl::string_view host;
  absl::string_view port;
};

HostPort Split(absl::string_view host_port) {
  const std::size_t colon = host_port.rfind(':');
  if (colon == absl::string_view::npos) return {};
  return {host_port.substr(0, colon), host_port.substr(colon + 1)};
}

bool IsLoopbackV4(absl::string_view host) {
  if (!absl::StartsWith(host, "127.")) return false;
  int dots = 0;
  for (const char c : host) {
    if (c == '.') ++dots;
    if (c != '.' && (c < '0' || c > '9')) return false;
  }
  return dots == 3;
}

absl::Status CheckPlaintext(absl::string_view host_port, bool insecure) {
  AUTOLOCO_RETURN_IF_ERROR(CheckHostPort(host_port));
  if (insecure || IsLoopback(host_port)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(host_port, " is not a loopback address and the connection is not encrypted: set insecure = true to "
                              "use it all the same, on a network that you trust"));
}

}  // namespace

bool IsLoopback(absl::string_view host_port) {
  const HostPort split = Split(host_port);
  return split.host == "localhost" || split.host == "[::1]" || IsLoopbackV4(split.host);
}

absl::Status CheckHostPort(absl::string_view host_port) {
  const HostPort split = Split(host_port);
  std::uint32_t port = 0;
  const bool digits = !split.port.empty() && split.port.find_first_not_of("0123456789") == absl::string_view::npos;
  const bool bracketed = absl::StartsWith(split.host, "[") && absl::EndsWith(split.host, "]");
  if (split.host.empty() || !digits || !absl::SimpleAtoi(split.port, &port) || port > 65535 ||
      (!bracketed && absl::StrContains(split.host, ":"))) {
    return absl::InvalidArgumentError(absl::StrCat("address '", host_port, "': want host:port"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentials(absl::string_view host_port,
                                                                            bool insecure) {
  AUTOLOCO_RETURN_IF_ERROR(CheckPlaintext(host_port, insecure));
  return grpc::InsecureChannelCredentials();
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ListenCredentials(absl::string_view host_port,
                                                                           bool insecure) {
  AUTOLOCO_RETURN_IF_ERROR(CheckPlaintext(host_port, insecure));
  return grpc::InsecureServerCredentials();
}

}  // namespace autoloco
