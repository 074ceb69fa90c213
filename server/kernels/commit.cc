#include "server/kernels/commit.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crash_point.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "server/kernels/in_order_digest.h"
#include "server/kernels/step_kernels.h"

namespace autoloco::server {
namespace {

// -0 + 0 is 0, and nothing else changes.
void DropNegativeZeros(std::span<float> values) {
  for (float& value : values) value += 0.0F;
}

StepScalars ToScalars(const OuterCoefficients& coefficients, bool plain_mean, std::size_t contributions) {
  StepScalars scalars;
  scalars.form = coefficients.corrected  ? StepForm::kCorrected
                 : coefficients.nesterov ? StepForm::kNesterov
                                         : StepForm::kMomentum;
  if (plain_mean) scalars.mean_factor = 1.0F / static_cast<float>(contributions);
  scalars.eta = static_cast<float>(coefficients.learning_rate);
  scalars.mu = static_cast<float>(coefficients.momentum);
  const CorrectedStep corrected = coefficients.corrected.value_or(CorrectedStep());
  scalars.a = static_cast<float>(corrected.a);
  scalars.c = static_cast<float>(corrected.c);
  scalars.p = static_cast<float>(corrected.p);
  scalars.g = static_cast<float>(corrected.g);
  return scalars;
}

// What one participant of the pass keeps in its cache; made on first use by its own thread.
struct Scratch {
  explicit Scratch(const std::optional<Coding>& broadcast) {
    if (broadcast) encoder.emplace(*broadcast);
  }

  BlockDecoder decoder;
  std::optional<BlockEncoder> encoder;
  std::vector<WeightedBlock> blocks;  // of the deltas
  std::vector<float> sum = std::vector<float>(kBlockValues);
  std::vector<std::vector<float>> rows;  // every delta's block, where they are not simply added
  std::string encoded;
};

// What one block gives.
struct BlockResult {
  StepSums sums;
  CodingReport coding;
  absl::Status error;
};

// One commit. Blocks may be processed in any order and at once.
class Pass {
 public:
  Pass(const CommitInputs& inputs, const CommitBuffers& buffers, std::size_t slots)
      : contributions_(inputs.contributions),
        combine_(inputs.coefficients.combine),
        broadcast_(inputs.broadcast),
        uniform_(HasUniformWeights(inputs.contributions)),
        scalars_(
            ToScalars(inputs.coefficients, uniform_ && combine_.kind == Combining::kMean, inputs.contributions.size())),
        kernels_(BestStepKernels()),
        buffers_(buffers),
        scratch_(slots),
        results_(BlockCount(buffers.params.size())),
        delta_sums_(results_.size() * contributions_.size()),
        blocks_(broadcast_ ? results_.size() : 0) {
    if (!broadcast_) return;
    params_digest_.emplace(buffers.params);
    if (!buffers.view.empty()) view_digest_.emplace(buffers.view);
  }

  std::size_t block_count() const { return results_.size(); }

  // Finds every payload's blocks. Changes nothing.
  absl::Status Index() {
    for (std::size_t c = 0; c < contributions_.size(); ++c) {
      auto offsets = IndexBlocks(contributions_[c].payload, buffers_.params.size(), contributions_[c].codec);
      if (!offsets.ok()) {
        return absl::Status(offsets.status().code(),
                            absl::StrCat("contribution ", c, ": ", offsets.status().message()));
      }
      offsets_.push_back(*std::move(offsets));
    }
    return absl::OkStatus();
  }

  void RunBlock(std::size_t block, std::size_t slot) {
    if (scratch_[slot] == nullptr) scratch_[slot] = std::make_unique<Scratch>(broadcast_);
    Scratch& scratch = *scratch_[slot];
    BlockResult& result = results_[block];
    const std::size_t begin = block * kBlockValues;
    const std::size_t n = BlockSize(buffers_.params.size(), block);
    result.error = Combine(block, n, &scratch);
    if (!result.error.ok()) return;
    if (buffers_.block_guard != nullptr) buffers_.block_guard->BeforeChange(block);
    float* const view = buffers_.view.empty() ? nullptr : buffers_.view.data() + begin;
    const StepBlock values = {scratch.sum.data(), buffers_.momentum.data() + begin, buffers_.params.data() + begin, view,
                              n};
    StepScalars scalars = scalars_;
    if (view != nullptr) kernels_.remove_echo(std::exchange(scalars.mean_factor, 1.0F), values);
    result.sums = kernels_.Apply(scalars, values);
    if (!broadcast_) return;
    // A run that diverged has nothing to send; the statistics say it.
    if (std::isfinite(result.sums.params)) Broadcast(block, n, view, &scratch);
    params_digest_->OnBlock(block);
    if (view_digest_) view_digest_->OnBlock(block);
  }

  // After all blocks: the first error by block, or everything in the order of the blocks.
  absl::StatusOr<CommitResult> Finish() {
    for (const BlockResult& block : results_) AUTOLOCO_RETURN_IF_ERROR(block.error);
    CommitResult result;
    OuterStepStatistics& statistics = result.statistics;
    statistics.delta_squared_norms.assign(contributions_.size(), 0.0);
    for (std::size_t block = 0; block < results_.size(); ++block) {
      for (std::size_t c = 0; c < contributions_.size(); ++c) {
        statistics.delta_squared_norms[c] += delta_sums_[block * contributions_.size() + c];
      }
      statistics.mean_delta_squared_norm += results_[block].sums.mean;
      statistics.momentum_squared_norm += results_[block].sums.momentum;
      statistics.params_squared_norm += results_[block].sums.params;
      result.coding += results_[block].coding;
    }
    // Squares of finite floats neither overflow nor lose a NaN in fp64: the sums tell whether all values are finite.
    statistics.finite = std::isfinite(statistics.momentum_squared_norm) &&
                        std::isfinite(statistics.params_squared_norm) &&
                        (!broadcast_ || result.coding.values == buffers_.params.size());
    if (broadcast_) {
      result.blocks = std::move(blocks_);
      result.params_digest = params_digest_->Finish();
      result.view_digest = view_digest_ ? view_digest_->Finish() : result.params_digest;
    }
    return result;
  }

