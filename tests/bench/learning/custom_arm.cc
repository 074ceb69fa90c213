#include "tests/bench/learning/custom_arm.h"

#include <array>
#include <functional>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace autoloco::bench {
namespace {

using server::IntervalPolicy;
using server::OuterCorrection;

using Setter = std::function<bool(const std::string& value, Arm* arm)>;

struct Key {
  const char* values;
  Setter set;
};

template <typename Enum, std::size_t count>
Setter Named(Enum Arm::*field, const char* (*name)(Enum), const std::array<Enum, count>& values) {
  return [field, name, values](const std::string& value, Arm* arm) {
    for (const Enum candidate : values) {
      if (value != name(candidate)) continue;
      arm->*field = candidate;
      return true;
    }
    return false;
  };
}

Setter Real(double Arm::*field, double limit) {
  return [field, limit](const std::string& value, Arm* arm) {
    return absl::SimpleAtod(value, &(arm->*field)) && arm->*field >= 0 && arm->*field < limit;
  };
}

template <typename Integer>
Setter Whole(Integer Arm::*field) {
  return [field](const std::string& value, Arm* arm) { return absl::SimpleAtoi(value, &(arm->*field)); };
}

Setter Flag(bool Arm::*field) {
  return [field](const std::string& value, Arm* arm) { return absl::SimpleAtob(value, &(arm->*field)); };
}

const std::map<std::string, Key>& Keys() {
  static const auto* const keys = new std::map<std::string, Key>{
      {"data", {"iid, non-iid", Named(&Arm::data, ShardingName, std::array{Sharding::kIid, Sharding::kNonIid})}},
      {"schedule",
       {"cosine, wsd, constant",
        Named(&Arm::schedule, ScheduleName, std::array{Schedule::kCosine, Schedule::kWsd, Schedule::kConstant})}},
      {"codec", {"of the deltas: fp32, bf16, int8, rms8, rms4, ternary", Named(&Arm::codec, CodecName, kCodecs)}},
      {"broadcast", {"the same of the way back", Named(&Arm::broadcast, CodecName, kCodecs)}},
      {"feedback", {"error feedback, 0 or 1", Flag(&Arm::error_feedback)}},
      {"policy",
       {"fixed, autoloco, qsr, path, dispersion, adacomm",
        Named(&Arm::policy, server::IntervalPolicyName,
              std::array{IntervalPolicy::kFixed, IntervalPolicy::kAutoloco, IntervalPolicy::kQsr, IntervalPolicy::kPath,
                         IntervalPolicy::kDispersion, IntervalPolicy::kAdacomm})}},
      {"interval", {"H, H_ref", Whole(&Arm::interval)}},
      {"power", {"p_lr", Real(&Arm::learning_rate_power, 10)}},
      {"agreement", {"p_q", Real(&Arm::agreement_power, 10)}},
      {"correction",
       {"none, momentum, velocity, composition, bounded",
        Named(&Arm::correction, server::OuterCorrectionName,
              std::array{OuterCorrection::kNone, OuterCorrection::kMomentum, OuterCorrection::kVelocity,
                         OuterCorrection::kComposition, OuterCorrection::kBounded})}},
      {"momentum", {"outer; none given: the best of the sweep", Real(&Arm::momentum, 1)}},
      {"average", {"the last step a plain average, 0 or 1", Flag(&Arm::final_average)}},
  };
  return *keys;
}

}  // namespace

absl::StatusOr<Arm> ParseCustomArm(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  Arm arm;
  arm.method = std::string(absl::StripAsciiWhitespace(parts[0]));
  if (parts.size() != 2 || arm.method.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--arm: want 'NAME: key=value ...', got '", text, "'"));
  }
  for (const absl::string_view part : absl::StrSplit(parts[1], ' ', absl::SkipEmpty())) {
    const std::vector<std::string> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto key = Keys().find(sides[0]);
    if (key == Keys().end() || sides.size() != 2 || !key->second.set(sides[1], &arm)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--arm: cannot use '", part, "'; the keys are\n", CustomArmHelp()));
    }
  }
  if (arm.interval == 0) return absl::InvalidArgumentError("--arm: interval: want at least 1");
  return arm;
}

std::string CustomArmHelp() {
  std::string help;
  for (const auto& [name, key] : Keys()) absl::StrAppend(&help, "      ", name, "=  ", key.values, "\n");
  return help;
}

}  // namespace autoloco::bench
