// The layout: which tensor lies where in the flat fp32 parameter vector.
#ifndef AUTOLOCO_COMMON_TENSOR_LAYOUT_H_
#define AUTOLOCO_COMMON_TENSOR_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

struct TensorSpec {
  std::string name;
  std::vector<std::uint64_t> shape;  // row-major; every extent at least 1; rank 1 to 8
};

struct TensorEntry {
  TensorSpec spec;
  std::uint64_t offset;  // values from the start of the flat vector
  std::uint64_t count;   // values
};

// Ordered tensors without gaps. Immutable; thread-safe.
class Layout {
 public:
  // An empty layout: no tensors.
  Layout() = default;

  // INVALID_ARGUMENT: a name is empty, longer than 256 bytes, not printable ASCII or used twice, an extent is 0, a
  // rank is 0 or above 8, or there are more than kTensorsMax tensors or kValuesMax values in all.
  static absl::StatusOr<Layout> Make(std::vector<TensorSpec> tensors);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  std::uint64_t value_count() const { return value_count_; }

  // XXH3-64 of the serialized layout (common/tensor/README.md gives the bytes): equal layouts, equal hashes, on every
  // machine.
  std::uint64_t hash() const { return hash_; }

  // The tensor that holds the value at `index` of the flat vector. REQUIRES: index < value_count().
  const TensorEntry& TensorAt(std::uint64_t index) const;

  static constexpr std::uint64_t kTensorsMax = 1u << 20;
  static constexpr std::uint64_t kValuesMax = std::uint64_t{1} << 40;

 private:
  std::vector<TensorEntry> tensors_;
  std::uint64_t value_count_ = 0;
  std::uint64_t hash_ = 0;
};

// One sentence naming the first difference, e.g. "tensor 3: want model.norm.weight (128), got model.norm.weight (64)";
// empty when the layouts are equal.
std::string FirstDifference(const Layout& want, const Layout& got);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_LAYOUT_H_