 private:
  std::span<const std::byte> BlockOf(std::size_t c, std::size_t block) const {
    const std::uint64_t offset = offsets_[c][block];
    return contributions_[c].payload.subspan(offset, offsets_[c][block + 1] - offset);
  }

  static absl::Status Damaged(std::size_t c, const absl::Status& status) {
    return absl::InternalError(absl::StrCat("commit: contribution ", c, ": ", status.message(),
                                            "; parameters are partly updated and must not be used"));
  }

  // Leaves the weighed deltas added up in scratch->sum (the plain mean times their number) and each |d_i|^2 of this
  // block in delta_sums_.
  absl::Status Combine(std::size_t block, std::size_t n, Scratch* scratch) {
    if (combine_.kind != Combining::kMean) return CombineRobustly(block, n, scratch);
    scratch->blocks.clear();
    for (std::size_t c = 0; c < contributions_.size(); ++c) {
      const float weight = uniform_ ? 1.0F : static_cast<float>(contributions_[c].weight);
      scratch->blocks.push_back({BlockOf(c, block), contributions_[c].codec, weight});
    }
    const std::span<double> norms(&delta_sums_[block * contributions_.size()], contributions_.size());
    std::size_t damaged = 0;
    const absl::Status summed = scratch->decoder.Sum(scratch->blocks, static_cast<std::uint32_t>(block),
                                                     {scratch->sum.data(), n}, norms, &damaged);
    return summed.ok() ? summed : Damaged(damaged, summed);
  }

  absl::Status CombineRobustly(std::size_t block, std::size_t n, Scratch* scratch) {
    scratch->rows.resize(contributions_.size());
    for (std::size_t c = 0; c < contributions_.size(); ++c) {
      scratch->rows[c].resize(kBlockValues);
      const std::span<float> row(scratch->rows[c].data(), n);
      const absl::Status decoded =
          scratch->decoder.Decode(BlockOf(c, block), contributions_[c].codec, static_cast<std::uint32_t>(block), row,
                                  &delta_sums_[block * contributions_.size() + c]);
      if (!decoded.ok()) return Damaged(c, decoded);
      if (!uniform_) kernels_.scale(VoteScale(contributions_, c), row.data(), n);
      DropNegativeZeros(row);
    }
    CombineRows(combine_, &scratch->rows, n, scratch->sum.data());
    return absl::OkStatus();
  }

  // Encodes the block, and takes the view along. A difference that overflows cannot be sent: its values are missing in
  // the report then.
  void Broadcast(std::size_t block, std::size_t n, float* view, Scratch* scratch) {
    const auto index = static_cast<std::uint32_t>(block);
    scratch->encoded.clear();
    absl::StatusOr<CodingReport> report = CodingReport();
    const auto change = [&] {
      report = scratch->encoder->EncodeAndAdd(index, {scratch->sum.data(), n}, {view, n}, &scratch->encoded);
    };
    if (view == nullptr) {
      report = scratch->encoder->Encode(index, buffers_.params.subspan(block * kBlockValues, n), &scratch->encoded);
    } else if (buffers_.view_guard != nullptr) {
      buffers_.view_guard->Change(block, change);
    } else {
      change();
    }
    if (!report.ok()) return;
    results_[block].coding = *report;
    blocks_[block].assign(scratch->encoded);  // no more memory than it needs
  }

  const std::span<const Contribution> contributions_;
  const CombineRule combine_;
  const std::optional<Coding> broadcast_;
  const bool uniform_;
  const StepScalars scalars_;
  const StepKernels& kernels_;
  const CommitBuffers buffers_;
  std::vector<std::vector<std::uint64_t>> offsets_;  // by contribution: where its blocks lie
  std::vector<std::unique_ptr<Scratch>> scratch_;    // by slot
  std::vector<BlockResult> results_;                 // by block
  std::vector<double> delta_sums_;                   // by block, then contribution
  std::vector<std::string> blocks_;                  // by block
  std::optional<InOrderDigest> params_digest_;
  std::optional<InOrderDigest> view_digest_;
};

}  // namespace

absl::StatusOr<CommitResult> Commit(const CommitInputs& inputs, const CommitBuffers& buffers, WorkPool* pool) {
  AUTOLOCO_CHECK(buffers.params.size() == buffers.momentum.size());
  const bool lossy = inputs.broadcast.has_value() && !IsLossless(inputs.broadcast->codec);
  AUTOLOCO_CHECK(buffers.view.size() == (lossy ? buffers.params.size() : 0));
  AUTOLOCO_RETURN_IF_ERROR(ValidateOuterStep(inputs.contributions, inputs.coefficients));
  Pass pass(inputs, buffers, pool->thread_count());
  AUTOLOCO_RETURN_IF_ERROR(pass.Index());
  pool->ParallelFor(pass.block_count(), [&pass](std::size_t block, std::size_t slot) {
    pass.RunBlock(block, slot);
    CrashPoint("commit_middle");
  });
  return pass.Finish();
}

}  // namespace autoloco::server
