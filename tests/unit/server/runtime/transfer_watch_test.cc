#include "server/runtime/transfer_watch.h"

#include <gtest/gtest.h>

namespace autoloco::server {
namespace {

constexpr std::uint64_t kEnough = TransferWatch::kLeastBytes;
const Instant kStart = absl::UnixEpoch();
const absl::Duration kTimeout = absl::Seconds(10);

Instant At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(TransferWatchTest, FailsWhenLittleMoves) {
  TransferWatch watch(kStart);
  EXPECT_FALSE(watch.Stalled(0, At(9.9), kTimeout));
  EXPECT_FALSE(watch.Stalled(kEnough - 1, At(9.9), kTimeout));
  EXPECT_TRUE(watch.Stalled(kEnough - 1, At(10), kTimeout));
}

TEST(TransferWatchTest, NeverFailsOnTotalTime) {
  TransferWatch watch(kStart);
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(watch.Stalled(i * kEnough, At(9 * i), kTimeout));
  EXPECT_TRUE(watch.Stalled(99 * kEnough + 1, At(9 * 99 + 10), kTimeout));
}

TEST(TransferWatchTest, IsHeardOfAtMostOnceASecond) {
  TransferWatch watch(kStart);
  EXPECT_FALSE(watch.Heard(1, At(0.9)));
  EXPECT_TRUE(watch.Heard(1, At(1)));
  EXPECT_FALSE(watch.Heard(1, At(5))) << "nothing moved";
  EXPECT_TRUE(watch.Heard(2, At(5)));
  EXPECT_FALSE(watch.Heard(3, At(5.5)));
}

TEST(TransferWatchTest, LessMayBeEnough) {
  TransferWatch watch(kStart);
  EXPECT_FALSE(watch.Stalled(100, At(10), kTimeout, 100));
  EXPECT_FALSE(watch.Stalled(199, At(19.9), kTimeout, 100));
  EXPECT_TRUE(watch.Stalled(199, At(20), kTimeout, 100));
}

}  // namespace
}  // namespace autoloco::server
