#include "server/core/combination.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace autoloco::server {
namespace {

double LearningRateSum(const WorkDone& work) {
  return std::isfinite(work.learning_rate_sum) ? std::max(work.learning_rate_sum, 0.0) : 0;
}

LeftOut Judge(const WorkDone& work, const CombinationOptions& options, double largest) {
  if (work.staleness > options.staleness_max) return LeftOut::kTooLate;
  if (work.tokens == 0) return LeftOut::kNoTokens;
  if (LearningRateSum(work) < kWorkShareMin * largest) return LeftOut::kTooLittle;
  return LeftOut::kNo;
}

double LargestSum(std::span<const WorkDone> work, const CombinationOptions& options) {
  double largest = 0;
  for (const WorkDone& one : work) {
    if (one.staleness <= options.staleness_max && one.tokens != 0) largest = std::max(largest, LearningRateSum(one));
  }
  return largest;
}

// Brings every share down to `cap`, what is cut going to the uncapped in proportion. REQUIRES: shares sum to 1,
// cap * (number of positive shares) >= 1.
void CapShares(double cap, std::vector<Combination::Part>* parts) {
  std::vector<bool> capped(parts->size(), false);
  for (std::size_t pass = 0; pass < parts->size(); ++pass) {
    double free_sum = 0;
    double room = 1;
    bool exceeded = false;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      if (!capped[i] && (*parts)[i].share > cap) {
        capped[i] = true;
        exceeded = true;
        (*parts)[i].share = cap;
      }
      if (capped[i]) {
        room -= cap;
      } else {
        free_sum += (*parts)[i].share;
      }
    }
    if (!exceeded) return;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      if (!capped[i] && free_sum > 0) (*parts)[i].share *= room / free_sum;
    }
  }
}

// Fills the shares of those that are in; returns whether they are all equal.
bool FillShares(std::span<const WorkDone> work, const CombinationOptions& options, Combination* combination) {
  std::uint64_t most_tokens = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (combination->parts[i].left_out == LeftOut::kNo) most_tokens = std::max(most_tokens, work[i].tokens);
  }
  double sum = 0;
  double first = 0;
  bool equal = true;
  for (std::size_t i = 0; i < work.size(); ++i) {
    Combination::Part& part = combination->parts[i];
    if (part.left_out != LeftOut::kNo) continue;
    const double tokens = most_tokens == 0 ? 1 : static_cast<double>(work[i].tokens);
    part.share = options.equal_votes ? 1 : tokens / (1 + options.staleness_discount * work[i].staleness);
    if (sum == 0) first = part.share;
    equal = equal && part.share == first;
    sum += part.share;
  }
  for (Combination::Part& part : combination->parts) part.share /= sum;
  if (combination->contributors > 2) CapShares(2.0 / combination->contributors, &combination->parts);
  return equal;
}

}  // namespace

Combination CombineWork(std::span<const WorkDone> work, const CombinationOptions& options) {
  Combination combination;
  combination.parts.resize(work.size());
  const double largest = LargestSum(work, options);
  for (std::size_t i = 0; i < work.size(); ++i) combination.parts[i].left_out = Judge(work[i], options, largest);
  const auto counts = [](const Combination::Part& part) { return part.left_out == LeftOut::kNo; };
  if (std::none_of(combination.parts.begin(), combination.parts.end(), counts)) {
    for (Combination::Part& part : combination.parts) {
      if (part.left_out != LeftOut::kTooLate) part.left_out = LeftOut::kNo;
    }
  }
  combination.contributors =
      static_cast<std::uint32_t>(std::count_if(combination.parts.begin(), combination.parts.end(), counts));
  AUTOLOCO_CHECK(combination.contributors > 0);

  const bool equal_shares = FillShares(work, options, &combination);
  double least = largest;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (!counts(combination.parts[i])) continue;
    least = std::min(least, LearningRateSum(work[i]));
    combination.learning_rate_sum += combination.parts[i].share * LearningRateSum(work[i]);
  }
  const bool equal_work = largest - least <= kEqualWorkTolerance * largest;
  combination.plain = equal_shares && equal_work;
  for (std::size_t i = 0; i < work.size(); ++i) {
    Combination::Part& part = combination.parts[i];
    if (!counts(part)) continue;
    if (combination.plain) part.share = 1.0 / combination.contributors;
    part.weight = equal_work ? part.share : combination.learning_rate_sum * part.share / LearningRateSum(work[i]);
  }
  return combination;
}

}  // namespace autoloco::server
