#include "server/rpc/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/config/load.h"
#include "common/rpc/protocol.h"
#include "server/core/interval_policy.h"

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
  const CoreConfig core = ToCoreConfig(config, "run-1", 3, SomeLayout());
  EXPECT_EQ(core.first_incarnation, 2'000'001u);
  EXPECT_EQ(core.run_id, "run-1");
  EXPECT_EQ(core.protocol_version, kProtocolVersion);
  EXPECT_EQ(core.interval.total_inner_steps, 23);
  EXPECT_EQ(core.interval.steps, 5);
  EXPECT_EQ(core.batch_size, 3);
  EXPECT_EQ(core.tokens_per_sample, config.run().model().context());
  EXPECT_EQ(core.min_workers, 2);
  EXPECT_EQ(core.lease, absl::Seconds(12));
  EXPECT_EQ(core.checkpoint_every_rounds, 4);
  EXPECT_EQ(core.evaluation_windows, 0u);
  EXPECT_FALSE(core.shared_data);
  EXPECT_EQ(core.max_payload_bytes, MaxPayloadBytes(100000, Codec::kRms4));
}

TEST(SettingsTest, FixedIsDilocoUnlessSaidOtherwise) {
  const v1::ServerConfig config =
      Load({"--policy", "fixed", "--outer.learning-rate", "0.5", "--outer.momentum", "0.25", "--nesterov", "false"});
  const IntervalConfig interval = ToIntervalConfig(config.run());
  EXPECT_EQ(interval.policy, IntervalPolicy::kFixed);
  EXPECT_FALSE(interval.spike_guard);
  const OuterSettings outer = ToOuterSettings(config.run());
  EXPECT_EQ(outer.learning_rate, 0.5);
  EXPECT_EQ(outer.momentum.mu, 0.25);
  EXPECT_FALSE(outer.momentum.nesterov);
  EXPECT_EQ(outer.correction, OuterCorrection::kNone);
  EXPECT_FALSE(outer.final_average);
  const v1::ServerConfig more =
      Load({"--policy", "fixed", "--correction", "velocity", "--final-average", "on", "--spike-guard", "on"});
  EXPECT_EQ(ToOuterSettings(more.run()).correction, OuterCorrection::kVelocity);
  EXPECT_TRUE(ToOuterSettings(more.run()).final_average);
  EXPECT_TRUE(ToIntervalConfig(more.run()).spike_guard);
}

TEST(SettingsTest, AdaptivePoliciesAreCorrectedAndGuarded) {
  for (const char* policy : {"autoloco", "qsr", "path", "dispersion", "adacomm"}) {
    const v1::ServerConfig config = Load({"--policy", policy, "--interval.steps", "20", "--inner.learning-rate", "0.01",
                                          "--seed", "7", "--calibration-rounds", "9"});
    const IntervalConfig interval = ToIntervalConfig(config.run());
    EXPECT_STREQ(IntervalPolicyName(interval.policy), policy);
    EXPECT_TRUE(interval.spike_guard);
    EXPECT_EQ(interval.steps, 20);
    EXPECT_EQ(interval.steps_min, 10);
    EXPECT_EQ(interval.steps_max, 160);
    EXPECT_EQ(interval.calibration_rounds, 9);
    EXPECT_EQ(interval.seed, 7);
    EXPECT_EQ(interval.schedule.learning_rate, 0.01);
    EXPECT_EQ(interval.schedule.total_steps, interval.total_inner_steps);
    const OuterSettings outer = ToOuterSettings(config.run());
    EXPECT_EQ(outer.correction, OuterCorrection::kBounded);
    EXPECT_DOUBLE_EQ(outer.reference_learning_rate_sum, 0.2);
    EXPECT_TRUE(outer.final_average);
  }
  EXPECT_EQ(ToOuterSettings(Load({"--reference-learning-rate-sum", "0.5"}).run()).reference_learning_rate_sum, 0.5);
}

TEST(SettingsTest, PinnedListsAreNotGuarded) {
  const v1::ServerConfig replay = Load({"--policy", "replay", "--replay", "20x2,30"});
  EXPECT_EQ(ToIntervalConfig(replay.run()).replay, (std::vector<std::uint32_t>{20, 20, 30}));
  EXPECT_FALSE(ToIntervalConfig(replay.run()).spike_guard);
  const v1::ServerConfig random = Load({"--policy", "random", "--target-rounds", "12"});
  EXPECT_EQ(ToIntervalConfig(random.run()).target_rounds, 12);
  EXPECT_FALSE(ToIntervalConfig(random.run()).spike_guard);
}

