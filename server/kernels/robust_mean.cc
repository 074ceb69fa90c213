#include "server/kernels/robust_mean.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace autoloco::server {
namespace {

// Values of one row that are worked on at a time: all rows of a tile stay in cache.
constexpr std::size_t kTile = 1024;
// floor(0.2 x 5) is 1, though 0.2 x 5 may come out a little below.
constexpr double kTrimRounding = 1e-9;

// Afterwards low[i] <= high[i] for every i.
void Exchange(float* __restrict low, float* __restrict high, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float a = low[i];
    const float b = high[i];
    low[i] = b < a ? b : a;
    high[i] = b < a ? a : b;
  }
}

// Sorts the n values of every column, by odd-even transposition: only whole rows meet, so that it runs in vectors.
void SortColumns(std::vector<std::vector<float>>* rows, std::size_t begin, std::size_t n) {
  const std::size_t count = rows->size();
  for (std::size_t pass = 0; pass < count; ++pass) {
    for (std::size_t row = pass % 2; row + 1 < count; row += 2) {
      Exchange((*rows)[row].data() + begin, (*rows)[row + 1].data() + begin, n);
    }
  }
}

}  // namespace

std::size_t TrimmedAtEachEnd(double trim_share, std::size_t count) {
  AUTOLOCO_CHECK(count > 0);
  const auto wanted = static_cast<std::size_t>(std::floor(trim_share * static_cast<double>(count) + kTrimRounding));
  return std::min(wanted, (count - 1) / 2);
}

void CombineRows(const CombineRule& rule, std::vector<std::vector<float>>* rows, std::size_t count, float* result) {
  AUTOLOCO_CHECK(rule.kind != Combining::kMean);
  const std::size_t voters = rows->size();
  // The median is what remains when all but one or two are cut off.
  const bool median = rule.kind == Combining::kMedian;
  const std::size_t cut = median ? (voters - 1) / 2 : TrimmedAtEachEnd(rule.trim_share, voters);
  const std::size_t kept = voters - 2 * cut;
  const float factor = 1.0f / static_cast<float>(kept);
  for (std::size_t begin = 0; begin < count; begin += kTile) {
    const std::size_t n = std::min(kTile, count - begin);
    SortColumns(rows, begin, n);
    float* __restrict out = result + begin;
    std::copy_n((*rows)[cut].data() + begin, n, out);
    for (std::size_t row = cut + 1; row < cut + kept; ++row) {
      const float* __restrict values = (*rows)[row].data() + begin;
      for (std::size_t i = 0; i < n; ++i) out[i] += values[i];
    }
    if (kept == 1) continue;
    for (std::size_t i = 0; i < n; ++i) out[i] *= factor;
  }
}

float CombineValues(const CombineRule& rule, std::vector<float> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  if (rule.kind == Combining::kMedian) {
    return n % 2 == 1 ? values[n / 2] : 0.5f * (values[n / 2 - 1] + values[n / 2]);
  }
  const std::size_t cut = TrimmedAtEachEnd(rule.trim_share, n);
  float sum = values[cut];
  for (std::size_t i = cut + 1; i < n - cut; ++i) sum = sum + values[i];
  return n - 2 * cut == 1 ? sum : sum * (1.0f / static_cast<float>(n - 2 * cut));
}

}  // namespace autoloco::server
