#include "common/rpc/channel.h"

#include <gtest/gtest.h>

namespace autoloco {
namespace {

TEST(ChannelTest, RefusesAddressesThatCredentialsRefuse) {
  ChannelOptions options;
  options.target = "example.com:1";
  EXPECT_EQ(MakeChannel(options).status().code(), absl::StatusCode::kFailedPrecondition);
  options.target = "nonsense";
  EXPECT_EQ(MakeChannel(options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ChannelTest, ConnectsOnTheFirstCallOnly) {
  ChannelOptions options;
  options.target = "127.0.0.1:1";
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_EQ((*channel)->GetState(false), GRPC_CHANNEL_IDLE);
}

TEST(ChannelTest, ListeningBeyondLoopbackMustBeSaid) {
  grpc::ServerBuilder builder;
  int port = 0;
  ListenOptions options;
  options.listen = "0.0.0.0:0";
  options.max_chunk_bytes = 1 << 20;
  options.max_streams = 10;
  EXPECT_EQ(ConfigureListen(options, &port, &builder).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace autoloco
