#include "common/config/suggest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace autoloco {
namespace {

constexpr std::size_t kNameBytesMax = 128;  // longer names are nobody's typing error
constexpr std::size_t kDistanceMax = 3;

// Optimal string alignment distance.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> distance((a.size() + 1) * columns);
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      std::size_t& cell = distance[i * columns + j];
      if (i == 0 || j == 0) {
        cell = i + j;
        continue;
      }
      const std::size_t replaced = distance[(i - 1) * columns + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cell = std::min({distance[(i - 1) * columns + j] + 1, distance[i * columns + j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cell = std::min(cell, distance[(i - 2) * columns + j - 2] + 1);
      }
    }
  }
  return distance.back();
}

}  // namespace

std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates) {
  if (name.size() > kNameBytesMax) return "";
  const std::string lower = absl::AsciiStrToLower(name);
  std::size_t best_distance = std::min(kDistanceMax, std::max<std::size_t>(1, name.size() / 3)) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

}  // namespace autoloco
