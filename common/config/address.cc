#include "common/config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

constexpr std::size_t kHostBytesMax = 253;

absl::Status Refused(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected host:port, such as 127.0.0.1:7070 or [::1]:7070, found ", Quoted(text), " (", why, ")"));
}

bool IsHostName(absl::string_view host) {
  if (host.empty() || host.size() > kHostBytesMax || host.front() == '-' || host.front() == '.') return false;
  for (const char c : host) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') return false;
  }
  return true;
}

// Digits and dots only: meant as an IPv4 address.
bool LooksLikeIpv4(absl::string_view host) { return host.find_first_not_of("0123456789.") == absl::string_view::npos; }

}  // namespace

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Refused(text, "no port");
  Address address;
  const absl::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return Refused(text, "the port is not a number from 0 to 65535");
  }
  absl::string_view host = text.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) {
    if (!absl::ConsumeSuffix(&host, "]")) return Refused(text, "no closing bracket");
    address.host = std::string(host);
    in6_addr ipv6;
    if (inet_pton(AF_INET6, address.host.c_str(), &ipv6) != 1) return Refused(text, "not an IPv6 address");
    address.is_loopback = IN6_IS_ADDR_LOOPBACK(&ipv6);
    return address;
  }
  address.host = std::string(host);
  if (absl::StrContains(host, ":")) return Refused(text, "an IPv6 address stands in brackets");
  if (!IsHostName(host)) return Refused(text, "not a host name");
  in_addr ipv4;
  if (inet_pton(AF_INET, address.host.c_str(), &ipv4) == 1) {
    address.is_loopback = (ntohl(ipv4.s_addr) >> 24) == 127;
  } else if (LooksLikeIpv4(host)) {
    return Refused(text, "not an IPv4 address");
  } else {
    address.is_loopback = absl::EqualsIgnoreCase(host, "localhost");
  }
  return address;
}

}  // namespace autoloco
