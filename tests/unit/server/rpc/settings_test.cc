#include "server/rpc/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/config/load.h"
#include "common/rpc/protocol.h"

namespace autoloco::server {
namespace {

v1::ServerConfig Load(std::vector<std::string> flags) {
  v1::ServerConfig config;
  flags.insert(flags.end(), {"--state-dir", "/tmp/unused"});
  const Outcome outcome = LoadServerConfig(flags, {}, &config);
  EXPECT_FALSE(outcome.exits) << outcome.err;
  return config;
}

Layout SomeLayout() { return *Layout::Make({{"t", {100000}}}); }

TEST(SettingsTest, TheCoreGetsTheRun) {
  const v1::ServerConfig config = Load({"--total-inner-steps", "23", "--interval.steps", "5", "--batch-size", "3",
                                        "--min-workers", "2", "--lease-seconds", "12", "--checkpoint-every-rounds", "4",
                                        "--evaluation.windows", "0", "--sharing", "own"});
  const CoreConfig core = ToCoreConfig(config, "run-1", SomeLayout());
  EXPECT_EQ(core.run_id, "run-1");
  EXPECT_EQ(core.protocol_version, kProtocolVersion);
  EXPECT_EQ(core.total_inner_steps, 23);
  EXPECT_EQ(core.interval_steps, 5);
  EXPECT_EQ(core.batch_size, 3);
  EXPECT_EQ(core.min_workers, 2);
  EXPECT_EQ(core.lease, absl::Seconds(12));
  EXPECT_EQ(core.checkpoint_every_rounds, 4);
  EXPECT_FALSE(core.evaluate);
  EXPECT_FALSE(core.shared_data);
  EXPECT_EQ(core.max_payload_bytes, MaxPayloadBytes(100000, Codec::kFp32));
}

TEST(SettingsTest, TheCommitGetsTheOuterOptimizer) {
  const v1::ServerConfig config = Load({"--outer.learning-rate", "0.5", "--outer.momentum", "0.25", "--nesterov",
                                        "false", "--codec.delta", "bf16", "--zstd-level", "3"});
  const CommitRunner::Settings settings = ToCommitSettings(config.run());
  EXPECT_EQ(settings.outer.learning_rate, 0.5);
  EXPECT_EQ(settings.outer.momentum, 0.25);
  EXPECT_FALSE(settings.outer.nesterov);
  EXPECT_EQ(settings.codec, Codec::kBf16);
  EXPECT_EQ(settings.zstd_level, 3);
}

TEST(SettingsTest, APushMustFit) {
  v1::ServerConfig config = Load({});
  CoreConfig core = ToCoreConfig(config, "run-1", SomeLayout());
  EXPECT_TRUE(CheckPushFits(core, config.server()).ok());
  core.max_payload_bytes = config.server().max_push_bytes_in_flight() + 1;
  EXPECT_EQ(CheckPushFits(core, config.server()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SettingsTest, ThreadsAreOneACoreUnlessSaid) {
  EXPECT_EQ(ThreadCount(Load({"--threads", "3"}).server()), 3);
  EXPECT_GE(ThreadCount(Load({}).server()), 1);
}

}  // namespace
}  // namespace autoloco::server
