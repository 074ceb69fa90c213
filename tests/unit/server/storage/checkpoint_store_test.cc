#include "server/storage/checkpoint_store.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/tensor/model_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/checkpoint_loader.h"
#include "server/storage/checkpoint_manifest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderShape SmallShape() {
  DecoderShape shape;
  shape.vocab_size = 16;
  shape.width = 8;
  shape.layers = 1;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.mlp_hidden = 12;
  shape.context = 4;
  return shape;
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto state = StateFolder::Open(temp_.File("state"), "run");
    ASSERT_TRUE(state.ok()) << state.status();
    state_ = std::make_unique<StateFolder>(*std::move(state));
    layout_ = *MakeDecoderLayout(shape_);
    params_.resize(layout_.value_count());
    momentum_.resize(layout_.value_count());
    OpenStore(3);
  }

  void OpenStore(std::uint32_t keep) {
    auto store = FolderCheckpointStore::Open(state_.get(), shape_, keep);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // A checkpoint whose values depend on the step.
  absl::StatusOr<StoredCheckpoint> Write(std::uint64_t inner_step) {
    InitializeParameters(layout_, inner_step, 0.02, params_);
    InitializeParameters(layout_, inner_step + 1000, 0.1, momentum_);
    return WriteValues(inner_step);
  }
  absl::StatusOr<StoredCheckpoint> WriteValues(std::uint64_t inner_step) {
    CheckpointContent content;
    content.snapshot.version = inner_step / 5;
    content.snapshot.inner_steps_done = inner_step;
    content.snapshot.evaluations = {{0, 0, 5.5, 100}};
    content.params_digest = Digest128(params_);
    if (!view_.empty()) content.view_digest = Digest128(view_);
    CheckpointReader vectors({params_, momentum_, view_});
    content.vectors = &vectors;
    return store_->Write(content);
  }

  absl::StatusOr<LoadedCheckpoint> LoadNewest() {
    std::fill(params_.begin(), params_.end(), 0.f);
    std::fill(momentum_.begin(), momentum_.end(), 0.f);
    ParameterStore loaded = *ParameterStore::Allocate(layout_);
    const auto newest = LoadNewestCheckpoint(*state_, &loaded);
    params_.assign(loaded.params().begin(), loaded.params().end());
    momentum_.assign(loaded.momentum().begin(), loaded.momentum().end());
    view_.assign(loaded.view_values().begin(), loaded.view_values().end());
    return newest;
  }

  std::string PathOf(std::uint64_t inner_step) { return state_->checkpoints_path() + "/" + CheckpointName(inner_step); }
  std::string FileOf(std::uint64_t inner_step, const std::string& name) { return PathOf(inner_step) + "/" + name; }

  void Flip(const std::string& path, std::size_t index) {
    std::string bytes = *ReadFile(path, 1 << 20);
    bytes[index % bytes.size()] ^= 0x10;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(state_->checkpoints_path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const TempFolder temp_;
  DecoderShape shape_ = SmallShape();
  std::unique_ptr<StateFolder> state_;
  std::unique_ptr<FolderCheckpointStore> store_;
  Layout layout_;
  std::vector<float> params_;
  std::vector<float> momentum_;
  std::vector<float> view_;  // empty: the parameters are the view
};

TEST_F(CheckpointStoreTest, WhatIsWrittenComesBackBitForBit) {
  EXPECT_FALSE(*state_->HasCheckpoints());
  const auto stored = Write(25);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(*state_->HasCheckpoints());
  EXPECT_EQ(stored->path, PathOf(25));
  const std::vector<float> params = params_;
  const std::vector<float> momentum = momentum_;
  const auto loaded = LoadNewest();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->path, PathOf(25));
  EXPECT_EQ(loaded->snapshot.version, 5u);
  EXPECT_EQ(loaded->snapshot.inner_steps_done, 25u);
  EXPECT_EQ(loaded->snapshot.evaluations.size(), 1u);
  EXPECT_TRUE(loaded->all_finite);
  EXPECT_EQ(params_, params);
  EXPECT_EQ(momentum_, momentum);
  EXPECT_EQ(loaded->params_digest, Digest128(std::span<const float>(params)));
}

TEST_F(CheckpointStoreTest, AViewOfItsOwnIsStoredWithTheMomentum) {
  view_.resize(layout_.value_count());
  InitializeParameters(layout_, 77, 0.02, view_);
  const std::vector<float> view = view_;
  ASSERT_TRUE(Write(25).ok());
  const auto loaded = LoadNewest();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(view_, view);
  EXPECT_EQ(loaded->view_digest, Digest128(std::span<const float>(view)));
  EXPECT_NE(loaded->view_digest, loaded->params_digest);
  view_.clear();
  ASSERT_TRUE(Write(30).ok());
  const auto without = LoadNewest();
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_TRUE(view_.empty());
  EXPECT_EQ(without->view_digest, without->params_digest);
}

TEST_F(CheckpointStoreTest, AViewThatIsNotFiniteMakesTheCheckpointNotFinite) {
  view_.assign(layout_.value_count(), std::nanf(""));
  ASSERT_TRUE(Write(25).ok());
  EXPECT_FALSE(ReadManifest(FileOf(25, kManifestFile))->all_finite);
}

TEST_F(CheckpointStoreTest, BytesAreThoseOfTheFiles) {
  const auto stored = Write(25);
  ASSERT_TRUE(stored.ok()) << stored.status();
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(stored->path)) {
    if (!entry.is_symlink()) bytes += entry.file_size();
  }
  EXPECT_EQ(stored->bytes, bytes);
  EXPECT_GT(bytes, 8 * layout_.value_count());
}

