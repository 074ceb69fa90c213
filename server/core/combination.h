// How the deltas of one round become one: workers do different numbers of steps (slow, joining, leaving, late), so
// their velocities are averaged and the mean is scaled back to a displacement.
//
//   p_i   = tokens_i f(s_i) / sum_j tokens_j f(s_j)      f(0) = 1, f(s) = 1 / (1 + lambda s)
//   u     = sum_i p_i D_i / S_i                          displacement per unit of inner learning rate
//   S_eff = sum_i p_i S_i
//   D     = S_eff u = sum_i w_i D_i                      w_i = S_eff p_i / S_i
//
// tokens_i is the inverse-variance weight of the velocity D_i / S_i; weighting raw D_i by tokens would count a long
// worker twice. Equal S: the token-weighted mean. Equal tokens too: DiLoCo's plain mean, all weights the same number.
#ifndef AUTOLOCO_SERVER_CORE_COMBINATION_H_
#define AUTOLOCO_SERVER_CORE_COMBINATION_H_

#include <cstdint>
#include <span>
#include <vector>

namespace autoloco::server {

// What one delivered delta stands for.
struct WorkDone {
  std::uint64_t tokens = 0;
  double learning_rate_sum = 0;  // S_i, over the inner steps it really took
  std::uint32_t staleness = 0;   // s_i: versions committed since its base
};

struct CombinationOptions {
  std::uint32_t staleness_max = 0;  // later deltas are left out; 0: every late one
  double staleness_discount = 1;    // lambda
  bool equal_votes = false;         // every share is the same: median and trimmed mean
};

enum class LeftOut {
  kNo,
  kNoTokens,
  kTooLittle,  // S_i below kWorkShareMin of the largest: its velocity is mostly noise
  kTooLate,
};

struct Combination {
  struct Part {
    double share = 0;   // p_i; they sum to 1
    double weight = 0;  // w_i, on the raw delta; 0 where left out
    LeftOut left_out = LeftOut::kNo;
  };
  std::vector<Part> parts;       // as the input
  double learning_rate_sum = 0;  // S_eff
  std::uint32_t contributors = 0;
  bool plain = true;  // equal work: every weight is 1 / contributors
};

inline constexpr double kWorkShareMin = 0.05;
// S_i whose spread is at most this part of the largest count as equal.
inline constexpr double kEqualWorkTolerance = 1e-9;

// One island's p_i is at most 2 / M of M > 2 contributors; the excess goes to the others in proportion.
// Somebody always contributes: where the rules leave nobody of those in time, all of them count, equally. An S_i that
// is not finite or negative counts as 0; where no S_i is positive all S_i count as equal. REQUIRES: `work` is not empty
// and holds at least one delta with staleness <= staleness_max.
Combination CombineWork(std::span<const WorkDone> work, const CombinationOptions& options);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_COMBINATION_H_
