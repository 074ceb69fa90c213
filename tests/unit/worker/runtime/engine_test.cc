#include "worker/runtime/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/digest.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/fill_base.h"
#include "tests/support/temp_folder.h"

namespace autoloco::worker {
namespace {

using ::testing::HasSubstr;

// Events, waited for one by one.
class Sink final : public EventSink {
 public:
  void Post(Event event) override {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
    arrived_.NotifyAll();
  }
  void PostWelcome(Welcomed event, RunSettings) override { Post(std::move(event)); }

  template <typename T>
  T Await() {
    MutexLock lock(&mutex_);
    while (events_.empty()) arrived_.Wait(&mutex_);
    const T event = std::get<T>(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
};

class FakeFactory final : public TrainerFactory {
 public:
  absl::StatusOr<std::unique_ptr<Trainer>> Make(const DecoderShape& shape, const AdamWConfig&,
                                                const DeviceOptions& asked) override {
    device = asked;
    return std::make_unique<FakeTrainer>(MakeDecoderLayout(shape).value(), options);
  }
  FakeTrainerOptions options;
  DeviceOptions device;
};

RunSettings SmallRun() {
  RunSettings settings;
  settings.shape = {
      .vocab_size = 256, .width = 16, .layers = 1, .heads = 2, .kv_heads = 2, .mlp_hidden = 32, .context = 8};
  settings.batch_size = 2;
  settings.held_out_fraction = 0.1;
  settings.evaluation_windows = 4;
  settings.total_inner_steps = 100;
  settings.schedule = {
      .schedule = Schedule::kConstant, .learning_rate = 0.1, .warmup_steps = 0, .total_steps = 100, .final_ratio = 0.1};
  return settings;
}

const Identity kOwner{.run_id = "run-1", .incarnation = 3};

Assignment SomeInterval(Round round = 0) {
  return {.round = round,
          .inner_steps = 4,
          .first_inner_step = 4 * round,
          .first_sample = 8 * round,
          .sample_count = 8,
          .evaluation_part = 0,
          .evaluation_parts = 1};
}

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    std::ofstream text(folder_.path() + "/text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i << " of the text\n";
  }
  std::unique_ptr<Engine> NewEngine(const RunSettings& settings = SmallRun(), WorkerState* state = nullptr) {
    auto engine =
        std::make_unique<Engine>(EngineOptions{.data = folder_.path() + "/text.txt", .device = {}, .state = state},
                                 &factory_, MonotonicClock(), &board_, &sink_);
    engine->StartPrepare(settings, "run-1");
    const Prepared prepared = sink_.Await<Prepared>();
    EXPECT_TRUE(prepared.status.ok()) << prepared.status;
    return engine;
  }
  // The base as a pull would leave it.
  void SetBase(Engine* engine, float value) {
    FillBase(std::vector<float>(engine->layout().value_count(), value), 0, engine->base());
    engine->BaseChanged();
  }
  // Trains and encodes. `previous_counts`: so does the delta before.
  std::shared_ptr<const EncodedDelta> Train(Engine* engine, const Assignment& assignment,
                                            bool previous_counts = false) {
    engine->StartTraining(assignment);
    const TrainingEnded trained = sink_.Await<TrainingEnded>();
    EXPECT_TRUE(trained.status.ok()) << trained.status;
    EXPECT_EQ(trained.round, assignment.round);
    return Encode(engine, assignment, previous_counts);
  }
  std::shared_ptr<const EncodedDelta> Encode(Engine* engine, const Assignment& assignment, bool previous_counts) {
    engine->StartEncoding(assignment, kOwner, previous_counts);
    const DeltaEncoded encoded = sink_.Await<DeltaEncoded>();
    EXPECT_TRUE(encoded.status.ok()) << encoded.status;
    EXPECT_EQ(encoded.round, assignment.round);
    EXPECT_EQ(encoded.digest, engine->delta()->digest);
    return engine->delta();
  }

  TempFolder folder_;
  FakeFactory factory_;
  ProgressBoard board_{MonotonicClock()};
  Sink sink_;
};

TEST_F(EngineTest, ADatasetThatIsMissingIsAConfigurationError) {
  Engine engine({.data = folder_.path() + "/missing", .device = {}}, &factory_, MonotonicClock(), &board_, &sink_);
  engine.StartPrepare(SmallRun(), "run-1");
  EXPECT_EQ(sink_.Await<Prepared>().status.code(), absl::StatusCode::kNotFound);
}

TEST_F(EngineTest, TheDeltaIsBaseMinusParametersAfterwards) {
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.5f);
  const std::shared_ptr<const EncodedDelta> delta = Train(engine.get(), SomeInterval());
  ASSERT_NE(delta, nullptr);
  EXPECT_EQ(delta->layout_hash, engine->layout().hash());
  EXPECT_EQ(delta->digest, Digest128(std::as_bytes(std::span(delta->payload))));
  EXPECT_EQ(delta->report.inner_steps, 4u);
  EXPECT_EQ(delta->report.tokens, 4u * 2 * 8);

