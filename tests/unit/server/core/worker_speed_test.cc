// Speed matching: what is learned of a worker, the steps that make all finish together, a joiner's first interval.
#include "server/core/worker_speed.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace autoloco::server {
namespace {

SpeedSettings Settings() {
  SpeedSettings settings;
  settings.tokens_per_step = 1000;
  return settings;
}

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(5);

IntervalReport Report(std::uint32_t steps, double step_seconds) {
  IntervalReport report;
  report.inner_steps = steps;
  report.step_seconds_mean = step_seconds;
  return report;
}

Progress Training(Round round, std::uint32_t steps_done, double tokens_per_second) {
  Progress progress;
  progress.phase = WorkerPhase::kTraining;
  progress.round = round;
  progress.steps_done = steps_done;
  progress.tokens_per_second = tokens_per_second;
  return progress;
}

// A worker that needs `step_seconds` a step and `overhead` beside.
void Teach(WorkerSpeeds* speeds, const std::string& worker, double step_seconds, double overhead = 0) {
  speeds->ObserveDelivery(worker, Report(100, step_seconds), absl::Seconds(100 * step_seconds + overhead));
}

std::vector<std::uint32_t> Steps(const WorkerSpeeds& speeds, const std::vector<std::string>& workers,
                                 std::uint32_t steps, std::uint64_t most = 1'000'000) {
  std::vector<std::uint32_t> found;
  for (const WorkerSpeeds::Share& share : speeds.StepsForAll(workers, steps, most)) found.push_back(share.steps);
  return found;
}

using List = std::vector<std::uint32_t>;

TEST(WorkerSpeedTest, NothingKnownIsTheFullInterval) {
  const WorkerSpeeds speeds(Settings());
  EXPECT_EQ(Steps(speeds, {"a", "b"}, 100), (List{100, 100}));
  EXPECT_FALSE(speeds.StepSeconds("a").has_value());
  EXPECT_EQ(speeds.OverheadSeconds("a"), 0);
}

TEST(WorkerSpeedTest, ASlowWorkerDoesLess) {
  WorkerSpeeds speeds(Settings());
  for (const char* name : {"a", "b", "c"}) Teach(&speeds, name, 1);
  Teach(&speeds, "d", 4);
  EXPECT_EQ(Steps(speeds, {"a", "b", "c", "d"}, 100), (List{100, 100, 100, 25}));
}

TEST(WorkerSpeedTest, OfTwoTheFasterIsTheReference) {
  WorkerSpeeds speeds(Settings());
  Teach(&speeds, "a", 2);
  Teach(&speeds, "b", 1);
  EXPECT_EQ(Steps(speeds, {"a", "b"}, 100), (List{50, 100}));
}

TEST(WorkerSpeedTest, AFastWorkerDoesMoreUpToTheLimit) {
  WorkerSpeeds speeds(Settings());
  for (const char* name : {"b", "c"}) Teach(&speeds, name, 1);
  Teach(&speeds, "a", 0.75);
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 90), (List{120, 90, 90}));
  for (int i = 0; i < 5; ++i) Teach(&speeds, "a", 0.1);
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 90), (List{180, 90, 90}));
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 90, 100), (List{100, 90, 90}));  // the run has no more
}

TEST(WorkerSpeedTest, ASlowWorkerHasALeast) {
  WorkerSpeeds speeds(Settings());
  for (const char* name : {"a", "b"}) Teach(&speeds, name, 1);
  Teach(&speeds, "c", 100);
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 100), (List{100, 100, 10}));
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 4), (List{4, 4, 1}));
}

TEST(WorkerSpeedTest, AlmostEqualWorkersDoExactlyTheSame) {
  WorkerSpeeds speeds(Settings());
  Teach(&speeds, "a", 1);
  Teach(&speeds, "b", 1.09);
  Teach(&speeds, "c", 0.92);
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 500), (List{500, 500, 500}));
}

TEST(WorkerSpeedTest, AShortWaitIsTolerated) {
  WorkerSpeeds speeds(Settings());
  Teach(&speeds, "a", 0.01);
  Teach(&speeds, "b", 0.02);
  EXPECT_EQ(Steps(speeds, {"a", "b"}, 40), (List{40, 40}));  // 0.4 s
  EXPECT_EQ(Steps(speeds, {"a", "b"}, 100), (List{100, 50}));
}

// 100 steps of 1 s in both; 60 s of transfers in one.
TEST(WorkerSpeedTest, ASlowLinkCountsAsTime) {
  WorkerSpeeds speeds(Settings());
  Teach(&speeds, "a", 1, 2);
  Teach(&speeds, "b", 1, 2);
  Teach(&speeds, "c", 1, 62);
  EXPECT_EQ(Steps(speeds, {"a", "b", "c"}, 100), (List{100, 100, 40}));
}

TEST(WorkerSpeedTest, NotMatchedIsTheSameForAll) {
  SpeedSettings settings = Settings();
  settings.matched = false;
  WorkerSpeeds speeds(settings);
  Teach(&speeds, "a", 1);
  Teach(&speeds, "b", 5);
  EXPECT_EQ(Steps(speeds, {"a", "b"}, 100), (List{100, 100}));
}

TEST(WorkerSpeedTest, ANewWorkerDoesTheFullInterval) {
  WorkerSpeeds speeds(Settings());
  Teach(&speeds, "a", 1);
  Teach(&speeds, "b", 4);
  EXPECT_EQ(Steps(speeds, {"a", "b", "new"}, 100), (List{100, 25, 100}));
}

