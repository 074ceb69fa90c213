#include "server/runtime/push_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"

namespace autoloco::server {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// What was found, over all blocks: of each kind of defect the one that stands first.
class Findings {
 public:
  void AddBadBlock(std::uint64_t block, const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (block >= bad_block_) return;
    bad_block_ = block;
    status_ = status;
  }
  void AddNonFinite(std::uint64_t index, float value) {
    MutexLock lock(&mutex_);
    if (index >= non_finite_index_) return;
    non_finite_index_ = index;
    non_finite_value_ = value;
  }

  PushCheck Result(const Layout& layout) {
    MutexLock lock(&mutex_);
    PushCheck check;
    check.status = status_;
    if (status_.ok() && non_finite_index_ != kNone) {
      const TensorEntry& tensor = layout.TensorAt(non_finite_index_);
      check.finite = false;
      check.non_finite = absl::StrCat(tensor.spec.name, "[", non_finite_index_ - tensor.offset,
                                      "] = ", std::isnan(non_finite_value_) ? "nan" : "inf");
    }
    return check;
  }

 private:
  Mutex mutex_;
  std::uint64_t bad_block_ ABSL_GUARDED_BY(mutex_) = kNone;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t non_finite_index_ ABSL_GUARDED_BY(mutex_) = kNone;
  float non_finite_value_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The first value of the block that is not finite. REQUIRES: there is one.
void FindNonFinite(std::span<const std::byte> bytes, Codec codec, std::uint64_t index, std::size_t count,
                   BlockDecoder* decoder, Findings* findings) {
  std::vector<float> values(count);
  AUTOLOCO_CHECK(decoder->Decode(bytes, codec, static_cast<std::uint32_t>(index), values).ok());
  const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  AUTOLOCO_CHECK(bad != values.end());
  findings->AddNonFinite(index * kBlockValues + static_cast<std::uint64_t>(bad - values.begin()), *bad);
}

// Returns the sum of the values' squares. Squares of finite fp32 values never overflow fp64: only where the sum is not
// finite is a value not.
double CheckBlock(std::span<const std::byte> bytes, Codec codec, std::uint64_t index, std::size_t count,
                  BlockDecoder* decoder, Findings* findings) {
  double squares = 0;
  const absl::Status status = decoder->Check(bytes, codec, static_cast<std::uint32_t>(index), count, &squares);
  if (!status.ok()) {
    findings->AddBadBlock(index, status);
    return 0;
  }
  if (std::isfinite(squares)) return squares;
  FindNonFinite(bytes, codec, index, count, decoder, findings);
  return 0;
}

// In the order of the blocks: the same for every number of threads.
double NormOf(const std::vector<double>& squares) {
  double sum = 0;
  for (const double one : squares) sum += one;
  return std::sqrt(sum);
}

}  // namespace

PushCheck CheckPayload(std::span<const std::byte> payload, absl::string_view digest, const Layout& layout, Codec codec,
                       WorkPool* pool) {
  const std::string found = Digest128(payload);
  if (found != digest) {
    return {absl::DataLossError(absl::StrCat("push: want digest ", digest, " as announced, got ", found)), true, "", 0};
  }
  const absl::StatusOr<std::vector<std::uint64_t>> offsets = IndexBlocks(payload, layout.value_count(), codec);
  if (!offsets.ok()) return {offsets.status(), true, "", 0};

  std::vector<std::optional<BlockDecoder>> decoders(pool->thread_count());
  Findings findings;
  std::vector<double> squares(BlockCount(layout.value_count()));
  const auto check = [&](std::size_t index, std::size_t slot) {
    if (!decoders[slot]) decoders[slot].emplace();
    const std::uint64_t begin = (*offsets)[index];
    squares[index] = CheckBlock(payload.subspan(begin, (*offsets)[index + 1] - begin), codec, index,
                                BlockSize(layout.value_count(), index), &*decoders[slot], &findings);
  };
  pool->ParallelFor(squares.size(), check);
  PushCheck result = findings.Result(layout);
  if (result.status.ok() && result.finite) result.norm = NormOf(squares);
  return result;
}

}  // namespace autoloco::server
