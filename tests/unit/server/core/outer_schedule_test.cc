// The outer correction: the composition law, limits, long-run gains, stability.
#include "server/core/outer_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace autoloco::server {
namespace {

constexpr double kEta = 0.7;
constexpr OuterCorrection kForms[] = {OuterCorrection::kNone, OuterCorrection::kMomentum, OuterCorrection::kVelocity,
                                      OuterCorrection::kComposition, OuterCorrection::kBounded};

struct Point {
  double theta = 0;
  double b = 0;
};

Point Step(const OuterFactors& factors, double delta, Point at) {
  return {at.theta - kEta * (factors.a * delta + factors.c * at.b), factors.p * at.b + factors.g * delta};
}

// Nesterov's step in its own words.
Point ReferenceStep(double mu, double delta, Point at) {
  const double b = mu * at.b + delta;
  return {at.theta - kEta * (delta + mu * b), b};
}

// Largest stable x = eta * (share of an eigen-direction that an interval removes), by bisection of the spectral radius
// of (theta, eta b) -> ((1 - a x) theta - c eta b, p eta b + g x theta).
double StableUpTo(const OuterFactors& f) {
  const auto stable = [&f](double x) {
    const double trace = 1 - f.a * x + f.p;
    const double determinant = (1 - f.a * x) * f.p + f.c * f.g * x;
    return std::abs(determinant) <= 1 && std::abs(trace) <= 1 + determinant;  // Jury
  };
  double low = 0;
  double high = 4;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (stable(middle) ? low : high) = middle;
  }
  return low;
}

TEST(OuterSchedule, CompositionEqualsReferenceSteps) {
  for (const double mu : {0.5, 0.8, 0.9, 0.99}) {
    for (const int r : {2, 3, 7}) {
      const double velocity = 0.37;
      Point want{1.5, -0.8};
      for (int i = 0; i < r; ++i) want = ReferenceStep(mu, velocity, want);
      const Point got = Step(OuterFactorsFor(OuterCorrection::kComposition, {mu}, r), r * velocity, {1.5, -0.8});
      EXPECT_NEAR(got.theta, want.theta, 1e-12) << mu << " " << r;
      EXPECT_NEAR(got.b, want.b, 1e-12) << mu << " " << r;
    }
  }
}

TEST(OuterSchedule, CompositionSplitsAtAnyRealRatio) {
  const double mu = 0.9;
  const double velocity = -0.21;
  for (const double r : {0.3, 1.0, 1.7, 4.25, 9.0}) {
    for (const double part : {0.01, 0.37, 0.5, 0.93}) {
      const Point start{0.4, 1.1};
      const Point whole = Step(OuterFactorsFor(OuterCorrection::kComposition, {mu}, r), r * velocity, start);
      const double first = part * r;
      Point split = Step(OuterFactorsFor(OuterCorrection::kComposition, {mu}, first), first * velocity, start);
      split = Step(OuterFactorsFor(OuterCorrection::kComposition, {mu}, r - first), (r - first) * velocity, split);
      EXPECT_NEAR(split.theta, whole.theta, 1e-12) << r << " " << part;
      EXPECT_NEAR(split.b, whole.b, 1e-12) << r << " " << part;
    }
  }
}

TEST(OuterSchedule, RatioToZeroStaysFinite) {
  const double mu = 0.9;
  const double gain = -std::log(mu) / (1 - mu);
  const double a = 1 + mu / (1 - mu) * (1 - mu * gain);
  for (const double r : {0.0, 1e-300, 1e-14, 1e-9}) {
    const OuterFactors factors = OuterFactorsFor(OuterCorrection::kComposition, {mu}, r);
    EXPECT_NEAR(factors.a, a, 1e-7) << r;
    EXPECT_NEAR(factors.g, gain, 1e-8) << r;
    EXPECT_NEAR(factors.c, 0, 1e-8) << r;
    EXPECT_NEAR(factors.p, 1, 1e-8) << r;
  }
  // Without a step at the place where the limit takes over.
  const OuterFactors below = OuterFactorsFor(OuterCorrection::kComposition, {mu}, 0.99e-12);
  const OuterFactors above = OuterFactorsFor(OuterCorrection::kComposition, {mu}, 1.01e-12);
  EXPECT_NEAR(below.g, above.g, 1e-12);
  for (const OuterCorrection form : kForms) {
    const OuterFactors factors = OuterFactorsFor(form, {mu}, 0);
    for (const double one : {factors.a, factors.c, factors.p, factors.g}) EXPECT_TRUE(std::isfinite(one));
  }
}

TEST(OuterSchedule, OneIsThePlainStepForEveryForm) {
  double sum = 0;
  for (int i = 0; i < 20; ++i) sum += 4e-3;
  const double rounded = sum / (20 * 4e-3);
  EXPECT_NE(rounded, 1);
  for (const OuterCorrection form : kForms) {
    for (const double r : {1.0, rounded, 1 - 1e-9, std::numeric_limits<double>::quiet_NaN(), -1.0}) {
      EXPECT_EQ(OuterFactorsFor(form, {0.9}, r), (OuterFactors{1.9, 0.9 * 0.9, 0.9, 1, true})) << r;
    }
    EXPECT_EQ(OuterFactorsFor(form, {0.9}, 1.001).plain, form == OuterCorrection::kNone);
    EXPECT_TRUE(OuterFactorsFor(form, {0}, 3).plain);  // no momentum, nothing to correct
    // No step beside 1 either.
    const OuterFactors near = OuterFactorsFor(form, {0.9}, 1 + 1e-8);
    EXPECT_NEAR(near.a, 1.9, 1e-6);
    EXPECT_NEAR(near.c, 0.81, 1e-6);
    EXPECT_NEAR(near.p, 0.9, 1e-6);
    EXPECT_NEAR(near.g, 1, 1e-6);
  }
}

