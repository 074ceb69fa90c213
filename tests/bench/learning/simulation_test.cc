#include "tests/bench/learning/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>

#include "common/base/random.h"
#include "tests/support/temp_folder.h"

namespace autoloco::bench {
namespace {

// Pieces of text whose share of lower-case letters differs: words, numbers.
std::string MixedText(std::size_t bytes) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < bytes; ++i) {
    const char* const words[] = {"delta ", "round ", "0123 ", "WORKER "};
    text += words[Mix(1, i / 2000, 0) % 4];
    text += words[Mix(2, i, 0) % 4];
  }
  return text;
}

class SimulationTest : public testing::Test {
 protected:
  SimulationTest() {
    std::ofstream(folder_.File("text")) << MixedText(400000);
    text_ = TrainingText::Open({folder_.File("text"), 16, 4, 0.05}).value();
    settings_.steps = 16;
    settings_.warmup_steps = 4;
    settings_.rows = 1;
    data_ = {text_.get(), text_->HeldOut(8), text_->HeldOut(32)};
    arm_.momentum = 0.9;
    arm_.interval = 4;
  }

  RunResult Run(const Arm& arm, std::uint64_t seed = 1) {
    return SimulateRun(settings_, data_, arm, seed, [this](std::uint64_t steps) { progress_ += steps; }).value();
  }

  TempFolder folder_;
  std::unique_ptr<TrainingText> text_;
  BenchSettings settings_;
  BenchData data_;
  Arm arm_;
  std::uint64_t progress_ = 0;
};

TEST_F(SimulationTest, IsAFunctionOfArmAndSeed) {
  const RunResult first = Run(arm_);
  EXPECT_EQ(first.losses, Run(arm_).losses);
  EXPECT_NE(first.losses, Run(arm_, 2).losses);
  EXPECT_EQ(first.rounds, 4U);
  EXPECT_LT(first.loss, std::log(256.0));  // it learns
  EXPECT_EQ(progress_, 3 * ModelSteps(settings_, arm_, 4));
}

TEST_F(SimulationTest, FixedIntervalsAreTheSameWhicheverPolicyGivesThem) {
  Arm replayed = arm_;
  replayed.policy = server::IntervalPolicy::kReplay;
  replayed.rounds = 4;
  EXPECT_EQ(Run(arm_).losses, Run(replayed).losses);
  replayed.rounds = 3;
  EXPECT_EQ(Run(replayed).intervals, (std::vector<std::uint32_t>{5, 5, 6}));
}

TEST_F(SimulationTest, TheFinalAverageChangesTheLastRoundOnly) {
  Arm without = arm_;
  without.final_average = false;
  const RunResult with = Run(arm_);
  const RunResult plain = Run(without);
  ASSERT_EQ(with.losses.size(), plain.losses.size());
  for (std::size_t i = 0; i + 1 < with.losses.size(); ++i) EXPECT_EQ(with.losses[i], plain.losses[i]);
  EXPECT_NE(with.losses.back(), plain.losses.back());
}

TEST_F(SimulationTest, AutolocoTakesFewerRoundsForTheSameSteps) {
  settings_.steps = 60;
  Arm autoloco = arm_;
  autoloco.policy = server::IntervalPolicy::kAutoloco;
  autoloco.correction = server::OuterCorrection::kBounded;
  const RunResult result = Run(autoloco);
  EXPECT_EQ(std::accumulate(result.intervals.begin(), result.intervals.end(), 0U), 60U);
  EXPECT_LT(result.rounds, 15U);
}

TEST_F(SimulationTest, BytesAreThoseOfThePayloads) {
  Arm bf16 = arm_;
  bf16.codec = Codec::kBf16;
  const double values = 38048;
  const RunResult fp32 = Run(arm_);
  EXPECT_GT(fp32.bytes_per_worker, 4 * 2 * values * 3);
  EXPECT_LT(fp32.bytes_per_worker, 4 * 2 * values * 4.1);
  EXPECT_LT(Run(bf16).bytes_per_worker, 0.85 * fp32.bytes_per_worker);
}

