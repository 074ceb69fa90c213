#include "common/rpc/credentials.h"

#include <gtest/gtest.h>

namespace autoloco {
namespace {

TEST(CredentialsTest, PlaintextIsForLoopback) {
  for (const char* address : {"127.0.0.1:7070", "127.8.0.1:0", "localhost:7070", "[::1]:7070"}) {
    EXPECT_TRUE(ClientCredentials(address, false).ok()) << address;
    EXPECT_TRUE(ListenCredentials(address, false).ok()) << address;
  }
}

TEST(CredentialsTest, BeyondLoopbackItMustBeSaid) {
  for (const char* address : {"0.0.0.0:7070", "[::]:7070", "node-1.example:7070", "10.0.0.1:7070"}) {
    EXPECT_EQ(ClientCredentials(address, false).status().code(), absl::StatusCode::kFailedPrecondition) << address;
    EXPECT_EQ(ListenCredentials(address, false).status().code(), absl::StatusCode::kFailedPrecondition) << address;
    EXPECT_TRUE(ClientCredentials(address, true).ok()) << address;
    EXPECT_TRUE(ListenCredentials(address, true).ok()) << address;
  }
}

TEST(CredentialsTest, MalformedAddressesAreInvalid) {
  for (const char* address : {"", "host", "host:", ":7070", "host:70000", "host:x", "::1:7070"}) {
    EXPECT_EQ(ClientCredentials(address, true).status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_EQ(ListenCredentials(address, true).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace autoloco