TEST(OuterSchedule, LongRunGains) {
  for (const double mu : {0.5, 0.9}) {
    for (const double r : {0.1, 0.5, 0.8, 2.0, 5.0}) {
      for (const OuterCorrection form : kForms) {
        const OuterFactors f = OuterFactorsFor(form, {mu}, r);
        const double want = form == OuterCorrection::kMomentum ? 1 / (1 - std::pow(mu, r)) : 1 / (1 - mu);
        EXPECT_NEAR(f.a + f.c * f.g / (1 - f.p), want, 1e-10 * want) << OuterCorrectionName(form) << " " << r;
      }
    }
  }
}

TEST(OuterSchedule, BoundedIsCompositionWithinItsBounds) {
  for (const double r : {0.5, 0.7, 1.3, 2.0}) {
    EXPECT_EQ(OuterFactorsFor(OuterCorrection::kBounded, {0.9}, r),
              OuterFactorsFor(OuterCorrection::kComposition, {0.9}, r));
  }
  EXPECT_EQ(OuterFactorsFor(OuterCorrection::kBounded, {0.9}, 9), OuterFactorsFor(OuterCorrection::kComposition, {0.9}, 2));
  EXPECT_EQ(OuterFactorsFor(OuterCorrection::kBounded, {0.9}, 0.1),
            OuterFactorsFor(OuterCorrection::kComposition, {0.9}, 0.5));
}

TEST(OuterSchedule, StabilityOnAQuadratic) {
  const auto stable = [](OuterCorrection form, double r) { return StableUpTo(OuterFactorsFor(form, {0.9}, r)); };
  EXPECT_NEAR(stable(OuterCorrection::kNone, 4), 1.357, 0.001);
  EXPECT_NEAR(stable(OuterCorrection::kMomentum, 8), 1.54, 0.01);
  EXPECT_NEAR(stable(OuterCorrection::kVelocity, 2), 1.03, 0.01);
  EXPECT_NEAR(stable(OuterCorrection::kVelocity, 4), 0.70, 0.01);
  EXPECT_NEAR(stable(OuterCorrection::kComposition, 2), 1.34, 0.01);
  EXPECT_NEAR(stable(OuterCorrection::kComposition, 4), 0.85, 0.01);
  EXPECT_NEAR(stable(OuterCorrection::kComposition, 8), 0.39, 0.01);
  for (double r = 0.01; r < 20; r *= 1.3) EXPECT_GT(stable(OuterCorrection::kBounded, r), 1.335) << r;
}

TEST(OuterSchedule, ScaledMomentumActsOnTheBufferBeforeTheStep) {
  const OuterFactors factors = OuterFactorsFor(OuterCorrection::kBounded, {0.9}, 1.4);
  const Point want = Step(factors, 0.3, {2, 0.5 * 1.6});
  const Point got = Step(WithMomentumScaled(factors, 0.5), 0.3, {2, 1.6});
  EXPECT_DOUBLE_EQ(got.theta, want.theta);
  EXPECT_DOUBLE_EQ(got.b, want.b);
  const OuterFactors plain = OuterFactorsFor(OuterCorrection::kNone, {0.9}, 1);
  EXPECT_TRUE(WithMomentumScaled(plain, 1).plain);
  EXPECT_FALSE(WithMomentumScaled(plain, 0.5).plain);
}

TEST(OuterSchedule, PlainMomentumIsNotCorrected) {
  for (const OuterCorrection form : kForms) {
    const OuterFactors factors = OuterFactorsFor(form, {0.9, false}, 3);
    EXPECT_EQ(factors, (OuterFactors{1, 0.9, 0.9, 1, true}));  // theta -= eta b
  }
}

TEST(OuterSchedule, AStepTakesItsRatioFromTheReference) {
  OuterSettings settings;
  settings.correction = OuterCorrection::kBounded;
  settings.reference_learning_rate_sum = 0.08;
  const OuterStep step = MakeOuterStep(settings, {.learning_rate_sum = 0.12});
  EXPECT_DOUBLE_EQ(step.ratio, 1.5);
  EXPECT_EQ(step.factors, OuterFactorsFor(OuterCorrection::kBounded, {0.9}, step.ratio));
  EXPECT_EQ(step.learning_rate, 0.7);
  EXPECT_TRUE(MakeOuterStep(settings, {.learning_rate_sum = 0.08}).factors.plain);
  EXPECT_TRUE(MakeOuterStep(settings, {.learning_rate_sum = 0}).factors.plain);  // unknown
  EXPECT_FALSE(MakeOuterStep(settings, {.learning_rate_sum = 0.08, .momentum_scale = 0.5}).factors.plain);
  settings.reference_learning_rate_sum = 0;
  EXPECT_TRUE(MakeOuterStep(settings, {.learning_rate_sum = 0.12}).factors.plain);
}

TEST(OuterSchedule, TheLastStepMayBeAPlainAverage) {
  OuterSettings settings;
  EXPECT_EQ(MakeOuterStep(settings, {.last = true}).learning_rate, 0.7);
  settings.final_average = true;
  const OuterStep step = MakeOuterStep(settings, {.last = true});
  EXPECT_EQ(step.learning_rate, 1);
  EXPECT_EQ(step.momentum.mu, 0);
  EXPECT_TRUE(step.factors.plain);
  EXPECT_TRUE(step.final_average);
  EXPECT_FALSE(MakeOuterStep(settings, {}).final_average);
}

}  // namespace
}  // namespace autoloco::server
