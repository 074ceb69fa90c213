#include "tests/sim/model.h"

#include <cmath>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "server/kernels/outer_step_reference.h"

namespace autoloco::sim {
namespace {

constexpr float kBeta1 = 0.9f;
constexpr float kBeta2 = 0.99f;
constexpr float kEpsilon = 1e-6f;
constexpr float kDecay = 0.01f;

float ValueOf(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return static_cast<float>(2.0 * RandomStream(seed, stream).Uniform(counter) - 1.0);
}

// One step on one value; returns the change of the parameter.
float AdamWStep(float gradient, float theta, std::size_t i, TrainerState* state) {
  state->first[i] = kBeta1 * state->first[i] + (1 - kBeta1) * gradient;
  state->second[i] = kBeta2 * state->second[i] + (1 - kBeta2) * gradient * gradient;
  const auto rate = static_cast<float>(kLearningRate);
  return -rate * (state->first[i] / (std::sqrt(state->second[i]) + kEpsilon) + kDecay * theta);
}

}  // namespace

const Layout& ModelLayout() {
  static const Layout layout = *Layout::Make({{"a.weight", {2, 2}}, {"b.weight", {2}}});
  return layout;
}

Values InitialValues(std::uint64_t seed) {
  Values values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) values[i] = ValueOf(seed, 1, i);
  return values;
}

std::string DigestOf(const Values& values) { return Digest128(std::span<const float>(values)); }

Delta TrainInterval(const Values& base, const worker::Assignment& assignment, std::uint32_t steps,
                    const TrainerState& state, std::uint64_t data, double step_seconds, float scale) {
  Delta delta;
  delta.assignment = assignment;
  delta.base_digest = DigestOf(base);
  delta.before = state;
  delta.after = state;
  Values theta = base;
  double loss = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint64_t sample = assignment.first_sample + std::uint64_t{step} * kBatch;
    for (std::size_t i = 0; i < kValues; ++i) {
      const float gradient = theta[i] - ValueOf(data, sample, i);
      loss += gradient * gradient;
      theta[i] += AdamWStep(gradient, theta[i], i, &delta.after);
    }
    ++delta.after.steps;
  }
  for (std::size_t i = 0; i < kValues; ++i) delta.exact.push_back(scale * (base[i] - theta[i]));
  loss /= std::max<std::uint32_t>(1, steps);
  delta.report = {.inner_steps = steps,
                  .tokens = std::uint64_t{steps} * kBatch * kTokensPerSample,
                  .learning_rate_sum = kLearningRate * steps,
                  .loss_mean = loss,
                  .loss_first = loss,
                  .loss_last = loss,
                  .gradient_norm_mean = std::sqrt(loss),
                  .step_seconds_mean = step_seconds};
  return delta;
}

void EncodeDelta(const Values& residual, Delta* delta) {
  delta->before.residual = residual;
  delta->payload.clear();
  const auto encoded =
      BlockEncoder(kDeltaCoding)
          .EncodeWithResidual(0, delta->exact, delta->before.residual, delta->after.residual, &delta->payload);
  AUTOLOCO_CHECK(encoded.ok());
  delta->digest = Digest128(std::as_bytes(std::span(delta->payload)));
}

double NormOf(const std::string& payload) {
  Values values(kValues);
  if (!DecodeVector(std::as_bytes(std::span(payload)), kDeltaCoding.codec, values).ok()) return 0;
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

worker::EvaluationPart Evaluate(const Values& base, const worker::Assignment& assignment) {
  double loss = 0;
  for (const float value : base) loss += static_cast<double>(value) * value;
  const std::uint64_t tokens = 100 + assignment.evaluation_part;
  return {.version = assignment.round, .loss_sum = loss * static_cast<double>(tokens), .tokens = tokens};
}

Parameters InitialParameters(std::uint64_t seed, const server::CommitMethod& method) {
  Parameters parameters{.values = InitialValues(seed)};
  if (!method.broadcast.lossless()) parameters.view = parameters.values;
  return parameters;
}

std::string DigestOf(const Parameters& parameters) {
  return absl::StrCat(DigestOf(parameters.values), DigestOf(parameters.View()));
}

std::string CodedFp32(const Values& values, std::size_t block) {
  std::string coded;
  BlockEncoder(Codec::kFp32, 1)
      .Append(static_cast<std::uint32_t>(block), std::span(values).subspan(block * kBlockSize, kBlockSize), &coded);
  return coded;
}

Coding BroadcastCoding(const server::CommitMethod& method) {
  return {.codec = static_cast<Codec>(method.broadcast.codec),
          .step = method.broadcast.step,
          .zstd_level = method.broadcast.zstd_level};
}

namespace {

// Brings the view to the values as far as the coding goes.
void Broadcast(const Coding& coding, Parameters* parameters, CodedBlocks* broadcast) {
  BlockEncoder encoder(coding);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const std::span<float> view = std::span(parameters->view).subspan(block * kBlockSize, kBlockSize);
    Values lacks(kBlockSize);
    for (std::size_t i = 0; i < kBlockSize; ++i) lacks[i] = parameters->values[block * kBlockSize + i] - view[i];
    std::string coded;
    AUTOLOCO_CHECK(encoder.EncodeAndAdd(static_cast<std::uint32_t>(block), lacks, view, &coded).ok());
    if (broadcast != nullptr) broadcast->push_back(coded);
  }
}

}  // namespace

absl::StatusOr<server::CommitStats> ApplyStep(const server::OuterStep& step, const server::CommitMethod& method,
                                              const std::vector<WeightedPayload>& deltas, Parameters* parameters,
                                              CodedBlocks* broadcast) {
  std::vector<server::Contribution> contributions;
  for (const WeightedPayload& delta : deltas) {
    contributions.push_back({std::as_bytes(std::span(delta.payload)), kDeltaCoding.codec, delta.weight});
  }
  server::OuterCoefficients coefficients{step.learning_rate, step.momentum.mu, step.momentum.nesterov};
  if (!step.factors.plain) {
    coefficients.corrected = server::CorrectedStep{step.factors.a, step.factors.c, step.factors.p, step.factors.g};
  }
  AUTOLOCO_ASSIGN_OR_RETURN(
      const server::OuterStepStatistics statistics,
      server::ApplyOuterStepReference(contributions, coefficients, parameters->values, parameters->momentum));
  if (!parameters->view.empty()) {
    Broadcast(BroadcastCoding(method), parameters, broadcast);
  } else if (broadcast != nullptr) {
    for (std::size_t block = 0; block < kBlocks; ++block) broadcast->push_back(CodedFp32(parameters->values, block));
  }
  server::CommitStats stats;
  stats.mean_delta_norm = std::sqrt(statistics.mean_delta_squared_norm);
  stats.momentum_norm = std::sqrt(statistics.momentum_squared_norm);
  stats.parameter_norm = std::sqrt(statistics.params_squared_norm);
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    stats.delta_norm_by_worker[deltas[i].worker] = std::sqrt(statistics.delta_squared_norms[i]);
  }
  return stats;
}

}  // namespace autoloco::sim
