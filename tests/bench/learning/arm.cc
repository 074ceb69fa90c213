#include "tests/bench/learning/arm.h"

#include "absl/strings/str_cat.h"

namespace autoloco::bench {

const char* ShardingName(Sharding sharding) { return sharding == Sharding::kIid ? "iid" : "non-iid"; }

const char* ScheduleName(Schedule schedule) {
  switch (schedule) {
    case Schedule::kConstant: return "constant";
    case Schedule::kCosine: return "cosine";
    case Schedule::kWsd: return "wsd";
  }
  return "cosine";
}

const char* CodecName(Codec codec) {
  switch (codec) {
    case Codec::kFp32: return "fp32";
    case Codec::kBf16: return "bf16";
    case Codec::kInt8: return "int8";
    case Codec::kRms8: return "rms8";
    case Codec::kRms4: return "rms4";
    case Codec::kTernary: return "ternary";
  }
  return "fp32";
}

bool IsExact(const Arm& arm) { return IsLossless(arm.codec) && IsLossless(arm.broadcast); }

std::string CodingName(const Arm& arm) {
  if (IsExact(arm)) return CodecName(arm.codec);
  std::string name = arm.codec == arm.broadcast ? absl::StrCat(CodecName(arm.codec), " both ways")
                                                : absl::StrCat(CodecName(arm.codec), " up");
  if (!IsLossless(arm.broadcast) && arm.codec != arm.broadcast) {
    absl::StrAppend(&name, " ", CodecName(arm.broadcast), " down");
  }
  if (!arm.error_feedback) absl::StrAppend(&name, " without feedback");
  return name;
}

std::string DescribeRun(const BenchSettings& settings, const Arm& arm, std::uint64_t seed) {
  std::string text = absl::StrCat("text=", settings.text, " steps=", settings.steps, " warmup=", settings.warmup_steps,
                                  " rows=", settings.rows, " lr=", settings.learning_rate * arm.learning_rate_scale,
                                  " windows=", settings.round_windows, ",", settings.final_windows,
                                  " kind=", static_cast<int>(arm.kind), " data=", ShardingName(arm.data),
                                  " schedule=", ScheduleName(arm.schedule), " seed=", seed, " every=", arm.interval);
  if (arm.kind != Method::kOuter) return text;
  const Failures& failures = arm.failures;
  absl::StrAppend(&text, " outer=", settings.outer_learning_rate, ",", arm.momentum, " codec=", CodecName(arm.codec),
                  " policy=", server::IntervalPolicyName(arm.policy), " powers=", arm.learning_rate_power, ",",
                  arm.agreement_power, " correction=", server::OuterCorrectionName(arm.correction),
                  " rounds=", arm.rounds, " average=", arm.final_average, " failures=", failures.dropped, ",",
                  failures.late, ",", failures.late_applied, ",", failures.absent);
  if (!IsExact(arm)) {
    absl::StrAppend(&text, " down=", CodecName(arm.broadcast), " feedback=", arm.error_feedback);
  }
  return text;
}

std::uint64_t ModelSteps(const BenchSettings& settings, const Arm& arm, std::uint32_t workers) {
  return arm.kind == Method::kSingle ? settings.steps : settings.steps * workers;
}

bool SameSetting(const Arm& a, const Arm& b) { return a.data == b.data && a.schedule == b.schedule; }

}  // namespace autoloco::bench
