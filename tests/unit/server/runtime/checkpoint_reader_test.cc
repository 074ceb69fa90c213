#include "server/runtime/checkpoint_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/codec/codec.h"

namespace autoloco::server {
namespace {

// Stands still until it is told otherwise; counts who asks.
struct CountingClock final : Clock {
  Instant Now() const override {
    ++asked;
    return Instant() + absl::Seconds(seconds.load());
  }
  mutable std::atomic<int> asked{0};
  std::atomic<int> seconds{0};
};

constexpr std::size_t kBlocks = 5;
constexpr std::size_t kValues = (kBlocks - 1) * kBlockValues + 7;

struct Values {
  explicit Values(float first) : params(kValues), momentum(kValues), view(kValues) {
    std::iota(params.begin(), params.end(), first);
    std::iota(momentum.begin(), momentum.end(), first + 0.25F);
    std::iota(view.begin(), view.end(), first + 0.5F);
  }
  CheckpointReader::Vectors vectors() const { return {params, momentum, view}; }

  std::vector<float> params;
  std::vector<float> momentum;
  std::vector<float> view;
};

void Append(std::span<const float> values, std::vector<float>* out) {
  out->insert(out->end(), values.begin(), values.end());
}

// Appends what the reader gives next.
void ReadNext(CheckpointReader* reader, Values* read) {
  const CheckpointReader::Vectors block = reader->Next();
  Append(block.params, &read->params);
  Append(block.momentum, &read->momentum);
  Append(block.view, &read->view);
}

void Change(Values* live, std::size_t block, CheckpointReader* reader) {
  reader->BeforeChange(block);
  for (std::vector<float>* vector : {&live->params, &live->momentum, &live->view}) {
    const std::span<float> values = std::span(*vector).subspan(block * kBlockValues, BlockSize(kValues, block));
    std::fill(values.begin(), values.end(), -1.0F);
  }
}

void ExpectRead(const Values& want, const Values& read) {
  EXPECT_TRUE(read.params == want.params);
  EXPECT_TRUE(read.momentum == want.momentum);
  EXPECT_TRUE(read.view == want.view);
}

Values Empty() {
  Values none(0);
  none.params.clear();
  none.momentum.clear();
  none.view.clear();
  return none;
}

TEST(CheckpointReaderTest, GivesTheOldValuesWhateverWasChangedInBetween) {
  const Values old(1);
  for (std::size_t changed_after = 0; changed_after <= kBlocks; ++changed_after) {
    Values live(1);
    Values read = Empty();
    CheckpointReader reader(live.vectors());
    for (std::size_t block = 0; block < changed_after; ++block) ReadNext(&reader, &read);
    for (const std::size_t block : {3, 0, 4, 1, 2}) Change(&live, block, &reader);
    for (std::size_t block = changed_after; block < kBlocks; ++block) ReadNext(&reader, &read);
    ExpectRead(old, read);
  }
}

TEST(CheckpointReaderTest, WithoutAViewThereIsNone) {
  const Values live(1);
  CheckpointReader reader({live.params, live.momentum, {}});
  EXPECT_FALSE(reader.has_view());
  EXPECT_TRUE(reader.Next().view.empty());
}

TEST(CheckpointReaderTest, ACommitThatIsTooFarAheadWaitsForTheReader) {
  const Values old(1);
  Values live(1);
  Values read = Empty();
  CheckpointReader reader(live.vectors(), nullptr, 2 * 3 * kBlockValues * sizeof(float));  // room for two blocks
  std::atomic<std::size_t> changed{0};
  std::thread commit([&] {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      Change(&live, block, &reader);
      changed = block + 1;
    }
  });
  for (std::size_t block = 0; block < kBlocks; ++block) {
    EXPECT_LE(changed, block + 2);
    ReadNext(&reader, &read);
  }
  commit.join();
  ExpectRead(old, read);
}

TEST(CheckpointReaderTest, TheTimeOfWaitingIsTold) {
  Values live(1);
  CountingClock clock;
  CheckpointReader reader(live.vectors(), &clock, 1);  // one block is always allowed
  std::thread commit([&] {
    Change(&live, 1, &reader);
    Change(&live, 2, &reader);
  });
  while (clock.asked == 0) std::this_thread::yield();  // it waits
  clock.seconds = 3;
  reader.Next();
  reader.Next();  // takes the copy: there is room again
  commit.join();
  EXPECT_EQ(reader.held_up(), absl::Seconds(3));
}

TEST(CheckpointReaderTest, ClosedItHoldsNobodyUp) {
  Values live(1);
  CheckpointReader reader(live.vectors(), nullptr, 1);
  Change(&live, 0, &reader);
  std::thread commit([&] { Change(&live, 1, &reader); });
  reader.Close();
  commit.join();
  Change(&live, 2, &reader);
  EXPECT_EQ(live.params[2 * kBlockValues], -1.0F);
}

TEST(CheckpointReaderTest, ManyThreadsAtOnce) {
  const Values old(1);
  for (int repeat = 0; repeat < 20; ++repeat) {
    Values live(1);
    Values read = Empty();
    CheckpointReader reader(live.vectors(), nullptr, 1);
    std::vector<std::thread> commits;
    for (std::size_t start = 0; start < 2; ++start) {
      commits.emplace_back([&, start] {
        for (std::size_t block = start; block < kBlocks; block += 2) Change(&live, block, &reader);
      });
    }
    for (std::size_t block = 0; block < kBlocks; ++block) ReadNext(&reader, &read);
    for (std::thread& commit : commits) commit.join();
    ExpectRead(old, read);
  }
}

}  // namespace
}  // namespace autoloco::server