TEST_F(SimulationTest, QuantizedBothWaysIsSmallAndFollowsTheExactRun) {
  settings_.steps = 48;
  Arm quantized = arm_;
  quantized.codec = Codec::kRms4;
  quantized.broadcast = Codec::kRms4;
  Arm forgetful = quantized;
  forgetful.error_feedback = false;
  const RunResult exact = Run(arm_);
  const RunResult with = Run(quantized);
  const RunResult without = Run(forgetful);
  EXPECT_LT(with.bytes_per_worker, exact.bytes_per_worker / 12);  // 1.6 bits for 32, not far from it
  EXPECT_NE(with.losses, exact.losses);
  EXPECT_NE(with.losses, without.losses);
  EXPECT_NEAR(with.loss, exact.loss, 0.1 * exact.loss);
  // The exported parameters have what the view lacks.
  EXPECT_NE(static_cast<float>(with.loss), with.losses.back());
}

TEST_F(SimulationTest, AForgetfulServerGoesOnFromTheView) {
  // Exact deltas, so that only the way back loses anything: where it is forgotten, view and parameters are one.
  data_.final_windows = data_.round_windows;
  Arm lossy = arm_;
  lossy.broadcast = Codec::kRms4;
  const RunResult carried = Run(lossy);
  lossy.error_feedback = false;
  const RunResult forgotten = Run(lossy);
  EXPECT_NE(static_cast<float>(carried.loss), carried.losses.back());
  EXPECT_EQ(static_cast<float>(forgotten.loss), forgotten.losses.back());
}

TEST_F(SimulationTest, ADroppedDeltaLeavesTheResidualAsItWas) {
  Arm quantized = arm_;
  quantized.codec = Codec::kRms4;
  quantized.failures.dropped = 0.5;
  const RunResult with = Run(quantized);
  quantized.error_feedback = false;
  const RunResult without = Run(quantized);
  EXPECT_TRUE(std::isfinite(with.loss));
  EXPECT_EQ(with.losses[0], without.losses[0]);  // nothing to carry yet
  EXPECT_NE(with.losses, without.losses);
}

TEST_F(SimulationTest, FailuresChangeWhatIsLearnt) {
  const RunResult healthy = Run(arm_);
  for (const Failures& failures : {Failures{.dropped = 0.5}, Failures{.late = 1},
                                   Failures{.late = 1, .late_applied = true}, Failures{.absent = 1}}) {
    Arm failing = arm_;
    failing.failures = failures;
    const RunResult result = Run(failing);
    EXPECT_EQ(result.rounds, healthy.rounds);
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_NE(result.losses, healthy.losses);
  }
  Arm absent = arm_;
  absent.failures.absent = 1;
  EXPECT_LT(Run(absent).bytes_per_worker, healthy.bytes_per_worker);
}

TEST_F(SimulationTest, OneModelArmsTakeTheirTokens) {
  for (const Method kind : {Method::kDataParallel, Method::kSingle, Method::kSingleSameTokens}) {
    Arm arm = arm_;
    arm.kind = kind;
    progress_ = 0;
    const RunResult result = Run(arm);
    EXPECT_LT(result.loss, std::log(256.0));
    EXPECT_EQ(progress_, ModelSteps(settings_, arm, 4));
    EXPECT_EQ(result.rounds, kind == Method::kDataParallel ? 16U : 0U);
  }
}

TEST_F(SimulationTest, ARunThatDivergesIsAResult) {
  Arm wild = arm_;
  wild.learning_rate_scale = 1e30;
  const RunResult result = Run(wild);
  EXPECT_TRUE(std::isinf(result.loss));
}

TEST_F(SimulationTest, WorkersReadTextOfTheirOwn) {
  std::vector<std::int32_t> a(17);
  std::vector<std::int32_t> b(17);
  double letters[2] = {0, 0};
  for (std::uint64_t step = 0; step < 50; ++step) {
    text_->ReadBatch(Sharding::kNonIid, 1, 0, step, a);
    text_->ReadBatch(Sharding::kNonIid, 1, 3, step, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      letters[0] += a[i] >= 'a' && a[i] <= 'z' ? 1 : 0;
      letters[1] += b[i] >= 'a' && b[i] <= 'z' ? 1 : 0;
    }
  }
  EXPECT_LT(letters[0], 0.9 * letters[1]);
  text_->ReadBatch(Sharding::kIid, 1, 2, 5, a);
  text_->ReadBatch(Sharding::kIid, 1, 2, 5, b);
  EXPECT_EQ(a, b);
  text_->ReadBatch(Sharding::kIid, 1, 3, 5, b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace autoloco::bench
