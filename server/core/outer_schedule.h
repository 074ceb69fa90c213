// The outer correction: the four scalars of one outer step
//
//   theta -= eta (a D + c b_old);     b = p b_old + g D
//
// for a round that did r times the reference work (r = accumulated inner learning rate of the round / reference).
// Momentum that decays by mu per reference interval has decayed by mu^r in this one, and a delta that is r times as
// long enters with its velocity D / r, not with its length.
//
// With m = mu^r, K = (1 - m) / (1 - mu), G = mu K:
//
//   form          a                              c        p    g     long-run gain per D
//   none          1 + mu                         mu^2     mu   1     1 / (1 - mu)         DiLoCo
//   momentum      1 + m                          m^2      m    1     1 / (1 - m)
//   velocity      1 + mu K                       r mu m   m    K/r   1 / (1 - mu)
//   composition   1 + mu / (1 - mu) (1 - G/r)    G mu     m    K/r   1 / (1 - mu)
//   bounded       composition at r clipped to [1/2, 2], all four
//
// Composition is exact: r reference Nesterov steps with the same velocity, for any real r. It becomes unstable for long
// intervals (stable up to eta * share of an eigen-direction 0.39 at r = 8, none: 1.357); bounded stays at 1.34 or more.
#ifndef AUTOLOCO_SERVER_CORE_OUTER_SCHEDULE_H_
#define AUTOLOCO_SERVER_CORE_OUTER_SCHEDULE_H_

namespace autoloco::server {

enum class OuterCorrection { kNone, kMomentum, kVelocity, kComposition, kBounded };

// The name used in configuration, history and logs, e.g. "bounded".
const char* OuterCorrectionName(OuterCorrection form);

// The scalars of one outer step. With `plain`, theta and b follow Nesterov's step on D as torch.optim.SGD does it, in
// its own order of operations: the four scalars say the same up to rounding.
struct OuterFactors {
  double a = 0;
  double c = 0;
  double p = 0;
  double g = 0;
  bool plain = true;
  bool operator==(const OuterFactors&) const = default;
};

// |r - 1| up to this counts as 1: sums of equal learning rates differ in their last bits.
inline constexpr double kPlainRatioTolerance = 1e-9;

// Momentum as DiLoCo has it.
struct OuterMomentum {
  double mu = 0.9;
  bool nesterov = true;
  bool operator==(const OuterMomentum&) const = default;
};

// REQUIRES: 0 <= mu < 1. Without Nesterov's form every step is the plain one. An r that is negative or not finite counts as 1 (nothing is known of the round's work).
// Without momentum every form is the plain step. r -> 0 takes the forms' limits.
OuterFactors OuterFactorsFor(OuterCorrection form, const OuterMomentum& momentum, double r);

// The same step on a momentum buffer that is multiplied by `scale` first; plain only where scale is 1.
OuterFactors WithMomentumScaled(const OuterFactors& factors, double scale);

// What a run's outer steps have in common.
struct OuterSettings {
  double learning_rate = 0.7;
  OuterMomentum momentum;
  OuterCorrection correction = OuterCorrection::kNone;
  double reference_learning_rate_sum = 0;  // of the round that needs no correction; not above 0: nothing is corrected
  bool final_average = false;              // the run's last step moves to the mean of the workers
  bool equal_votes = false;                // median and trimmed mean: every contributor has the same share
};

// One outer step. Where factors.plain is false they replace the momentum.
struct OuterStep {
  double learning_rate = 0.7;
  OuterMomentum momentum;
  OuterFactors factors;
  double ratio = 1;  // r
  bool final_average = false;
  bool operator==(const OuterStep&) const = default;
};

struct OuterStepInput {
  double learning_rate_sum = 0;  // of the round; not above 0: unknown
  double momentum_scale = 1;     // of the buffer before the step
  bool last = false;             // the run ends with this step
};

OuterStep MakeOuterStep(const OuterSettings& settings, const OuterStepInput& input);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_OUTER_SCHEDULE_H_
