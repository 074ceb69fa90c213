#include "server/core/outer_schedule.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace autoloco::server {
namespace {

// Below this r the limits are taken: 1 - mu^r loses no digit by expm1, but 0 / 0 must not happen.
constexpr double kRatioMin = 1e-12;
constexpr double kBoundedRatioMin = 0.5;
constexpr double kBoundedRatioMax = 2;

OuterFactors Plain(const OuterMomentum& momentum) {
  const double mu = momentum.mu;
  if (!momentum.nesterov) return {.a = 1, .c = mu, .p = mu, .g = 1, .plain = true};
  return {.a = 1 + mu, .c = mu * mu, .p = mu, .g = 1, .plain = true};
}

// REQUIRES: 0 < mu < 1, r >= 0.
OuterFactors Composition(double mu, double r) {
  const double log_mu = std::log(mu);
  const double lost = -std::expm1(r * log_mu);                                   // 1 - mu^r
  const double gain = r < kRatioMin ? -log_mu / (1 - mu) : lost / (1 - mu) / r;  // K / r
  OuterFactors factors;
  factors.a = 1 + mu / (1 - mu) * (1 - mu * gain);
  factors.c = mu * mu * lost / (1 - mu);
  factors.p = 1 - lost;
  factors.g = gain;
  factors.plain = false;
  return factors;
}

}  // namespace

const char* OuterCorrectionName(OuterCorrection form) {
  switch (form) {
    case OuterCorrection::kNone: return "none";
    case OuterCorrection::kMomentum: return "momentum";
    case OuterCorrection::kVelocity: return "velocity";
    case OuterCorrection::kComposition: return "composition";
    case OuterCorrection::kBounded: return "bounded";
  }
  return "none";
}

OuterFactors OuterFactorsFor(OuterCorrection form, const OuterMomentum& momentum, double r) {
  const double mu = momentum.mu;
  AUTOLOCO_CHECK(mu >= 0 && mu < 1);
  const bool known = std::isfinite(r) && r >= 0 && std::abs(r - 1) > kPlainRatioTolerance;
  if (form == OuterCorrection::kNone || mu == 0 || !momentum.nesterov || !known) return Plain(momentum);
  if (form == OuterCorrection::kComposition) return Composition(mu, r);
  if (form == OuterCorrection::kBounded) return Composition(mu, std::clamp(r, kBoundedRatioMin, kBoundedRatioMax));
  OuterFactors factors = Composition(mu, r);
  const double m = factors.p;
  if (form == OuterCorrection::kMomentum) {
    factors.a = 1 + m;
    factors.c = m * m;
    factors.g = 1;
  } else {
    factors.a = 1 + mu * -std::expm1(r * std::log(mu)) / (1 - mu);
    factors.c = r * mu * m;
  }
  return factors;
}

OuterFactors WithMomentumScaled(const OuterFactors& factors, double scale) {
  OuterFactors scaled = factors;
  scaled.c *= scale;
  scaled.p *= scale;
  scaled.plain = factors.plain && scale == 1;
  return scaled;
}

OuterStep MakeOuterStep(const OuterSettings& settings, const OuterStepInput& input) {
  OuterStep step;
  const double ratio = input.learning_rate_sum / settings.reference_learning_rate_sum;
  if (std::isfinite(ratio) && ratio > 0) step.ratio = ratio;
  if (input.last && settings.final_average) {
    step.learning_rate = 1;
    step.momentum.mu = 0;
    step.factors = Plain(step.momentum);
    step.final_average = true;
    return step;
  }
  step.learning_rate = settings.learning_rate;
  step.momentum = settings.momentum;
  step.factors = WithMomentumScaled(OuterFactorsFor(settings.correction, settings.momentum, step.ratio),
                                    input.momentum_scale);
  return step;
}

}  // namespace autoloco::server
