#include "server/runtime/live_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "common/codec/codec.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kValues = 2 * kBlockValues + 100;

TEST(LiveViewTest, ReadsBlocksOfTheirOwnVersions) {
  const std::shared_ptr<LiveView> view = *LiveView::Allocate(kValues);
  EXPECT_EQ(view->block_count(), 3);
  EXPECT_EQ(view->value_count(), kValues);
  std::vector<float> last(100);
  EXPECT_EQ(view->Read(2, last), 0);
  view->SetVersion(7);
  view->Change(2, [&view] { view->values()[kValues - 1] = 5; });
  EXPECT_EQ(view->Read(2, last), 8);
  EXPECT_EQ(last[98], 0);
  EXPECT_EQ(last[99], 5);
  std::vector<float> first(kBlockValues, 1);
  EXPECT_EQ(view->Read(0, first), 7);
  EXPECT_EQ(first, std::vector<float>(kBlockValues));
}

// Every value of a block that is read is of the version that the block is said to be of.
TEST(LiveViewTest, ABlockIsNeverReadInTheMiddleOfItsChange) {
  constexpr Version kVersions = 200;
  const std::shared_ptr<LiveView> view = *LiveView::Allocate(kBlockValues);
  std::atomic<bool> torn = false;
  std::thread reader([&view, &torn] {
    std::vector<float> block(kBlockValues);
    Version version = 0;
    while (version < kVersions) {
      version = view->Read(0, block);
      const auto wrong = [version](float value) { return value != static_cast<float>(version); };
      if (std::any_of(block.begin(), block.end(), wrong)) torn = true;
    }
  });
  for (Version version = 1; version <= kVersions; ++version) {
    view->Change(
        0, [&view, version] { std::fill(view->values().begin(), view->values().end(), static_cast<float>(version)); });
  }
  reader.join();
  EXPECT_FALSE(torn);
}

}  // namespace
}  // namespace autoloco::server
