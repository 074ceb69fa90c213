#include "server/kernels/outer_step.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crash_point.h"
#include "common/base/status_macros.h"

namespace autoloco::server {
namespace {

constexpr double kWeightSumTolerance = 1e-9;

// Sum of squares in fp64. Eight partial sums, value i in sum i mod 8, added up in a fixed order: the same on every
// machine, and free to run in vector registers.
double SumOfSquares(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i + lane < values.size(); ++lane) {
    const double value = values[i + lane];
    lanes[lane] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// D = d, D += d, D = p d, D += p d, D *= s. Operands of one call do not overlap.
void Add(const float* __restrict d, float* __restrict sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += d[i];
}
void Scale(float factor, float* sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] *= factor;
}
void AddScaled(float factor, const float* __restrict d, float* __restrict sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += factor * d[i];
}

struct StepNumbers {
  explicit StepNumbers(const OuterCoefficients& coefficients)
      : eta(static_cast<float>(coefficients.learning_rate)),
        mu(static_cast<float>(coefficients.momentum)),
        nesterov(coefficients.nesterov),
        corrected(coefficients.corrected.has_value()) {
    const CorrectedStep scalars = coefficients.corrected.value_or(CorrectedStep());
    a = static_cast<float>(scalars.a);
    c = static_cast<float>(scalars.c);
    p = static_cast<float>(scalars.p);
    g = static_cast<float>(scalars.g);
  }
  float eta;
  float mu;
  bool nesterov;
  bool corrected;
  float a;
  float c;
  float p;
  float g;
};

void Correct(const StepNumbers& numbers, const float* __restrict mean, float* __restrict params,
             float* __restrict momentum, std::size_t n) {
  const StepNumbers s = numbers;
  for (std::size_t i = 0; i < n; ++i) {
    const float b = momentum[i];
    params[i] -= s.eta * (s.a * mean[i] + s.c * b);
    momentum[i] = s.p * b + s.g * mean[i];
  }
}

void Step(const StepNumbers& numbers, const float* __restrict mean, float* __restrict params,
          float* __restrict momentum, std::size_t n) {
  const float eta = numbers.eta;
  const float mu = numbers.mu;
  if (numbers.corrected) {
    Correct(numbers, mean, params, momentum, n);
  } else if (numbers.nesterov) {
    for (std::size_t i = 0; i < n; ++i) {
      const float b = mu * momentum[i] + mean[i];
      momentum[i] = b;
      params[i] -= eta * (mean[i] + mu * b);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const float b = mu * momentum[i] + mean[i];
      momentum[i] = b;
      params[i] -= eta * b;
    }
  }
}

// What one participant of the pass keeps in its cache; made on first use by its own thread.
struct Scratch {
  BlockDecoder decoder;
  std::vector<float> mean = std::vector<float>(kBlockValues);
  std::vector<float> delta = std::vector<float>(kBlockValues);
};

// One block's share of the statistics.
struct BlockSums {
  double mean_delta = 0;
  double momentum = 0;
  double params = 0;
};

// One commit. Blocks may be processed in any order and at once.
class Pass {
 public:
  Pass(std::span<const Contribution> contributions, const OuterCoefficients& coefficients, std::span<float> params,
       std::span<float> momentum, std::size_t slots)
      : contributions_(contributions),
        numbers_(coefficients),
        uniform_(HasUniformWeights(contributions)),
        params_(params),
        momentum_(momentum),
        scratch_(slots),
        sums_(BlockCount(params.size())),
        delta_sums_(sums_.size() * contributions.size()),
        errors_(sums_.size()) {}

  std::size_t block_count() const { return sums_.size(); }

  // Finds every payload's blocks. Changes nothing.
  absl::Status Index() {
    for (std::size_t c = 0; c < contributions_.size(); ++c) {
      auto offsets = IndexBlocks(contributions_[c].payload, params_.size(), contributions_[c].codec);
      if (!offsets.ok()) return WithContribution(offsets.status(), c);
      offsets_.push_back(*std::move(offsets));
    }
    return absl::OkStatus();
  }

  void RunBlock(std::size_t block, std::size_t slot) {
    if (scratch_[slot] == nullptr) scratch_[slot] = std::make_unique<Scratch>();
    Scratch& scratch = *scratch_[slot];
    const std::size_t begin = block * kBlockValues;
    const std::size_t n = BlockSize(params_.size(), block);
    errors_[block] = Combine(block, n, &scratch);
    if (!errors_[block].ok()) return;
    Step(numbers_, scratch.mean.data(), params_.data() + begin, momentum_.data() + begin, n);
    sums_[block] = {SumOfSquares({scratch.mean.data(), n}), SumOfSquares(momentum_.subspan(begin, n)),
                    SumOfSquares(params_.subspan(begin, n))};
  }