  std::vector<float> values(engine->layout().value_count());
  ASSERT_TRUE(DecodeVector(std::as_bytes(std::span(delta->payload)), Codec::kFp32, values).ok());
  // The trainer pulls every parameter from 0.5 to a target of about 0: what came off is positive.
  double mean = 0;
  for (const float value : values) mean += value;
  mean /= static_cast<double>(values.size());
  EXPECT_NEAR(mean, 0.5 * (1 - std::pow(0.9, 4)), 0.02);
  EXPECT_FLOAT_EQ(engine->base()->values()[0], 0.5f);  // the base stays
  EXPECT_GT(board_.Read().bits_per_value, 0);
  EXPECT_EQ(board_.Read().snr_db, std::nullopt);
}

// Two deltas in a row, each of which the server decodes: together they are what was trained, but for what the second
// one has left. A delta that does not count leaves what was carried before it.
TEST_F(EngineTest, WhatCodingLosesIsCarriedToTheNextDeltaIfTheLastOneCounts) {
  RunSettings settings = SmallRun();
  settings.coding = {.codec = Codec::kRms4, .step = 1.5};
  std::vector<float> exact;
  const std::unique_ptr<Engine> lossless = NewEngine();
  for (const Round round : {0, 1}) {
    SetBase(lossless.get(), round == 0 ? 0.25f : 0.3f);
    std::vector<float> values(lossless->layout().value_count());
    const auto delta = Train(lossless.get(), SomeInterval(round));
    ASSERT_TRUE(DecodeVector(std::as_bytes(std::span(delta->payload)), Codec::kFp32, values).ok());
    exact.insert(exact.end(), values.begin(), values.end());
  }
  const std::size_t count = exact.size() / 2;
  double error[2] = {0, 0};
  for (const bool counts : {false, true}) {
    const std::unique_ptr<Engine> engine = NewEngine(settings);
    std::vector<float> first(count), second(count);
    SetBase(engine.get(), 0.25f);
    auto delta = Train(engine.get(), SomeInterval(0));
    EXPECT_EQ(delta->codec, Codec::kRms4);
    ASSERT_TRUE(DecodeVector(std::as_bytes(std::span(delta->payload)), Codec::kRms4, first).ok());
    EXPECT_LT(board_.Read().bits_per_value, 8);
    EXPECT_GT(board_.Read().snr_db.value(), 3);
    SetBase(engine.get(), 0.3f);
    delta = Train(engine.get(), SomeInterval(1), counts);
    ASSERT_TRUE(DecodeVector(std::as_bytes(std::span(delta->payload)), Codec::kRms4, second).ok());
    // What was to be sent with the second delta, by hand.
    std::vector<float> wanted(exact.begin() + static_cast<std::ptrdiff_t>(count), exact.end());
    for (std::size_t i = 0; i < count && counts; ++i) wanted[i] += exact[i] - first[i];
    const std::string bytes = EncodeVector(wanted, settings.coding, nullptr).value();
    EXPECT_EQ(delta->payload, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      error[counts] += std::abs((exact[i] - first[i]) + (exact[count + i] - second[i]));
    }
  }
  EXPECT_LT(error[1], error[0]);
}

// An interval that is trained again carries what the one given up did.
TEST_F(EngineTest, ADeltaThatWasGivenUpTakesNothingAlong) {
  RunSettings settings = SmallRun();
  settings.coding = {.codec = Codec::kTernary, .step = 2.5};
  std::string payloads[2];
  for (const bool given_up : {false, true}) {
    const std::unique_ptr<Engine> engine = NewEngine(settings);
    SetBase(engine.get(), 0.25f);
    Train(engine.get(), SomeInterval(0));
    SetBase(engine.get(), 0.3f);
    payloads[given_up] = Train(engine.get(), SomeInterval(1), true)->payload;
    if (given_up) payloads[1] = Train(engine.get(), SomeInterval(1), false)->payload;
  }
  EXPECT_EQ(payloads[0], payloads[1]);
}

// Killed after a delta: what it carried and what it left are both there, and what became of it decides.
TEST_F(EngineTest, WhatWasCarriedComesBackAfterAKill) {
  RunSettings settings = SmallRun();
  settings.coding = {.codec = Codec::kRms4, .step = 1.5};
  for (const bool counts : {false, true}) {
    std::string payloads[2];
    for (const bool killed : {false, true}) {
      std::optional<WorkerState> state;
      if (killed) state.emplace(WorkerState::Open(folder_.path() + (counts ? "/a" : "/b"), "dc1").value());
      std::unique_ptr<Engine> engine = NewEngine(settings, state ? &*state : nullptr);
      SetBase(engine.get(), 0.25f);
      Train(engine.get(), SomeInterval(0));
      SetBase(engine.get(), 0.3f);
      Train(engine.get(), SomeInterval(1), true);
      if (killed) engine = NewEngine(settings, &*state);
      SetBase(engine.get(), 0.35f);
      payloads[killed] = Train(engine.get(), SomeInterval(2), counts)->payload;
    }
    EXPECT_EQ(payloads[0], payloads[1]);
  }
}

TEST_F(EngineTest, EqualAssignmentsGiveEqualBytes) {
  std::string payloads[2];
  for (std::string& payload : payloads) {
    const std::unique_ptr<Engine> engine = NewEngine();
    SetBase(engine.get(), 0.25f);
    Train(engine.get(), SomeInterval(0));
    SetBase(engine.get(), 0.3f);
    payload = Train(engine.get(), SomeInterval(1))->payload;
  }
  EXPECT_EQ(payloads[0], payloads[1]);
}

TEST_F(EngineTest, EveryIntervalStartsFromTheBase) {
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.25f);
  const std::string first = Train(engine.get(), SomeInterval())->payload;
  const std::string second = Train(engine.get(), SomeInterval())->payload;  // the same round again
  EXPECT_EQ(first, second);
}

TEST_F(EngineTest, EvaluationIsOfTheBase) {
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.25f);
  engine->StartEvaluation(SomeInterval());
  const EvaluationEnded before = sink_.Await<EvaluationEnded>();
  Train(engine.get(), SomeInterval());
  engine->StartEvaluation(SomeInterval());
  const EvaluationEnded after = sink_.Await<EvaluationEnded>();
  EXPECT_TRUE(before.status.ok());
  EXPECT_GT(before.part.tokens, 0u);
  EXPECT_EQ(before.part, after.part);
}

