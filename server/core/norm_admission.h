// Whether a delta is of a size that deltas of this run have.
//
// What is judged is the velocity norm |D_i| / S_i, displacement per unit of inner learning rate, since intervals differ
// in length. The yardstick is the median, over the last rounds, of the contributors' root mean square velocity norm,
// sqrt(P) / S_eff: both numbers are in every round's record, so that a restarted server judges alike.
//
// The noise in a delta grows with the root of its length, so a short interval has a larger velocity norm than a long
// one: the limit of a delta with S_i below the usual S grows by sqrt(S / S_i).
//
// Before there is enough history only an absolute rule holds: AdamW moves a value by about the learning rate a step and
// never by many times that, so a root mean square velocity above kSaneVelocity comes from no training.
#ifndef AUTOLOCO_SERVER_CORE_NORM_ADMISSION_H_
#define AUTOLOCO_SERVER_CORE_NORM_ADMISSION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "server/core/round_record.h"

namespace autoloco::server {

inline constexpr double kSaneVelocity = 100;

struct NormSettings {
  double limit = 5;              // times the median; 0: only the absolute rule
  bool clip = false;             // scales an outlier down to the limit instead of refusing it
  std::uint32_t rounds = 20;     // that the median is taken over
  std::uint32_t rounds_min = 5;  // fewer: only the absolute rule
};

struct NormInput {
  double norm = 0;               // |D_i|
  double learning_rate_sum = 0;  // S_i; not positive and finite: only the absolute rule, with learning_rate_sum_most
  double learning_rate_sum_most = 0;  // what S_i can be: peak rate times steps
  std::uint64_t values = 0;           // of the parameter vector
};

struct NormVerdict {
  bool admitted = true;
  double scale = 1;  // that the delta counts with; below 1: clipped
  std::string text;  // the numbers, where it is not plainly admitted
};

// sqrt(P) / S_eff of a committed round; empty where it is undefined.
std::optional<double> VelocityNormOf(const RoundRecord& record);

// Pure. `history`: every committed round, oldest first.
NormVerdict JudgeNorm(const NormSettings& settings, std::span<const RoundRecord> history, const NormInput& input);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_NORM_ADMISSION_H_
