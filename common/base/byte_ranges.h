// Ranges of bytes, and the set of those that are there: what has arrived of something that comes in pieces, in any
// order.
#ifndef AUTOLOCO_COMMON_BASE_BYTE_RANGES_H_
#define AUTOLOCO_COMMON_BASE_BYTE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace autoloco {

// [first, first + count).
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return first + count; }
  bool operator==(const ByteRange&) const = default;
};

// Not thread-safe. Holds one entry for each stretch without a gap.
class ByteRanges {
 public:
  // The parts of `range` that were not in the set before, in order. REQUIRES: its end is a number.
  std::vector<ByteRange> Add(ByteRange range);
  // Takes `range` out, as far as it is in the set. REQUIRES: its end is a number.
  void Remove(ByteRange range);

  // The parts of [0, size) that are not in the set, in order. Where there are more than `most`, the last one reaches to
  // the end of all of them, over what is there as well. REQUIRES: most > 0.
  std::vector<ByteRange> Missing(std::uint64_t size, std::size_t most) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by the first byte; neither overlapping nor adjacent
};

std::uint64_t TotalBytes(std::span<const ByteRange> ranges);

// The same bytes in at least `parts` pieces of about the same size, in order; in fewer when a piece would be shorter
// than `least`. REQUIRES: parts > 0, least > 0.
std::vector<ByteRange> SplitRanges(std::span<const ByteRange> ranges, std::size_t parts, std::uint64_t least);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_BYTE_RANGES_H_
