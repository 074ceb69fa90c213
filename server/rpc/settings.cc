#include "server/rpc/settings.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/config/convert.h"
#include "common/config/intervals.h"
#include "common/rpc/codec_proto.h"
#include "common/rpc/protocol.h"
#include "server/rpc/convert.h"

namespace autoloco::server {
namespace {

constexpr std::uint32_t kStreamsPerConnectionMax = 64;
// Session, the streams of a push and a pull, and some that the worker has given up already.
constexpr std::size_t kCallsPerWorkerMax = 24;
constexpr std::size_t kOtherCallsMax = 256;

IntervalPolicy ToPolicy(v1::IntervalConfig::Policy policy) {
  switch (policy) {
    case v1::IntervalConfig::POLICY_AUTOLOCO: return IntervalPolicy::kAutoloco;
    case v1::IntervalConfig::POLICY_QSR: return IntervalPolicy::kQsr;
    case v1::IntervalConfig::POLICY_PATH: return IntervalPolicy::kPath;
    case v1::IntervalConfig::POLICY_DISPERSION: return IntervalPolicy::kDispersion;
    case v1::IntervalConfig::POLICY_ADACOMM: return IntervalPolicy::kAdacomm;
    case v1::IntervalConfig::POLICY_RANDOM: return IntervalPolicy::kRandom;
    case v1::IntervalConfig::POLICY_REPLAY: return IntervalPolicy::kReplay;
    default: AUTOLOCO_CHECK(policy == v1::IntervalConfig::POLICY_FIXED); return IntervalPolicy::kFixed;
  }
}

OuterCorrection ToCorrection(v1::OuterConfig::Correction correction, IntervalPolicy policy) {
  switch (correction) {
    case v1::OuterConfig::CORRECTION_NONE: return OuterCorrection::kNone;
    case v1::OuterConfig::CORRECTION_MOMENTUM: return OuterCorrection::kMomentum;
    case v1::OuterConfig::CORRECTION_VELOCITY: return OuterCorrection::kVelocity;
    case v1::OuterConfig::CORRECTION_COMPOSITION: return OuterCorrection::kComposition;
    case v1::OuterConfig::CORRECTION_BOUNDED: return OuterCorrection::kBounded;
    default: AUTOLOCO_CHECK(correction == v1::OuterConfig::CORRECTION_AUTO);
  }
  return policy == IntervalPolicy::kFixed ? OuterCorrection::kNone : OuterCorrection::kBounded;
}

bool ToBool(v1::Choice choice, bool automatic) {
  return choice == v1::CHOICE_AUTO ? automatic : choice == v1::CHOICE_ON;
}

}  // namespace

IntervalConfig ToIntervalConfig(const v1::RunConfig& run) {
  const v1::IntervalConfig& proto = run.interval();
  IntervalConfig config;
  config.policy = ToPolicy(proto.policy());
  config.steps = proto.steps();
  const StepLimits limits = ToStepLimits(proto);
  config.steps_min = limits.least;
  config.steps_max = limits.most;
  config.total_inner_steps = run.total_inner_steps();
  config.schedule = ToScheduleConfig(run);
  config.learning_rate_power = proto.learning_rate_power();
  config.agreement_power = proto.agreement_power();
  config.dispersion_power = proto.dispersion_power();
  config.calibration_rounds = proto.calibration_rounds();
  const bool pinned = config.policy == IntervalPolicy::kFixed || config.policy == IntervalPolicy::kRandom ||
                      config.policy == IntervalPolicy::kReplay;
  config.spike_guard = ToBool(proto.spike_guard(), !pinned);
  config.target_rounds = proto.target_rounds();
  config.seed = run.seed();
  config.replay = ParseIntervals(proto.replay()).value();
  return config;
}

OuterSettings ToOuterSettings(const v1::RunConfig& run) {
  const v1::OuterConfig& proto = run.outer();
  const IntervalPolicy policy = ToPolicy(run.interval().policy());
  OuterSettings settings;
  settings.learning_rate = proto.learning_rate();
  settings.momentum = {proto.momentum(), proto.nesterov()};
  settings.correction = ToCorrection(proto.correction(), policy);
  settings.reference_learning_rate_sum = proto.reference_learning_rate_sum() > 0
                                             ? proto.reference_learning_rate_sum()
                                             : run.interval().steps() * run.inner().learning_rate();
  settings.final_average = ToBool(proto.final_average(), policy != IntervalPolicy::kFixed);
  settings.equal_votes = proto.combination() != v1::OuterConfig::COMBINATION_MEAN;
  return settings;
}

namespace {

NormSettings ToNormSettings(const v1::OuterConfig& proto) {
  NormSettings settings;
  settings.limit = proto.norm_limit();
  settings.clip = proto.norm_action() == v1::OuterConfig::NORM_ACTION_CLIP;
  settings.rounds = proto.norm_rounds();
  settings.rounds_min = proto.norm_rounds_min();
  return settings;
}

DeadlineSettings ToDeadlineSettings(const v1::RunConfig& run) {
  const v1::MembershipConfig& proto = run.membership();
  DeadlineSettings settings;
  settings.quorum_share = proto.quorum_share();
  settings.spread_factor = proto.deadline_spread();
  settings.slack_min = absl::Seconds(proto.deadline_slack_seconds());
  settings.slack_share_max = proto.deadline_slack_share();
  settings.fixed = absl::Seconds(proto.deadline_seconds());
  settings.disconnect_grace = absl::Seconds(run.rounds().disconnect_grace_seconds());
  return settings;
}

SpeedSettings ToSpeedSettings(const v1::RunConfig& run) {
  const v1::MembershipConfig& proto = run.membership();
  SpeedSettings settings;
  settings.matched = proto.match_speed() && !run.rounds().strict();
  settings.ratio_min = proto.steps_ratio_min();
  settings.ratio_max = proto.steps_ratio_max();
  settings.dead_band = proto.speed_dead_band();
  settings.tolerated_wait = absl::Seconds(proto.tolerated_wait_seconds());
  settings.tokens_per_step = std::uint64_t{run.inner().batch_size()} * run.model().context();
  settings.first_share_min = proto.join_share_min();
  return settings;
}

LateSettings ToLateSettings(const v1::RunConfig& run) {
  const v1::MembershipConfig& proto = run.membership();
  return {proto.late() == v1::MembershipConfig::LATE_APPLY && !run.rounds().strict(), proto.late_versions_max(),
          proto.late_discount()};
}

CombineKind ToCombineKind(v1::OuterConfig::Combination combination) {
  switch (combination) {
    case v1::OuterConfig::COMBINATION_MEDIAN: return CombineKind::kMedian;
    case v1::OuterConfig::COMBINATION_TRIMMED_MEAN: return CombineKind::kTrimmedMean;
    default: AUTOLOCO_CHECK(combination == v1::OuterConfig::COMBINATION_MEAN); return CombineKind::kMean;
  }
}

}  // namespace

constexpr Incarnation kIncarnationsPerStart = 1'000'000;

CoreConfig ToCoreConfig(const v1::ServerConfig& config, const std::string& run_id, std::uint64_t start_number,
                        const Layout& layout) {
  const v1::RunConfig& run = config.run();
  CoreConfig core;
  core.run_id = run_id;
  core.protocol_version = kProtocolVersion;
  core.first_incarnation = (start_number - 1) * kIncarnationsPerStart + 1;
  core.layout = layout;
  core.interval = ToIntervalConfig(run);
  core.outer = ToOuterSettings(run);
  core.batch_size = run.inner().batch_size();
  core.tokens_per_sample = run.model().context();
  core.shared_data = run.data().sharing() == v1::DataConfig::SHARING_SHARED;
  core.evaluation_windows = run.evaluation().windows();
  core.strict = run.rounds().strict();
  core.min_workers = run.rounds().min_workers();
  core.start_workers = run.rounds().start_workers();
  core.max_workers = config.server().max_workers();
  core.lease = absl::Seconds(run.rounds().lease_seconds());
  core.disconnect_grace = absl::Seconds(run.rounds().disconnect_grace_seconds());
  core.deadline = ToDeadlineSettings(run);
  core.speed = ToSpeedSettings(run);
  core.norm = ToNormSettings(run.outer());
  core.late = ToLateSettings(run);
  core.join_timeout = absl::Seconds(run.rounds().join_timeout_seconds());
  core.finish_timeout = absl::Seconds(run.rounds().finish_timeout_seconds());
  core.method = ToCommitMethod(run);
  core.broadcasts_kept = config.server().broadcasts_kept();
  core.checkpoint_every_rounds = config.server().checkpoint_every_rounds();
  core.max_payload_bytes = MaxPayloadBytes(layout.value_count(), ToCodec(run.codec()));
  return core;
}

CommitMethod ToCommitMethod(const v1::RunConfig& run) {
  const Coding broadcast = ToBroadcastCoding(run.codec());
  CommitMethod method;
  method.combination = ToCombineKind(run.outer().combination());
  method.trim_share = run.outer().trim_share();
  method.broadcast = {static_cast<std::uint8_t>(broadcast.codec), broadcast.step, broadcast.zstd_level};
  return method;
}

EventLoop::Settings ToLoopSettings(const v1::ServerConfig& config, const std::string& checkpoint) {
  EventLoop::Settings settings;
  settings.codec = ToCodec(config.run().codec());
  settings.limits.calls_max = config.server().max_workers() * kCallsPerWorkerMax + kOtherCallsMax;
  settings.limits.stall_timeout = absl::Seconds(config.server().stall_timeout_seconds());
  settings.push_bytes_in_flight_max = config.server().max_push_bytes_in_flight();
  settings.limits.chunk_bytes_max = config.server().max_chunk_bytes();
  settings.payloads_kept = PayloadsKept(config);
  settings.zstd_level = config.run().codec().zstd_level();
  settings.checkpoint = checkpoint;
  return settings;
}

ListenOptions ToListenOptions(const v1::ServerOptions& options) {
  ListenOptions listen;
  listen.listen = options.listen();
  listen.keepalive = absl::Seconds(options.keepalive_seconds());
  listen.max_chunk_bytes = options.max_chunk_bytes();
  listen.max_streams = kStreamsPerConnectionMax;
  listen.insecure = options.insecure();
  return listen;
}

std::size_t PayloadsKept(const v1::ServerConfig& config) {
  return ToCommitMethod(config.run()).broadcast.lossless() ? 1 : config.server().broadcasts_kept();
}

std::size_t ThreadCount(const v1::ServerOptions& options) {
  if (options.threads() > 0) return options.threads();
  return std::max(1u, std::thread::hardware_concurrency());
}

absl::Status CheckPushFits(const CoreConfig& core, const v1::ServerOptions& options) {
  if (core.max_payload_bytes <= options.max_push_bytes_in_flight()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("server.max_push_bytes_in_flight: want at least ",
                                                 core.max_payload_bytes, ", the size of one push of this model, got ",
                                                 options.max_push_bytes_in_flight()));
}

}  // namespace autoloco::server