TEST(WorkerSpeedTest, OneStalledIntervalDoesNotCount) {
  WorkerSpeeds speeds(Settings());
  for (int i = 0; i < 3; ++i) Teach(&speeds, "a", 1);
  Teach(&speeds, "a", 50);
  EXPECT_EQ(*speeds.StepSeconds("a"), 1);
  for (int i = 0; i < 3; ++i) Teach(&speeds, "a", 4);  // but a lasting change does
  EXPECT_EQ(*speeds.StepSeconds("a"), 4);
}

TEST(WorkerSpeedTest, LearnsFromProgressOfTrainingAlone) {
  WorkerSpeeds speeds(Settings());
  Progress progress = Training(3, 2, 500);
  progress.phase = WorkerPhase::kWaiting;
  speeds.ObserveProgress("a", progress);
  speeds.ObserveProgress("a", Training(3, 0, 500));  // none done yet
  speeds.ObserveProgress("a", Training(3, 2, 0));
  EXPECT_FALSE(speeds.StepSeconds("a").has_value());
  speeds.ObserveProgress("a", Training(3, 2, 500));
  EXPECT_EQ(*speeds.StepSeconds("a"), 2);
  for (int i = 0; i < 9; ++i) speeds.ObserveProgress("a", Training(3, 2, 100));  // the same step
  EXPECT_EQ(*speeds.StepSeconds("a"), 2);
  for (std::uint32_t step = 3; step < 9; ++step) speeds.ObserveProgress("a", Training(3, step, 100));
  EXPECT_EQ(*speeds.StepSeconds("a"), 10);
  speeds.ObserveProgress("b", Training(0, 1, 250));
  EXPECT_EQ(*speeds.StepSeconds("b"), 4);
}

TEST(WorkerSpeedTest, NonsenseTeachesNothing) {
  WorkerSpeeds speeds(Settings());
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -1.0, kNan, std::numeric_limits<double>::infinity()}) {
    speeds.ObserveDelivery("a", Report(10, bad), absl::Seconds(10));
    speeds.ObserveProgress("a", Training(0, 1, bad));
  }
  speeds.ObserveDelivery("a", Report(0, 1), absl::Seconds(10));
  EXPECT_FALSE(speeds.StepSeconds("a").has_value());
  Teach(&speeds, "a", 1, -1000);  // a clock that was wrong
  EXPECT_EQ(speeds.OverheadSeconds("a"), 0);
}

TEST(WorkerSpeedTest, WhatAFormerProcessKnewIsOneObservation) {
  WorkerSpeeds speeds(Settings());
  speeds.Restore("a", 2, 30);
  speeds.Restore("b", 0, 30);  // not known
  EXPECT_EQ(speeds.StepSeconds("a"), 2);
  EXPECT_EQ(speeds.OverheadSeconds("a"), 30);
  EXPECT_FALSE(speeds.StepSeconds("b").has_value());
  Teach(&speeds, "a", 4);
  EXPECT_EQ(speeds.StepSeconds("a"), 3);
}

TEST(WorkerSpeedTest, ForgottenIsUnknown) {
  WorkerSpeeds speeds(Settings());
  Teach(&speeds, "a", 1);
  speeds.Forget("a");
  EXPECT_FALSE(speeds.StepSeconds("a").has_value());
}

TEST(WorkerSpeedTest, TheRoundIsExpectedToCloseWithTheLast) {
  WorkerSpeeds speeds(Settings());
  EXPECT_FALSE(speeds.ExpectedClose(std::vector<WorkerSpeeds::Running>{{"a", 100, kNow, 0, {}}}).has_value());
  Teach(&speeds, "a", 1, 4);
  Teach(&speeds, "b", 2, 4);
  EXPECT_FALSE(speeds.ExpectedClose({}).has_value());
  EXPECT_EQ(*speeds.ExpectedClose(std::vector<WorkerSpeeds::Running>{{"a", 100, kNow, 0, {}}, {"b", 40, kNow, 0, {}}}),
            kNow + absl::Seconds(104));
  // 20 steps behind what its speed promises.
  EXPECT_EQ(*speeds.ExpectedClose(std::vector<WorkerSpeeds::Running>{{"a", 100, kNow, 30, kNow + absl::Seconds(52)},
                                                                     {"b", 40, kNow, 0, {}}}),
            kNow + absl::Seconds(52 + 70 + 2));
}

TEST(WorkerSpeedTest, AJoinerGetsWhatFits) {
  WorkerSpeeds speeds(Settings());
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, kNow + absl::Seconds(50)), 0u);  // nothing known
  Teach(&speeds, "a", 1, 4);
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, std::nullopt), 0u);
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, kNow + absl::Seconds(50)), 46u);
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, kNow + absl::Seconds(500)), 100u);
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, kNow + absl::Seconds(14)), 10u);
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, kNow + absl::Seconds(13)), 0u);  // too little would be left
  EXPECT_EQ(speeds.FirstInterval("new", 100, kNow, kNow - absl::Seconds(1)), 0u);
  Teach(&speeds, "back", 2, 4);  // known from an earlier life
  EXPECT_EQ(speeds.FirstInterval("back", 100, kNow, kNow + absl::Seconds(50)), 23u);
}

}  // namespace
}  // namespace autoloco::server
