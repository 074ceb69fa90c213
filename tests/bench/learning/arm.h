// One method under comparison, as data: how the workers train, when they synchronise, how the outer step is made and
// what goes wrong on the way.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_ARM_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_ARM_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/schedule.h"
#include "common/codec/delta_codec.h"
#include "server/core/interval_config.h"
#include "server/core/outer_schedule.h"
#include "tests/bench/learning/training_text.h"

namespace autoloco::bench {

enum class Method {
  kDataParallel,      // one model, the batches of all workers at once, one AdamW step each
  kSingle,            // one model, one worker's batches: 1 / workers of the tokens
  kSingleSameTokens,  // one model, one worker's batch size, `workers` times as many steps
  kOuter,             // DiLoCo, AutoLoCo and their kin: the product's server core and kernel
};

struct Failures {
  double dropped = 0;         // each delta is lost with this probability; its worker goes on from the next version
  std::uint32_t late = 0;     // so many workers, drawn anew each round, deliver after the round has closed
  bool late_applied = false;  // and count in the next round at weight 0.8; else they are dropped
  std::uint32_t absent = 0;   // so many workers are gone from 30 % to 60 % of the steps, and come back with fresh
                              // AdamW state and half an interval
};

inline constexpr double kTuned = -1;

struct Arm {
  std::string method;  // as shown and selected by --arms
  Method kind = Method::kOuter;
  Sharding data = Sharding::kIid;
  Schedule schedule = Schedule::kCosine;
  Codec codec = Codec::kFp32;      // of the deltas
  Codec broadcast = Codec::kFp32;  // of what comes back; lossless: the parameters, else what the view lacks
  // What is lost in rounding, on both sides, is carried to what is sent next. Without it the worker forgets it, and the
  // server goes on from the view.
  bool error_feedback = true;
  double learning_rate_scale = 1;

  server::IntervalPolicy policy = server::IntervalPolicy::kFixed;
  std::uint32_t interval = 20;  // H, H_ref
  double learning_rate_power = 1;
  double agreement_power = 0.33;
  server::OuterCorrection correction = server::OuterCorrection::kNone;
  double momentum = kTuned;  // kTuned: the best of the sweep for fixed H_ref under the same data and schedule
  bool final_average = true;
  Failures failures;

  bool sweep = false;        // part of that sweep
  std::string rounds_of;     // takes exactly the number of rounds that this method took with the same seed
  std::uint64_t rounds = 0;  // what came out of that
  std::uint32_t seeds_max = std::numeric_limits<std::uint32_t>::max();
};

// Sizes that all arms of one report share.
struct BenchSettings {
  std::uint64_t steps = 4000;  // inner steps
  std::uint64_t warmup_steps = 200;
  std::uint32_t rows = 4;       // sequences a worker and step
  double learning_rate = 4e-3;  // inner, peak
  double outer_learning_rate = 0.7;
  std::uint32_t round_windows = 128;  // held-out windows after each round, for the loss jumps
  std::uint32_t final_windows = 2048;
  std::string text;  // its fingerprint
};

const char* ShardingName(Sharding sharding);
const char* ScheduleName(Schedule schedule);
const char* CodecName(Codec codec);
inline constexpr std::array kCodecs = {Codec::kFp32, Codec::kBf16, Codec::kInt8,
                                       Codec::kRms8, Codec::kRms4, Codec::kTernary};
// Both directions and, where it matters, error feedback, e.g. "fp32", "bf16 up", "rms4 both ways without feedback".
std::string CodingName(const Arm& arm);
// Whether nothing is lost in either direction.
bool IsExact(const Arm& arm);

// Everything that determines the result of (settings, arm, seed), as text: equal text, equal result.
std::string DescribeRun(const BenchSettings& settings, const Arm& arm, std::uint64_t seed);

// The inner steps that the arm's models take, counted over all models: what a run costs.
std::uint64_t ModelSteps(const BenchSettings& settings, const Arm& arm, std::uint32_t workers);

// Whether two arms belong to one comparison.
bool SameSetting(const Arm& a, const Arm& b);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_ARM_H_
