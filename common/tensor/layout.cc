#include "common/tensor/layout.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace autoloco {
namespace {

constexpr std::size_t kNameBytesMax = 256;
constexpr std::size_t kRankMax = 8;

// "model.norm.weight (128)"
std::string Describe(const TensorSpec& spec) {
  return absl::StrCat(spec.name, " (", absl::StrJoin(spec.shape, ", "), ")");
}

absl::Status ValidateName(const std::string& name, std::size_t index) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", index, ": want a name of 1 to ", kNameBytesMax, " bytes, got ", name.size()));
  }
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!printable) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", index, ": want a name of printable ASCII, got \"", absl::CHexEscape(name), "\""));
  }
  return absl::OkStatus();
}

// The number of values of `spec`: at least 1, at most Layout::kValuesMax.
absl::StatusOr<std::uint64_t> CountValues(const TensorSpec& spec) {
  if (spec.shape.empty() || spec.shape.size() > kRankMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", spec.name, ": want a rank of 1 to ", kRankMax, ", got ", spec.shape.size()));
  }
  std::uint64_t count = 1;
  for (const std::uint64_t extent : spec.shape) {
    if (extent == 0) return absl::InvalidArgumentError(absl::StrCat("tensor ", Describe(spec), ": an extent is 0"));
    if (extent > Layout::kValuesMax / count) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", Describe(spec), ": more than ", Layout::kValuesMax, " values"));
    }
    count *= extent;
  }
  return count;
}

template <typename Integer>
void AppendLittleEndian(Integer value, std::string* out) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// The bytes that the hash is over; common/tensor/README.md writes them down.
std::string Serialize(const std::vector<TensorEntry>& tensors) {
  std::string bytes;
  AppendLittleEndian(static_cast<std::uint32_t>(tensors.size()), &bytes);
  for (const TensorEntry& tensor : tensors) {
    AppendLittleEndian(static_cast<std::uint32_t>(tensor.spec.name.size()), &bytes);
    bytes += tensor.spec.name;
    AppendLittleEndian(static_cast<std::uint32_t>(tensor.spec.shape.size()), &bytes);
    for (const std::uint64_t extent : tensor.spec.shape) AppendLittleEndian(extent, &bytes);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<Layout> Layout::Make(std::vector<TensorSpec> tensors) {
  Layout layout;
  if (tensors.size() > kTensorsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout: want at most ", kTensorsMax, " tensors, got ", tensors.size()));
  }
  if (tensors.empty()) return layout;
  std::unordered_set<std::string> names;
  layout.tensors_.reserve(tensors.size());
  for (TensorSpec& spec : tensors) {
    AUTOLOCO_RETURN_IF_ERROR(ValidateName(spec.name, layout.tensors_.size()));
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", spec.name, ": the name is used twice"));
    }
    AUTOLOCO_ASSIGN_OR_RETURN(const std::uint64_t count, CountValues(spec));
    const std::uint64_t offset = layout.value_count_;
    if (count > kValuesMax - offset) {
      return absl::InvalidArgumentError(absl::StrCat("layout: more than ", kValuesMax, " values in all"));
    }
    layout.value_count_ += count;
    layout.tensors_.push_back({std::move(spec), offset, count});
  }
  const std::string bytes = Serialize(layout.tensors_);
  layout.hash_ = Hash64(std::as_bytes(std::span<const char>(bytes)));
  return layout;
}

const TensorEntry& Layout::TensorAt(std::uint64_t index) const {
  AUTOLOCO_CHECK(index < value_count_);
  const auto after = std::upper_bound(tensors_.begin(), tensors_.end(), index,
                                      [](std::uint64_t i, const TensorEntry& tensor) { return i < tensor.offset; });
  return *(after - 1);
}

std::string FirstDifference(const Layout& want, const Layout& got) {
  const std::size_t count = std::max(want.tensors().size(), got.tensors().size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string w = i < want.tensors().size() ? Describe(want.tensors()[i].spec) : "no more tensors";
    const std::string g = i < got.tensors().size() ? Describe(got.tensors()[i].spec) : "no more tensors";
    if (w != g) return absl::StrCat("tensor ", i, ": want ", w, ", got ", g);
  }
  return "";
}

}  // namespace autoloco
