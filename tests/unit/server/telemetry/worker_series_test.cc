#include "server/telemetry/worker_series.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Instant kStart = absl::UnixEpoch() + absl::Hours(10);

TEST(WorkerSeriesTest, NamesBeyondTheLimitShareOne) {
  WorkerSeries series(2, absl::Hours(1));
  EXPECT_EQ(series.Take("a"), "a");
  EXPECT_EQ(series.Take("b"), "b");
  EXPECT_EQ(series.Take("c"), "_other");
  EXPECT_EQ(series.Take("a"), "a");
}

TEST(WorkerSeriesTest, FindTakesNothing) {
  WorkerSeries series(1, absl::Hours(1));
  EXPECT_EQ(series.Find("a"), "_other");
  EXPECT_EQ(series.Take("b"), "b");
  EXPECT_EQ(series.Find("b"), "b");
}

TEST(WorkerSeriesTest, ANameIsFreeAnHourAfterItsWorkerLeft) {
  WorkerSeries series(1, absl::Hours(1));
  series.Take("a");
  EXPECT_THAT(series.Expire({"a"}, kStart), IsEmpty());
  EXPECT_THAT(series.Expire({}, kStart + absl::Hours(5)), IsEmpty());  // left now
  EXPECT_THAT(series.Expire({}, kStart + absl::Hours(6) - absl::Seconds(1)), IsEmpty());
  EXPECT_EQ(series.Take("b"), "_other");
  EXPECT_THAT(series.Expire({}, kStart + absl::Hours(6)), ElementsAre("a"));
  EXPECT_EQ(series.Take("b"), "b");
  EXPECT_THAT(series.Expire({}, kStart + absl::Hours(6)), IsEmpty());
}

TEST(WorkerSeriesTest, AReturnStopsTheClock) {
  WorkerSeries series(1, absl::Hours(1));
  series.Take("a");
  EXPECT_THAT(series.Expire({}, kStart), IsEmpty());
  EXPECT_THAT(series.Expire({"a"}, kStart + absl::Minutes(59)), IsEmpty());
  EXPECT_THAT(series.Expire({}, kStart + absl::Minutes(61)), IsEmpty());
  EXPECT_THAT(series.Expire({}, kStart + absl::Minutes(120)), IsEmpty());
  EXPECT_THAT(series.Expire({}, kStart + absl::Minutes(121)), ElementsAre("a"));
}

}  // namespace
}  // namespace autoloco::server
