#include "worker/runtime/worker_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "tests/support/temp_folder.h"

namespace autoloco::worker {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kLayoutHash = 99;

EncodedDelta SomeDelta(const std::string& payload = "seven b") {
  EncodedDelta delta;
  delta.round = 4;
  delta.layout_hash = kLayoutHash;
  delta.codec = Codec::kBf16;
  delta.payload = payload;
  delta.digest = Digest128(std::as_bytes(std::span(payload)));
  delta.report = {.inner_steps = 3,
                  .tokens = 48,
                  .learning_rate_sum = 0.1 + 0.2,  // no short decimal
                  .loss_mean = 2.5,
                  .loss_first = 3,
                  .loss_last = std::numeric_limits<double>::infinity(),
                  .gradient_norm_mean = 1e-300,
                  .step_seconds_mean = 0.25};
  return delta;
}

HeldDelta KeyOf(const EncodedDelta& delta, const std::string& run_id = "run-1") {
  return {.owner = {.run_id = run_id, .incarnation = 3},
          .assignment = {.round = delta.round,
                         .inner_steps = 5,
                         .first_inner_step = 20,
                         .first_sample = 40,
                         .sample_count = 10,
                         .evaluation_part = 1,
                         .evaluation_parts = 2},
          .digest = delta.digest};
}

class WorkerStateTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.File("interval.safetensors"); }
  WorkerState Open(const std::string& worker = "dc1") { return WorkerState::Open(folder_.path(), worker).value(); }
  void Write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes; }
  absl::Status Save(const WorkerState& state, const EncodedDelta& delta, const std::string& run_id = "run-1") {
    return state.Save(KeyOf(delta, run_id), delta,
                      {.first_moment = first_,
                       .second_moment = second_,
                       .steps = 12,
                       .residual = residual_,
                       .next_residual = next_residual_});
  }
  absl::StatusOr<std::uint64_t> Load(const WorkerState& state, const std::string& run_id = "run-1") {
    loaded_first_.assign(first_.size(), 0);
    loaded_second_.assign(second_.size(), 0);
    loaded_residual_.assign(first_.size(), 9);
    loaded_next_residual_.assign(first_.size(), 9);
    return state.Load(run_id, kLayoutHash,
                      {.first_moment = loaded_first_,
                       .second_moment = loaded_second_,
                       .residual = loaded_residual_,
                       .next_residual = loaded_next_residual_});
  }

  const TempFolder folder_;
  const std::vector<float> first_ = {1, -2, 3.5f, 0.1f, 5};
  const std::vector<float> second_ = {5, 4, 3, 2, 1e-30f};
  std::vector<float> residual_ = {0.5f, 0, -0.25f, 1, 2};
  std::vector<float> next_residual_ = {-0.5f, 3, 0.125f, 1e-20f, 0};
  std::vector<float> loaded_first_, loaded_second_, loaded_residual_, loaded_next_residual_;
};

TEST_F(WorkerStateTest, NothingIsSavedAtFirst) {
  const WorkerState state = Open();
  EXPECT_FALSE(state.LoadDelta().has_value());
  EXPECT_TRUE(absl::IsNotFound(Load(state).status()));
}

TEST_F(WorkerStateTest, WhatWasSavedComesBack) {
  for (const std::string payload : {"seven b", "eight by", "x"}) {
    const EncodedDelta delta = SomeDelta(payload);
    {
      const WorkerState state = Open();
      ASSERT_TRUE(Save(state, delta).ok());
    }
    const WorkerState state = Open();
    const std::optional<SavedDelta> saved = state.LoadDelta();
    ASSERT_TRUE(saved.has_value());
    EXPECT_EQ(saved->held, KeyOf(delta));
    EXPECT_EQ(saved->encoded->round, 4u);
    EXPECT_EQ(saved->encoded->payload, payload);
    EXPECT_EQ(saved->encoded->digest, delta.digest);
    EXPECT_EQ(saved->encoded->layout_hash, kLayoutHash);
    EXPECT_EQ(saved->encoded->codec, Codec::kBf16);
    EXPECT_EQ(saved->encoded->report, delta.report);
    EXPECT_EQ(Load(state).value(), 12u);
    EXPECT_EQ(loaded_first_, first_);
    EXPECT_EQ(loaded_second_, second_);
    EXPECT_EQ(loaded_residual_, residual_);
    EXPECT_EQ(loaded_next_residual_, next_residual_);
  }
}

