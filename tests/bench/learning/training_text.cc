#include "tests/bench/learning/training_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace autoloco::bench {
namespace {

constexpr std::uint64_t kPieceBytes = 4096;
constexpr std::uint64_t kOrderStream = 0x62656e6368;

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingText>> TrainingText::Open(const TextConfig& config) {
  auto text = std::unique_ptr<TrainingText>(new TrainingText());
  text->config_ = config;
  // Everything but one window at the start is "held out", which is how a dataset reads in order.
  AUTOLOCO_ASSIGN_OR_RETURN(const auto whole, worker::Dataset::Open({config.path, config.context, 0, 1}));
  const double skipped = 2.0 * (config.context + 1) / static_cast<double>(whole->token_count());
  if (skipped >= 0.01) {
    return absl::InvalidArgumentError(absl::StrCat("text ", config.path, ": want at least ", 200 * (config.context + 1),
                                                   " bytes, found ", whole->token_count()));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(text->ordered_, worker::Dataset::Open({config.path, config.context, 1 - skipped, 1}));
  const auto windows = static_cast<double>(text->ordered_->held_out_count());
  text->training_windows_ = static_cast<std::uint64_t>(windows * (1 - config.held_out_fraction));
  text->SortPieces();
  if (text->pieces_.size() < config.workers) {
    return absl::InvalidArgumentError(absl::StrCat("text ", config.path, ": want at least ", config.workers,
                                                   " pieces of ", kPieceBytes, " bytes to shard, found ",
                                                   text->pieces_.size()));
  }
  return text;
}

void TrainingText::SortPieces() {
  const std::uint64_t piece_windows = std::max<std::uint64_t>(1, kPieceBytes / config_.context);
  const std::uint64_t count = training_windows_ / piece_windows;
  std::vector<std::uint32_t> letters(count, 0);
  std::vector<std::int32_t> window(std::size_t{config_.context} + 1);
  for (std::uint64_t piece = 0; piece < count; ++piece) {
    for (std::uint64_t i = 0; i < piece_windows; ++i) {
      ordered_->ReadHeldOut(piece * piece_windows + i, window);
      letters[piece] += static_cast<std::uint32_t>(std::count_if(
          window.begin() + 1, window.end(), [](std::int32_t token) { return token >= 'a' && token <= 'z'; }));
    }
  }
  pieces_.resize(count);
  std::iota(pieces_.begin(), pieces_.end(), 0U);
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return letters[a] < letters[b]; });
}

void TrainingText::ReadBatch(Sharding sharding, std::uint64_t seed, std::uint32_t worker, std::uint64_t step,
                             std::span<std::int32_t> tokens) const {
  const std::uint64_t columns = std::uint64_t{config_.context} + 1;
  const std::uint64_t rows = tokens.size() / columns;
  const std::uint64_t piece_windows = std::max<std::uint64_t>(1, kPieceBytes / config_.context);
  // A worker's windows: all of the text for kIid, else those of its run of sorted pieces.
  const std::uint64_t first = sharding == Sharding::kIid ? 0 : pieces_.size() * worker / config_.workers;
  const std::uint64_t last = sharding == Sharding::kIid ? 0 : pieces_.size() * (worker + 1) / config_.workers;
  const std::uint64_t available = sharding == Sharding::kIid ? training_windows_ : (last - first) * piece_windows;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t sample =
        sharding == Sharding::kIid ? (step * config_.workers + worker) * rows + row : step * rows + row;
    const Permutation order(available, Mix(seed, kOrderStream, sample / available));
    std::uint64_t window = order.At(sample % available);
    if (sharding == Sharding::kNonIid) {
      window = pieces_[first + window / piece_windows] * piece_windows + window % piece_windows;
    }
    ordered_->ReadHeldOut(window, tokens.subspan(row * columns, columns));
  }
}

std::vector<std::int32_t> TrainingText::HeldOut(std::uint64_t count) const {
  const std::uint64_t available = ordered_->held_out_count() - training_windows_;
  const std::uint64_t windows = std::min(count, available);
  const std::uint64_t columns = std::uint64_t{config_.context} + 1;
  std::vector<std::int32_t> tokens(windows * columns);
  for (std::uint64_t i = 0; i < windows; ++i) {
    ordered_->ReadHeldOut(training_windows_ + worker::SpreadIndex(i, windows, available),
                          std::span(tokens).subspan(i * columns, columns));
  }
  return tokens;
}

}  // namespace autoloco::bench
