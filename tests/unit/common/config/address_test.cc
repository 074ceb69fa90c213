#include "common/config/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace autoloco {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, TakesHostsAndPorts) {
  struct Case {
    const char* text;
    const char* host;
    int port;
    bool is_loopback;
  };
  for (const Case& c : {
           Case{"127.0.0.1:7070", "127.0.0.1", 7070, true},
           Case{"127.8.9.10:0", "127.8.9.10", 0, true},
           Case{"localhost:65535", "localhost", 65535, true},
           Case{"LocalHost:1", "LocalHost", 1, true},
           Case{"[::1]:7070", "::1", 7070, true},
           Case{"[::]:7070", "::", 7070, false},
           Case{"[2001:db8::1]:80", "2001:db8::1", 80, false},
           Case{"0.0.0.0:7070", "0.0.0.0", 7070, false},
           Case{"10.127.0.1:7070", "10.127.0.1", 7070, false},
           Case{"node-1.example.org:7070", "node-1.example.org", 7070, false},
           Case{"localhost.example.org:7070", "localhost.example.org", 7070, false},
           Case{"parameter_server:7070", "parameter_server", 7070, false},
       }) {
    SCOPED_TRACE(c.text);
    const absl::StatusOr<Address> address = ParseAddress(c.text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
    EXPECT_EQ(address->is_loopback, c.is_loopback);
  }
}

TEST(AddressTest, RefusesWhatIsNoAddress) {
  struct Case {
    const char* text;
    const char* why;
  };
  for (const Case& c : {
           Case{"", "no port"},
           Case{"7070", "no port"},
           Case{"localhost", "no port"},
           Case{"localhost:", "the port is not a number"},
           Case{"localhost:http", "the port is not a number"},
           Case{"localhost:-1", "the port is not a number"},
           Case{"localhost:65536", "the port is not a number"},
           Case{"localhost:70 ", "the port is not a number"},
           Case{":7070", "not a host name"},
           Case{"*:7070", "not a host name"},
           Case{"-x:7070", "not a host name"},
           Case{"http://localhost:7070", "brackets"},
           Case{"::1:7070", "an IPv6 address stands in brackets"},
           Case{"[::1:7070", "no closing bracket"},
           Case{"[::g]:7070", "not an IPv6 address"},
           Case{"256.0.0.1:7070", "not an IPv4 address"},
           Case{"127.1:7070", "not an IPv4 address"},
       }) {
    SCOPED_TRACE(c.text);
    const absl::StatusOr<Address> address = ParseAddress(c.text);
    ASSERT_FALSE(address.ok());
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("expected host:port"));
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace autoloco