TEST(SettingsTest, HowARoundIsCommitted) {
  const v1::ServerConfig plain = Load({"--broadcast", "fp32", "--zstd-level", "3"});
  EXPECT_EQ(ToCommitMethod(plain.run()).combination, CombineKind::kMean);
  EXPECT_TRUE(ToCommitMethod(plain.run()).broadcast.lossless());
  EXPECT_EQ(ToCommitMethod(plain.run()).broadcast.zstd_level, 3);
  EXPECT_EQ(PayloadsKept(plain), 1) << "whole versions, the newest one";
  const v1::ServerConfig lossy =
      Load({"--broadcast", "quantized", "--broadcast-step", "1.25", "--broadcasts-kept", "7"});
  const BroadcastMethod broadcast = ToCommitMethod(lossy.run()).broadcast;
  EXPECT_FALSE(broadcast.lossless());
  EXPECT_EQ(broadcast.codec, static_cast<std::uint8_t>(Codec::kRms4));
  EXPECT_EQ(broadcast.step, 1.25);
  EXPECT_EQ(PayloadsKept(lossy), 7);
  const CoreConfig core = ToCoreConfig(lossy, "run-1", 1, SomeLayout());
  EXPECT_EQ(core.method, ToCommitMethod(lossy.run()));
  EXPECT_EQ(core.broadcasts_kept, 7);
  EXPECT_EQ(ToLoopSettings(lossy, "").payloads_kept, 7);
}

TEST(SettingsTest, APushMustFit) {
  v1::ServerConfig config = Load({});
  CoreConfig core = ToCoreConfig(config, "run-1", 1, SomeLayout());
  EXPECT_TRUE(CheckPushFits(core, config.server()).ok());
  core.max_payload_bytes = config.server().max_push_bytes_in_flight() + 1;
  EXPECT_EQ(CheckPushFits(core, config.server()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(SettingsTest, ThreadsAreOneACoreUnlessSaid) {
  EXPECT_EQ(ThreadCount(Load({"--threads", "3"}).server()), 3);
  EXPECT_GE(ThreadCount(Load({}).server()), 1);
}

TEST(SettingsTest, WhoIsWaitedForAndHowMuchEachDoes) {
  const CoreConfig plain = ToCoreConfig(Load({}), "run-1", 1, SomeLayout());
  EXPECT_EQ(plain.deadline.quorum_share, 0.6);
  EXPECT_EQ(plain.deadline.spread_factor, 4);
  EXPECT_EQ(plain.deadline.slack_min, absl::Seconds(1));
  EXPECT_EQ(plain.deadline.slack_share_max, 0.5);
  EXPECT_EQ(plain.deadline.fixed, absl::ZeroDuration());
  EXPECT_EQ(plain.deadline.disconnect_grace, absl::Seconds(3));
  EXPECT_TRUE(plain.speed.matched);
  EXPECT_EQ(plain.speed.tokens_per_step, 16u * 128);
  EXPECT_EQ(plain.norm.limit, 5);
  EXPECT_EQ(plain.norm.rounds, 20u);
  EXPECT_FALSE(plain.norm.clip);
  EXPECT_FALSE(plain.late.apply);
  EXPECT_FALSE(plain.outer.equal_votes);
  const v1::ServerConfig config = Load({"--quorum-share", "0.75", "--deadline-seconds", "90", "--match-speed", "false",
                                        "--late", "apply", "--late-discount", "0.25", "--norm-action", "clip",
                                        "--combination", "trimmed_mean", "--trim-share", "0.1"});
  const CoreConfig core = ToCoreConfig(config, "run-1", 1, SomeLayout());
  EXPECT_EQ(core.deadline.quorum_share, 0.75);
  EXPECT_EQ(core.deadline.fixed, absl::Seconds(90));
  EXPECT_FALSE(core.speed.matched);
  EXPECT_TRUE(core.late.apply);
  EXPECT_EQ(core.late.discount, 0.25);
  EXPECT_TRUE(core.norm.clip);
  EXPECT_TRUE(core.outer.equal_votes);
  EXPECT_EQ(core.method.combination, CombineKind::kTrimmedMean);
  EXPECT_EQ(core.method.trim_share, 0.1);
  EXPECT_FALSE(ToCoreConfig(Load({"--strict", "true"}), "run-1", 1, SomeLayout()).speed.matched);
}

}  // namespace
}  // namespace autoloco::server
