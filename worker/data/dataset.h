// Training samples and held-out windows of one dataset, by index. Stateless: what is read depends on the index alone,
// so a lease of sample numbers says exactly which text an interval sees.
#ifndef AUTOLOCO_WORKER_DATA_DATASET_H_
#define AUTOLOCO_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco::worker {

struct DatasetConfig {
  std::string path;  // text file, or folder of them (regular files, read in name order, recursively)
  std::uint32_t context = 128;
  double held_out_fraction = 0.03;  // the last part of the text
  std::uint64_t seed = 1;           // of the shuffle
};

// Byte tokens over memory-mapped text. Immutable, thread-safe.
class Dataset {
 public:
  // NOT_FOUND, INVALID_ARGUMENT (no file, an empty file, text too short for one window in either part: message names
  // file, what was expected and found).
  static absl::StatusOr<std::unique_ptr<Dataset>> Open(const DatasetConfig& config);
  virtual ~Dataset() = default;

  virtual std::uint64_t token_count() const = 0;
  // Windows of context + 1 tokens that do not overlap in their targets: samples of one epoch.
  virtual std::uint64_t sample_count() const = 0;
  virtual std::uint64_t held_out_count() const = 0;  // windows of the held-out part
  // XXH3-64 over the file sizes and contents (large files: sizes and sampled pieces): equal data, equal hashes.
  virtual std::uint64_t fingerprint() const = 0;

  // Sample `index` of the endless shuffled order: epoch index / sample_count(), and within it a permutation seeded by
  // (seed, epoch). Fills `tokens`, context + 1 of them.
  virtual void ReadSample(std::uint64_t index, std::span<std::int32_t> tokens) const = 0;
  // Held-out window `index`, in text order. REQUIRES: index < held_out_count().
  virtual void ReadHeldOut(std::uint64_t index, std::span<std::int32_t> tokens) const = 0;
};

// Index of the i-th of `wanted` held-out windows spread evenly over `available`: floor(i * available / wanted), or i
// when fewer are available. REQUIRES: i < min(wanted, available).
std::uint64_t SpreadIndex(std::uint64_t i, std::uint64_t wanted, std::uint64_t available);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_DATA_DATASET_H_