  // After all blocks: the first error by block, or the sums in the order of the blocks.
  absl::StatusOr<OuterStepStatistics> Finish() const {
    for (const absl::Status& error : errors_) AUTOLOCO_RETURN_IF_ERROR(error);
    OuterStepStatistics statistics;
    statistics.delta_squared_norms.assign(contributions_.size(), 0.0);
    for (std::size_t block = 0; block < sums_.size(); ++block) {
      for (std::size_t c = 0; c < contributions_.size(); ++c) {
        statistics.delta_squared_norms[c] += delta_sums_[block * contributions_.size() + c];
      }
      statistics.mean_delta_squared_norm += sums_[block].mean_delta;
      statistics.momentum_squared_norm += sums_[block].momentum;
      statistics.params_squared_norm += sums_[block].params;
    }
    // Squares of finite floats neither overflow nor lose a NaN in fp64: the sums tell whether all values are finite.
    statistics.finite =
        std::isfinite(statistics.momentum_squared_norm) && std::isfinite(statistics.params_squared_norm);
    return statistics;
  }

 private:
  static absl::Status WithContribution(const absl::Status& status, std::size_t contribution) {
    return absl::Status(status.code(), absl::StrCat("contribution ", contribution, ": ", status.message()));
  }

  // Leaves D in scratch->mean and each |d_i|^2 of this block in delta_sums_.
  absl::Status Combine(std::size_t block, std::size_t n, Scratch* scratch) {
    for (std::size_t c = 0; c < contributions_.size(); ++c) {
      std::vector<float>& target = c == 0 ? scratch->mean : scratch->delta;
      const std::uint64_t offset = offsets_[c][block];
      const std::span<const std::byte> bytes =
          contributions_[c].payload.subspan(offset, offsets_[c][block + 1] - offset);
      const absl::Status decoded = scratch->decoder.Decode(bytes, contributions_[c].codec,
                                                           static_cast<std::uint32_t>(block), {target.data(), n});
      if (!decoded.ok()) {
        return absl::InternalError(absl::StrCat("commit: contribution ", c, ": ", decoded.message(),
                                                "; parameters are partly updated and must not be used"));
      }
      delta_sums_[block * contributions_.size() + c] = SumOfSquares({target.data(), n});
      const auto weight = static_cast<float>(contributions_[c].weight);
      if (c == 0) {
        if (!uniform_) Scale(weight, target.data(), n);
      } else if (uniform_) {
        Add(target.data(), scratch->mean.data(), n);
      } else {
        AddScaled(weight, target.data(), scratch->mean.data(), n);
      }
    }
    if (uniform_ && contributions_.size() > 1) {
      Scale(1.0f / static_cast<float>(contributions_.size()), scratch->mean.data(), n);
    }
    return absl::OkStatus();
  }

  const std::span<const Contribution> contributions_;
  const StepNumbers numbers_;
  const bool uniform_;
  const std::span<float> params_;
  const std::span<float> momentum_;
  std::vector<std::vector<std::uint64_t>> offsets_;  // by contribution: where its blocks lie
  std::vector<std::unique_ptr<Scratch>> scratch_;    // by slot
  std::vector<BlockSums> sums_;                      // by block
  std::vector<double> delta_sums_;                   // by block, then contribution
  std::vector<absl::Status> errors_;                 // by block
};

}  // namespace

bool HasUniformWeights(std::span<const Contribution> contributions) {
  const double uniform = 1.0 / static_cast<double>(contributions.size());
  return std::all_of(contributions.begin(), contributions.end(), [uniform](const Contribution& contribution) {
    return contribution.weight == uniform;
  });
}

absl::Status ValidateOuterStep(std::span<const Contribution> contributions, const OuterCoefficients& coefficients) {
  if (contributions.empty()) return absl::InvalidArgumentError("outer step: no contribution");
  double sum = 0;
  for (std::size_t c = 0; c < contributions.size(); ++c) {
    const double weight = contributions[c].weight;
    if (!std::isfinite(weight) || weight <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("outer step: contribution ", c, ": want a positive weight, got ", weight));
    }
    sum += weight;
  }
  if (sum < 1 - kWeightSumTolerance || sum > kWeightSumMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("outer step: want weights that sum to 1, or to at most ", kWeightSumMax, ", got ", sum));
  }
  if (!std::isfinite(coefficients.learning_rate) || !std::isfinite(coefficients.momentum)) {
    return absl::InvalidArgumentError(absl::StrCat("outer step: learning rate ", coefficients.learning_rate,
                                                   " and momentum ", coefficients.momentum, " must be finite"));
  }
  const CorrectedStep scalars = coefficients.corrected.value_or(CorrectedStep());
  for (const double scalar : {scalars.a, scalars.c, scalars.p, scalars.g}) {
    if (std::isfinite(scalar)) continue;
    return absl::InvalidArgumentError(absl::StrCat("outer step: want finite scalars of the correction, got ", scalar));
  }
  return absl::OkStatus();
}

absl::StatusOr<OuterStepStatistics> ApplyOuterStep(std::span<const Contribution> contributions,
                                                   const OuterCoefficients& coefficients, std::span<float> params,
                                                   std::span<float> momentum, WorkPool* pool) {
  AUTOLOCO_CHECK(params.size() == momentum.size());
  AUTOLOCO_RETURN_IF_ERROR(ValidateOuterStep(contributions, coefficients));
  Pass pass(contributions, coefficients, params, momentum, pool->thread_count());
  AUTOLOCO_RETURN_IF_ERROR(pass.Index());
  pool->ParallelFor(pass.block_count(), [&pass](std::size_t block, std::size_t slot) {
    pass.RunBlock(block, slot);
    CrashPoint("commit_middle");
  });
  return pass.Finish();
}

}  // namespace autoloco::server