TEST_F(EngineTest, ANonFiniteDeltaIsNamedAndNotKept) {
  factory_.options.nan_step = 1;
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.25f);
  engine->StartTraining(SomeInterval());
  EXPECT_TRUE(sink_.Await<TrainingEnded>().status.ok());
  engine->StartEncoding(SomeInterval(), kOwner, false);
  const DeltaEncoded ended = sink_.Await<DeltaEncoded>();
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ended.status.message()), HasSubstr("tensor model.embed_tokens.weight: value"));
  EXPECT_EQ(engine->delta(), nullptr);
}

TEST_F(EngineTest, CancelEndsTheInterval) {
  factory_.options.step_duration = absl::Milliseconds(5);
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.25f);
  Assignment endless = SomeInterval();
  endless.inner_steps = 1000000;
  endless.sample_count = 2000000;
  engine->StartTraining(endless);
  engine->Cancel();
  EXPECT_EQ(sink_.Await<TrainingEnded>().status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(engine->idle());
  EXPECT_EQ(engine->delta(), nullptr);
}

TEST_F(EngineTest, TheDeltaIsKeptUntilItsRoundIsDropped) {
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.25f);
  Train(engine.get(), SomeInterval(3));
  engine->DropDelta(2);
  EXPECT_NE(engine->delta(), nullptr);
  engine->DropDelta(3);
  EXPECT_EQ(engine->delta(), nullptr);
}

