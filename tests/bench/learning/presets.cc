#include "tests/bench/learning/presets.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace autoloco::bench {
namespace {

using server::IntervalPolicy;
using server::OuterCorrection;

// Data and schedule that the arms of one comparison share.
struct Group {
  Sharding data = Sharding::kIid;
  Schedule schedule = Schedule::kCosine;
  std::uint32_t interval = 20;
};

Arm MakeArm(const Group& group, std::string method) {
  Arm arm;
  arm.method = std::move(method);
  arm.data = group.data;
  arm.schedule = group.schedule;
  arm.interval = group.interval;
  return arm;
}

Arm OneModel(const Group& group, std::string method, Method kind, double learning_rate_scale = 1) {
  Arm arm = MakeArm(group, std::move(method));
  arm.kind = kind;
  arm.learning_rate_scale = learning_rate_scale;
  return arm;
}

// Starts a quarter above the reference interval and lengthens with the root of the fallen learning rate: 116 rounds
// where the reference takes 200.
Arm Autoloco(const Group& group, std::string method = kAutolocoMethod) {
  Arm arm = MakeArm(group, std::move(method));
  arm.policy = IntervalPolicy::kAutoloco;
  arm.interval = group.interval + group.interval / 4;
  arm.learning_rate_power = 0.5;
  arm.agreement_power = 0;
  return arm;
}

Arm Corrected(const Group& group, OuterCorrection correction) {
  Arm arm = Autoloco(group, absl::StrCat("autoloco, correction ", server::OuterCorrectionName(correction)));
  arm.correction = correction;
  return arm;
}

// From the reference interval.
Arm Power(const Group& group, double learning_rate_power) {
  Arm arm = Autoloco(group, absl::StrCat("autoloco, H ", group.interval, ", p_lr ", learning_rate_power));
  arm.interval = group.interval;
  arm.learning_rate_power = learning_rate_power;
  return arm;
}

// The workers' measured disagreement does a part of the lengthening.
Arm Modulated(const Group& group) {
  Arm arm = Autoloco(group, "autoloco, p_lr 0.3, modulated");
  arm.learning_rate_power = 0.3;
  arm.agreement_power = 0.33;
  return arm;
}

Arm Policy(const Group& group, IntervalPolicy policy) {
  Arm arm = MakeArm(group, server::IntervalPolicyName(policy));
  arm.policy = policy;
  arm.correction = OuterCorrection::kBounded;
  return arm;
}

Arm Fixed(const Group& group, std::uint32_t interval) {
  Arm arm = MakeArm(group, absl::StrCat("diloco, H ", interval));
  arm.interval = interval;
  return arm;
}

// Fixed intervals and random ones, as many as AutoLoCo's.
Arm FixedSameRounds(const Group& group, double momentum = kTuned) {
  Arm arm = MakeArm(group, momentum == kTuned ? std::string("fixed, autoloco's rounds")
                                              : absl::StrCat("fixed, autoloco's rounds, mu ", momentum));
  arm.policy = IntervalPolicy::kReplay;
  arm.rounds_of = kAutolocoMethod;
  arm.momentum = momentum;
  return arm;
}

Arm RandomSameRounds(const Group& group) {
  Arm arm = MakeArm(group, "random, autoloco's rounds");
  arm.policy = IntervalPolicy::kRandom;
  arm.rounds_of = kAutolocoMethod;
  return arm;
}

Arm Failing(Arm arm, const std::string& how, const Failures& failures) {
  arm.method = absl::StrCat(arm.method, ", ", how);
  arm.failures = failures;
  return arm;
}

// The tuning of the outer momentum for the fixed reference interval.
void AppendSweep(const Group& group, const std::vector<double>& momenta, std::vector<Arm>* arms) {
  for (const double momentum : momenta) {
    Arm arm = MakeArm(group, absl::StrCat("diloco, mu ", momentum));
    arm.momentum = momentum;
    arm.sweep = true;
    arms->push_back(arm);
  }
}

void AppendLimited(std::uint32_t seeds, std::vector<Arm> arms, std::vector<Arm>* all) {
  for (Arm& arm : arms) {
    arm.seeds_max = seeds;
    all->push_back(std::move(arm));
  }
}

// What the claim of the project needs, in one setting.
std::vector<Arm> CoreArms(const Group& group) {
  return {OneModel(group, "data-parallel", Method::kDataParallel),
          MakeArm(group, kReferenceMethod),
          Autoloco(group),
          Modulated(group),
          FixedSameRounds(group),
          RandomSameRounds(group)};
}

Arm Coded(Arm arm, Codec up, Codec down, bool error_feedback = true) {
  arm.codec = up;
  arm.broadcast = down;
  arm.error_feedback = error_feedback;
  return arm;
}

// Step 1.5 both ways, with error feedback and without.
std::vector<Arm> CodingArms(const Group& group) {
  const Arm diloco = MakeArm(group, kReferenceMethod);
  return {Coded(diloco, Codec::kRms4, Codec::kRms4), Coded(diloco, Codec::kRms4, Codec::kRms4, false),
          Coded(Autoloco(group), Codec::kRms4, Codec::kRms4), Coded(Autoloco(group), Codec::kRms4, Codec::kRms4, false),
          Coded(Autoloco(group), Codec::kBf16, Codec::kFp32)};
}

std::vector<Arm> FailureArms(const Group& group) {
  const Failures dropped{.dropped = 0.3};
  const Failures late{.late = 2};
  const Failures late_applied{.late = 2, .late_applied = true};
  const Failures absent{.absent = 2};
  return {Failing(MakeArm(group, kReferenceMethod), "30 % of deltas dropped", dropped),
          Failing(Autoloco(group), "30 % of deltas dropped", dropped),
          Failing(Autoloco(group), "2 of 8 late, dropped", late),
          Failing(Autoloco(group), "2 of 8 late, discounted", late_applied),
          Failing(Autoloco(group), "2 of 8 lost, joining again", absent)};
}

Preset Claim() {
  Preset preset;
  const Group cosine;
  const Group wsd{.schedule = Schedule::kWsd};
  const Group shards{.data = Sharding::kNonIid};
  const std::vector<double> momenta = {0.7, 0.8, 0.9, 0.95};
  std::vector<Arm>& arms = preset.arms;
  AppendSweep(cosine, momenta, &arms);
  for (const Arm& arm : CoreArms(cosine)) arms.push_back(arm);
  for (const Arm& arm : CodingArms(cosine)) arms.push_back(arm);
  arms.push_back(Corrected(cosine, OuterCorrection::kBounded));
  std::vector<Arm> limited;
  AppendSweep(wsd, momenta, &limited);
  AppendSweep(shards, momenta, &limited);
  AppendLimited(2, limited, &arms);
  for (const Group& group : {wsd, shards}) {
    for (const Arm& arm : CoreArms(group)) arms.push_back(arm);
  }
  AppendLimited(
      2,
      {OneModel(cosine, "data-parallel, lr x 0.5", Method::kDataParallel, 0.5),
       OneModel(cosine, "data-parallel, lr x 2", Method::kDataParallel, 2),
       OneModel(cosine, "single worker, 1/8 of the tokens", Method::kSingle),
       OneModel(cosine, "single worker, same tokens", Method::kSingleSameTokens), Fixed(cosine, 10), Fixed(cosine, 40),
       Fixed(cosine, 80), Corrected(cosine, OuterCorrection::kMomentum), Corrected(cosine, OuterCorrection::kVelocity),
       Corrected(cosine, OuterCorrection::kComposition), Power(cosine, 1), Power(cosine, 0.75),
       Policy(cosine, IntervalPolicy::kQsr), FixedSameRounds(cosine, 0.7), FixedSameRounds(cosine, 0.8),
       FixedSameRounds(cosine, 0.9), Power(shards, 0.25)},
      &arms);
  AppendLimited(2, FailureArms(cosine), &arms);
  return preset;
}

Preset Small() {
  Preset preset;
  preset.settings.steps = 1600;
  preset.settings.warmup_steps = 100;
  preset.settings.final_windows = 1024;
  preset.seeds = 2;
  const Group cosine;
  AppendSweep(cosine, {0.8, 0.9}, &preset.arms);
  for (const Arm& arm : CoreArms(cosine)) preset.arms.push_back(arm);
  preset.arms.push_back(Corrected(cosine, OuterCorrection::kBounded));
  for (const Arm& arm : CodingArms(cosine)) preset.arms.push_back(arm);
  AppendLimited(1, FailureArms(cosine), &preset.arms);
  std::vector<Arm> others;
  for (const Group& group : {Group{.schedule = Schedule::kWsd}, Group{.data = Sharding::kNonIid}}) {
    others.push_back(MakeArm(group, kReferenceMethod));
    others.push_back(Autoloco(group));
    others.push_back(FixedSameRounds(group));
    for (Arm& arm : others) arm.momentum = 0.9;
  }
  AppendLimited(1, others, &preset.arms);
  return preset;
}

Preset Smoke() {
  Preset preset;
  preset.settings.steps = 24;
  preset.settings.warmup_steps = 4;
  preset.settings.rows = 1;
  preset.settings.round_windows = 16;
  preset.settings.final_windows = 64;
  preset.seeds = 2;
  const Group cosine{.interval = 3};
  AppendSweep(cosine, {0.8, 0.9}, &preset.arms);
  for (const Arm& arm : CoreArms(cosine)) preset.arms.push_back(arm);
  AppendLimited(1, CodingArms(cosine), &preset.arms);
  AppendLimited(1, FailureArms(cosine), &preset.arms);
  return preset;
}

}  // namespace

absl::StatusOr<Preset> MakePreset(absl::string_view name) {
  if (name == "smoke") return Smoke();
  if (name == "small") return Small();
  if (name == "claim") return Claim();
  return absl::InvalidArgumentError(absl::StrCat("--preset: want smoke, small or claim, got '", name, "'"));
}

}  // namespace autoloco::bench
