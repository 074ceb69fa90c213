// The text that all runs of the benchmark see: training samples for each worker, i.i.d. or not, and held-out windows.
// What a worker reads depends on (seed, worker, step) alone, so all methods see the same text in the same order.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_TRAINING_TEXT_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_TRAINING_TEXT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"

namespace autoloco::bench {

enum class Sharding {
  kIid,     // every worker draws from the whole text
  kNonIid,  // every worker has an eighth of its own: pieces of 4 KiB, sorted by how much of them is lower-case letters
};

struct TextConfig {
  std::string path;  // as DatasetConfig
  std::uint32_t context = 64;
  std::uint32_t workers = 8;
  double held_out_fraction = 0.03;
};

// Immutable; thread-safe.
class TrainingText {
 public:
  // NOT_FOUND, INVALID_ARGUMENT: as Dataset::Open; a text too short to shard.
  static absl::StatusOr<std::unique_ptr<TrainingText>> Open(const TextConfig& config);

  const TextConfig& config() const { return config_; }
  std::uint64_t byte_count() const { return ordered_->token_count(); }
  std::uint64_t fingerprint() const { return ordered_->fingerprint(); }

  // The rows of the given worker's inner step: tokens is (rows, context + 1). REQUIRES: worker < config().workers.
  void ReadBatch(Sharding sharding, std::uint64_t seed, std::uint32_t worker, std::uint64_t step,
                 std::span<std::int32_t> tokens) const;
  // `count` held-out windows spread evenly, or all where there are fewer: (count, context + 1).
  std::vector<std::int32_t> HeldOut(std::uint64_t count) const;

 private:
  TrainingText() = default;
  void SortPieces();

  TextConfig config_;
  // The whole text as held-out windows: these are read in text order, by index.
  std::unique_ptr<worker::Dataset> ordered_;
  std::uint64_t training_windows_ = 0;  // of ordered_, before the part that is held out
  std::vector<std::uint32_t> pieces_;   // of kPieceWindows windows each, sorted for kNonIid
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_TRAINING_TEXT_H_