TEST_F(EngineTest, AnIntervalThatEndsEarlyGivesWhatItHas) {
  factory_.options.step_duration = absl::Milliseconds(2);
  const std::unique_ptr<Engine> engine = NewEngine();
  SetBase(engine.get(), 0.25f);
  Assignment endless = SomeInterval();
  endless.inner_steps = 1000000;
  endless.sample_count = 2000000;
  engine->StartTraining(endless);
  while (board_.Read().steps_done == 0) std::this_thread::yield();
  engine->EndTrainingEarly(1);
  const TrainingEnded ended = sink_.Await<TrainingEnded>();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  Encode(engine.get(), endless, false);
  EXPECT_GE(engine->delta()->report.inner_steps, 1u);
  EXPECT_LT(engine->delta()->report.inner_steps, 1000000u);

  engine->StartTraining(endless);  // what was asked of the last interval is over
  while (board_.Read().steps_done == 0) std::this_thread::yield();
  engine->EndTrainingEarly(900000);
  EXPECT_EQ(sink_.Await<TrainingEnded>().status.code(), absl::StatusCode::kCancelled);
}

// What a worker does after it was killed is what it would have done.
TEST_F(EngineTest, ASavedOptimizerGoesOnWithTheSameBits) {
  factory_.options.momentum = 0.9;
  const std::string folder = folder_.path() + "/state";
  std::string payloads[3];
  for (const int kind : {0, 1, 2}) {  // undisturbed, killed with a state on disk, killed without one
    std::optional<WorkerState> state;
    if (kind == 1) state.emplace(WorkerState::Open(folder, "dc1").value());
    std::unique_ptr<Engine> engine = NewEngine(SmallRun(), state ? &*state : nullptr);
    SetBase(engine.get(), 0.25f);
    Train(engine.get(), SomeInterval(0));
    if (kind != 0) {
      engine = NewEngine(SmallRun(), state ? &*state : nullptr);
    }
    SetBase(engine.get(), 0.3f);
    payloads[kind] = Train(engine.get(), SomeInterval(1))->payload;
    if (state) {
      const std::optional<SavedDelta> saved = state->LoadDelta();
      ASSERT_TRUE(saved.has_value());
      EXPECT_EQ(saved->held.owner, kOwner);
      EXPECT_EQ(saved->held.assignment, SomeInterval(1));
      EXPECT_EQ(saved->encoded->payload, payloads[kind]);
    }
  }
  EXPECT_EQ(payloads[0], payloads[1]);
  EXPECT_NE(payloads[0], payloads[2]);
}

TEST_F(EngineTest, ADeltaThatCannotBeSavedIsSentAllTheSame) {
  WorkerState state = WorkerState::Open(folder_.path() + "/state", "dc1").value();
  std::filesystem::create_directory(folder_.path() + "/state/interval.safetensors.tmp");
  const std::unique_ptr<Engine> engine = NewEngine(SmallRun(), &state);
  SetBase(engine.get(), 0.25f);
  EXPECT_NE(Train(engine.get(), SomeInterval()), nullptr);
}

TEST_F(EngineTest, ADeltaThatWasSavedWaitsToBeSent) {
  auto saved = std::make_shared<EncodedDelta>();
  saved->round = 4;
  Engine engine({.data = "", .device = {}, .saved = saved}, &factory_, MonotonicClock(), &board_, &sink_);
  EXPECT_EQ(engine.delta(), saved);
  engine.DropDelta(4);
  EXPECT_EQ(engine.delta(), nullptr);
}

TEST_F(EngineTest, StrictRunsUseOneThreadUnlessToldOtherwise) {
  RunSettings settings = SmallRun();
  NewEngine(settings);
  EXPECT_EQ(factory_.device.threads, 0u);
  settings.strict = true;
  NewEngine(settings);
  EXPECT_EQ(factory_.device.threads, 1u);
}

}  // namespace
}  // namespace autoloco::worker