TEST_F(WorkerStateTest, WhereCodingLosesNothingNothingIsCarried) {
  const WorkerState state = Open();
  ASSERT_TRUE(Save(state, SomeDelta()).ok());
  loaded_first_ = loaded_second_ = first_;
  EXPECT_TRUE(state.Load("run-1", kLayoutHash, {.first_moment = loaded_first_, .second_moment = loaded_second_}).ok());
  residual_.clear();
  next_residual_.clear();
  ASSERT_TRUE(Save(state, SomeDelta()).ok());
  EXPECT_EQ(Load(state).value(), 12u);
  EXPECT_EQ(loaded_residual_, std::vector<float>(first_.size(), 0));
  EXPECT_EQ(loaded_next_residual_, std::vector<float>(first_.size(), 0));
}

TEST_F(WorkerStateTest, OneWorkerAFolder) {
  const WorkerState state = Open();
  const absl::Status second = WorkerState::Open(folder_.path(), "dc2").status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("already in use by pid ", getpid())));
}

TEST_F(WorkerStateTest, TheStateOfAnotherWorkerIsNotTakenOver) {
  ASSERT_TRUE(Save(Open("dc1"), SomeDelta()).ok());
  const WorkerState state = Open("dc2");
  EXPECT_FALSE(state.LoadDelta().has_value());
  EXPECT_FALSE(Load(state).ok());
}

TEST_F(WorkerStateTest, TheOptimizerOfAnotherRunOrModelIsNotLoaded) {
  const WorkerState state = Open();
  ASSERT_TRUE(Save(state, SomeDelta(), "run-1").ok());
  EXPECT_TRUE(absl::IsNotFound(Load(state, "run-2").status()));
  std::vector<float> values(first_.size());
  std::vector<float> more = values;
  const absl::Status other =
      state.Load("run-1", kLayoutHash + 1, {.first_moment = values, .second_moment = more}).status();
  EXPECT_THAT(std::string(other.message()), HasSubstr("layout"));
  std::vector<float> fewer(first_.size() - 1);
  EXPECT_FALSE(state.Load("run-1", kLayoutHash, {.first_moment = fewer, .second_moment = fewer}).ok());
}

TEST_F(WorkerStateTest, AFlippedByteAnywhereIsFound) {
  const WorkerState state = Open();
  ASSERT_TRUE(Save(state, SomeDelta()).ok());
  const std::string whole = ReadFile(path(), 1 << 20).value();
  // The header's JSON may be written in more than one way; what it says may not change.
  const std::uint64_t header_bytes = static_cast<unsigned char>(whole[0]) + 256u * static_cast<unsigned char>(whole[1]);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x01);
    Write(damaged);
    const std::optional<SavedDelta> delta = state.LoadDelta();
    const absl::StatusOr<std::uint64_t> steps = Load(state);
    if (at >= 8 + header_bytes) {
      const bool in_padding = at + 1 == whole.size();  // 7 bytes of payload, 8 in the file
      EXPECT_TRUE(!delta || !steps.ok() || in_padding) << at;
    }
    if (delta) {
      EXPECT_EQ(delta->held, KeyOf(SomeDelta())) << at;
    }
    if (steps.ok()) {
      EXPECT_EQ(*steps, 12u) << at;
      EXPECT_EQ(loaded_first_, first_) << at;
      EXPECT_EQ(loaded_residual_, residual_) << at;
      EXPECT_EQ(loaded_next_residual_, next_residual_) << at;
    }
  }
}

TEST_F(WorkerStateTest, AFileThatIsCutShortIsIgnored) {
  const WorkerState state = Open();
  ASSERT_TRUE(Save(state, SomeDelta()).ok());
  const std::string whole = ReadFile(path(), 1 << 20).value();
  for (std::size_t left = 0; left < whole.size(); left += 7) {
    Write(whole.substr(0, left));
    EXPECT_FALSE(state.LoadDelta().has_value()) << left;
    EXPECT_FALSE(Load(state).ok()) << left;
  }
}

TEST_F(WorkerStateTest, AFailedSaveLeavesWhatWasThere) {
  const WorkerState state = Open();
  ASSERT_TRUE(Save(state, SomeDelta("first")).ok());
  std::filesystem::create_directory(path() + ".tmp");  // in the way of the new file
  EXPECT_FALSE(Save(state, SomeDelta("second")).ok());
  EXPECT_EQ(state.LoadDelta()->encoded->payload, "first");
}

}  // namespace
}  // namespace autoloco::worker