TEST_F(CheckpointStoreTest, ACheckpointIsAModelFolder) {
  ASSERT_TRUE(Write(25).ok());
  const auto model = ReadModelFolder(PathOf(25));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->shape, shape_);
  EXPECT_TRUE(std::equal(params_.begin(), params_.end(), model->parameters.values().begin()));
  EXPECT_EQ(fs::read_symlink(FileOf(25, "model.safetensors")), "params.safetensors");
}

TEST_F(CheckpointStoreTest, KeepsTheNewest) {
  for (const std::uint64_t step : {5, 10, 15, 20, 25}) ASSERT_TRUE(Write(step).ok());
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(15), CheckpointName(20), CheckpointName(25)));
  OpenStore(2);
  ASSERT_TRUE(Write(30).ok());
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25), CheckpointName(30)));
}

TEST_F(CheckpointStoreTest, NeverDropsTheNewestFiniteOne) {
  OpenStore(2);
  ASSERT_TRUE(Write(5).ok());
  ASSERT_TRUE(Write(10).ok());
  for (const std::uint64_t step : {15, 20, 25}) {
    if (step == 20) OpenStore(2);  // what is finite is remembered over a restart
    InitializeParameters(layout_, step, 0.02, params_);
    (step == 20 ? params_ : momentum_).back() = step == 15 ? NAN : INFINITY;
    ASSERT_TRUE(WriteValues(step).ok());
  }
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(10), CheckpointName(20), CheckpointName(25)));
  ASSERT_TRUE(Write(30).ok());
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25), CheckpointName(30)));
}

// keep=2, three checkpoints, the last two of them not finite: the first survives, and a start takes it.
TEST_F(CheckpointStoreTest, TheNewestFiniteOneIsTheOneToGoOnFrom) {
  OpenStore(2);
  ASSERT_TRUE(Write(5).ok());
  for (const std::uint64_t step : {10, 15}) {
    InitializeParameters(layout_, step, 0.02, params_);
    params_[3] = NAN;
    ASSERT_TRUE(WriteValues(step).ok());
  }
  const auto loaded = LoadNewest();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->snapshot.inner_steps_done, 5u);
  EXPECT_TRUE(loaded->all_finite);
  EXPECT_TRUE(fs::exists(state_->checkpoints_path() + "/not-finite-" + CheckpointName(15)));
  EXPECT_THAT(Names(), ::testing::Contains(CheckpointName(5)));
}

TEST_F(CheckpointStoreTest, WithoutAFiniteOneTheNewestIsTaken) {
  InitializeParameters(layout_, 5, 0.02, params_);
  params_[3] = NAN;
  ASSERT_TRUE(WriteValues(5).ok());
  const auto loaded = LoadNewest();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE(loaded->all_finite);
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(5)));
}

TEST_F(CheckpointStoreTest, TheSameStepIsReplaced) {
  ASSERT_TRUE(Write(25).ok());
  params_[0] += 1;
  const std::vector<float> params = params_;
  ASSERT_TRUE(WriteValues(25).ok());
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25)));
  ASSERT_TRUE(LoadNewest().ok());
  EXPECT_EQ(params_, params);
}

