// host:port, as it stands in server.listen and worker.server.
#ifndef AUTOLOCO_COMMON_CONFIG_ADDRESS_H_
#define AUTOLOCO_COMMON_CONFIG_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

struct Address {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
  std::uint16_t port = 0;
  bool is_loopback = false;  // 127.0.0.0/8, ::1 or localhost; names are not resolved
};

// Takes "127.0.0.1:7070", "node-1.example:7070", "[::1]:7070". INVALID_ARGUMENT "expected host:port ..., found ...".
absl::StatusOr<Address> ParseAddress(absl::string_view text);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_ADDRESS_H_
