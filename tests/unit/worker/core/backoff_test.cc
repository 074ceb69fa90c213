#include "worker/core/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace autoloco::worker {
namespace {

TEST(BackoffTest, GrowsToItsCapWithinTheJitter) {
  Backoff backoff(absl::Seconds(10), 7, 1);
  absl::Duration nominal = absl::Milliseconds(200);
  for (int i = 0; i < 30; ++i) {
    const absl::Duration pause = backoff.Next();
    EXPECT_GE(pause, nominal / 2) << i;
    EXPECT_LE(pause, nominal) << i;
    nominal = std::min(nominal * 2, absl::Seconds(10));
  }
}

TEST(BackoffTest, ResetStartsFromTheShortestAgain) {
  Backoff backoff(absl::Seconds(10), 7, 1);
  for (int i = 0; i < 5; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(200));
}

TEST(BackoffTest, SeedsAndStreamsDiffer) {
  const auto draw = [](std::uint64_t seed, std::uint64_t stream) {
    Backoff backoff(absl::Seconds(10), seed, stream);
    std::vector<absl::Duration> pauses;
    for (int i = 0; i < 4; ++i) pauses.push_back(backoff.Next());
    return pauses;
  };
  EXPECT_EQ(draw(1, 1), draw(1, 1));
  EXPECT_NE(draw(1, 1), draw(2, 1));
  EXPECT_NE(draw(1, 1), draw(1, 2));
}

}  // namespace
}  // namespace autoloco::worker
