#include "common/base/byte_ranges.h"

#include <algorithm>
#include <iterator>

namespace autoloco {

std::vector<ByteRange> ByteRanges::Add(ByteRange range) {
  std::vector<ByteRange> added;
  if (range.count == 0) return added;
  std::uint64_t first = range.first;
  std::uint64_t end = range.end();
  std::uint64_t covered = range.first;  // of `range`, so far
  auto it = ends_.upper_bound(range.first);
  if (it != ends_.begin() && std::prev(it)->second >= range.first) --it;
  while (it != ends_.end() && it->first <= range.end()) {
    if (it->first > covered) added.push_back({covered, it->first - covered});
    covered = std::max(covered, it->second);
    first = std::min(first, it->first);
    end = std::max(end, it->second);
    it = ends_.erase(it);
  }
  if (covered < range.end()) added.push_back({covered, range.end() - covered});
  ends_[first] = end;
  return added;
}

void ByteRanges::Remove(ByteRange range) {
  auto it = ends_.upper_bound(range.first);
  if (it != ends_.begin() && std::prev(it)->second > range.first) --it;
  while (it != ends_.end() && it->first < range.end()) {
    const auto [first, end] = *it;
    it = ends_.erase(it);
    if (first < range.first) ends_[first] = range.first;
    if (end > range.end()) ends_[range.end()] = end;
  }
}

std::vector<ByteRange> ByteRanges::Missing(std::uint64_t size, std::size_t most) const {
  std::vector<ByteRange> missing;
  std::uint64_t covered = 0;
  const auto add = [&](std::uint64_t end) {
    if (end <= covered) return;
    if (missing.size() < most) {
      missing.push_back({covered, end - covered});
    } else {
      missing.back().count = end - missing.back().first;
    }
  };
  for (const auto& [first, end] : ends_) {
    add(std::min(first, size));
    covered = std::max(covered, end);
  }
  add(size);
  return missing;
}

std::uint64_t TotalBytes(std::span<const ByteRange> ranges) {
  std::uint64_t total = 0;
  for (const ByteRange& range : ranges) total += range.count;
  return total;
}

std::vector<ByteRange> SplitRanges(std::span<const ByteRange> ranges, std::size_t parts, std::uint64_t least) {
  const std::uint64_t total = TotalBytes(ranges);
  const std::uint64_t size = std::max((total + parts - 1) / parts, least);
  std::vector<ByteRange> pieces;
  for (const ByteRange& range : ranges) {
    for (std::uint64_t first = range.first; first < range.end(); first += size) {
      pieces.push_back({first, std::min(size, range.end() - first)});
    }
  }
  return pieces;
}

}  // namespace autoloco
