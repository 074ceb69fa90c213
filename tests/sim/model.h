// The small arithmetic of the simulation: a model of a few values in a few blocks, an inner optimizer in the shape of
// AdamW, and error feedback over the product's codec, both ways. The quantizer's units have a full mantissa, so that
// sums depend on their order. A delta is a pure function of base, assignment and the worker's own state, and no value
// is like another: a wrong base, another order of a sum, a delta twice or a lost residual change the numbers.
#ifndef AUTOLOCO_TESTS_SIM_MODEL_H_
#define AUTOLOCO_TESTS_SIM_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/tensor/layout.h"
#include "server/core/commit_method.h"
#include "server/core/effects.h"
#include "worker/core/types.h"

namespace autoloco::sim {

using Values = std::vector<float>;

inline constexpr std::size_t kValues = 6;
inline constexpr std::size_t kBlockSize = 2;  // of what is sent of a new version
inline constexpr std::size_t kBlocks = kValues / kBlockSize;
inline constexpr Coding kDeltaCoding = {.codec = Codec::kRms4, .step = 1.5};
inline constexpr std::uint32_t kBatch = 2;
inline constexpr std::uint64_t kTokensPerSample = 16;
inline constexpr double kLearningRate = 0.02;

const Layout& ModelLayout();
Values InitialValues(std::uint64_t seed);
std::string DigestOf(const Values& values);

// What a worker carries from interval to interval.
struct TrainerState {
  Values first = Values(kValues, 0.0f);   // moving mean of the gradient
  Values second = Values(kValues, 0.0f);  // and of its square
  std::uint64_t steps = 0;
  Values residual = Values(kValues, 0.0f);  // what coding has lost so far
  bool operator==(const TrainerState&) const = default;
};

// One trained interval; encoded once it is.
struct Delta {
  worker::Assignment assignment;
  worker::Identity owner;  // the incarnation that it was trained as
  std::string base_digest;
  Values exact;
  std::string payload;
  std::string digest;  // of the payload
  worker::IntervalReport report;
  TrainerState before;
  TrainerState after;  // residual included: valid once the delta was accepted
};

// Trains the first `steps` of the interval from `base`. `data`: which data the samples are of; `step_seconds` goes into
// the report. `scale` times the delta is sent: 1, unless the worker is broken. Not encoded yet: the residuals are those
// of `state`.
Delta TrainInterval(const Values& base, const worker::Assignment& assignment, std::uint32_t steps,
                    const TrainerState& state, std::uint64_t data, double step_seconds, float scale);
// What is sent is the delta plus `residual`; delta->after has what is left of it.
void EncodeDelta(const Values& residual, Delta* delta);
// L2, of a payload that decodes.
double NormOf(const std::string& payload);

worker::EvaluationPart Evaluate(const Values& base, const worker::Assignment& assignment);

// Parameters and momentum of one version.
struct Parameters {
  Values values;
  Values momentum = Values(kValues, 0.0f);
  Values view = {};  // what the workers hold; empty: the values themselves
  const Values& View() const { return view.empty() ? values : view; }
  bool operator==(const Parameters&) const = default;
};
// Of a new run.
Parameters InitialParameters(std::uint64_t seed, const server::CommitMethod& method);
// Of values and view.
std::string DigestOf(const Parameters& parameters);

// What is sent of a version, by block: of the values where there is no view, or of the change of the view.
using CodedBlocks = std::vector<std::string>;
std::string CodedFp32(const Values& values, std::size_t block);
Coding BroadcastCoding(const server::CommitMethod& method);

struct WeightedPayload {
  std::string worker;
  double weight = 0;
  std::string payload;
};

// One outer step, by the reference kernel, and the new view. `broadcast`, unless null, becomes what is sent of it. An
// error is that of the kernel.
absl::StatusOr<server::CommitStats> ApplyStep(const server::OuterStep& step, const server::CommitMethod& method,
                                              const std::vector<WeightedPayload>& deltas, Parameters* parameters,
                                              CodedBlocks* broadcast);

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_MODEL_H_