TEST_F(CheckpointStoreTest, LeftoversOfACrashGo) {
  ASSERT_TRUE(Write(25).ok());
  const std::string leftover = state_->checkpoints_path() + "/" + TemporaryName(30);
  ASSERT_TRUE(MakeFolders(leftover).ok());
  ASSERT_TRUE(WriteFileAtomically(leftover + "/params.safetensors", "half").ok());
  OpenStore(3);
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25)));
}

TEST_F(CheckpointStoreTest, ADigestThatDoesNotFitIsNotWritten) {
  ASSERT_TRUE(Write(25).ok());
  CheckpointContent content;
  content.snapshot.inner_steps_done = 30;
  content.params_digest = "0123";
  CheckpointReader vectors({params_, momentum_, view_});
  content.vectors = &vectors;
  EXPECT_EQ(store_->Write(content).status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25)));
}

// A file size limit stands for the full disk: write(2) fails midway.
TEST_F(CheckpointStoreTest, AFailedWriteLosesNothing) {
  ASSERT_TRUE(Write(25).ok());
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit low = before;
  low.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const auto failed = Write(30);
  const auto replaced = Write(25);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_FALSE(failed.ok());
  EXPECT_FALSE(replaced.ok());
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("params.safetensors"));
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25)));
  const auto loaded = LoadNewest();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->snapshot.inner_steps_done, 25u);
  EXPECT_TRUE(Write(30).ok());
}

TEST_F(CheckpointStoreTest, DamageFallsBackToTheOneBefore) {
  const std::vector<std::string> files = {"params.safetensors", "outer.safetensors", "config.json", "manifest.json"};
  for (const std::string& file : files) {
    for (const bool remove : {false, true}) {
      ASSERT_TRUE(Write(20).ok());
      const std::vector<float> params = params_;
      ASSERT_TRUE(Write(25).ok());
      if (remove) {
        ASSERT_EQ(std::remove(FileOf(25, file).c_str()), 0);
      } else {
        Flip(FileOf(25, file), 1000);
      }
      const auto loaded = LoadNewest();
      ASSERT_TRUE(loaded.ok()) << file << ": " << loaded.status();
      EXPECT_EQ(loaded->snapshot.inner_steps_done, 20u) << file;
      EXPECT_EQ(params_, params) << file;
      EXPECT_THAT(Names(), ElementsAre("damaged-" + CheckpointName(25), CheckpointName(20))) << file;
    }
  }
}

TEST_F(CheckpointStoreTest, ACutFileIsDamage) {
  ASSERT_TRUE(Write(20).ok());
  ASSERT_TRUE(Write(25).ok());
  fs::resize_file(FileOf(25, "params.safetensors"), 100);
  const auto loaded = LoadNewest();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->path, PathOf(20));
}

TEST_F(CheckpointStoreTest, WhereAllAreDamagedNoneIsTouched) {
  ASSERT_TRUE(Write(20).ok());
  ASSERT_TRUE(Write(25).ok());
  Flip(FileOf(20, "params.safetensors"), 5000);
  Flip(FileOf(25, "outer.safetensors"), 5000);
  const auto loaded = LoadNewest();
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("none of the 2 checkpoints"));
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(FileOf(25, "outer.safetensors")));
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(20), CheckpointName(25)));
  EXPECT_TRUE(*state_->HasCheckpoints());
}

TEST_F(CheckpointStoreTest, NoCheckpointIsNotFound) {
  EXPECT_EQ(LoadNewest().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointStoreTest, AnotherModelIsRefusedByItsFirstDifference) {
  ASSERT_TRUE(Write(25).ok());
  DecoderShape other = shape_;
  other.mlp_hidden = 16;
  const Layout layout = *MakeDecoderLayout(other);
  ParameterStore parameters = *ParameterStore::Allocate(layout);
  const auto loaded = LoadNewestCheckpoint(*state_, &parameters);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(25)));
}

TEST_F(CheckpointStoreTest, AnotherRunIsRefused) {
  ASSERT_TRUE(Write(25).ok());
  const std::string run_id = state_->run_id();
  state_.reset();
  ASSERT_TRUE(WriteFileAtomically(temp_.File("state/run_id"), "other-00000000\n").ok());
  auto state = StateFolder::Open(temp_.File("state"), "run");
  ASSERT_TRUE(state.ok()) << state.status();
  state_ = std::make_unique<StateFolder>(*std::move(state));
  const auto loaded = LoadNewest();
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(run_id));
}

}  // namespace
}  // namespace autoloco::server
