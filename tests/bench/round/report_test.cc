#include "tests/bench/round/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/bench/round/baseline_run.h"

namespace autoloco::bench {
namespace {

using ::testing::HasSubstr;

Measurement OneRun(double seconds, double rss) {
  return {.round_seconds = seconds,
          .bytes_up = 10,
          .bytes_down = 30,
          .server_cpu_seconds = 1,
          .server_peak_rss_bytes = rss};
}

TEST(RoundReport, MedianIsTheMiddleOne) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({5, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 9}), 3);
}

TEST(RoundReport, RatiosAreMediansOverThePairs) {
  const RoundRow row = MakeRow(1000, 2, "delta fp32", {OneRun(1, 8), OneRun(2, 8), OneRun(6, 8)},
                               {OneRun(10, 16), OneRun(2, 16), OneRun(12, 16)});
  EXPECT_DOUBLE_EQ(row.ours.round_seconds, 2);
  EXPECT_DOUBLE_EQ(row.baseline->round_seconds, 10);
  EXPECT_DOUBLE_EQ(row.ratios->time, 0.5);
  EXPECT_DOUBLE_EQ(row.ratios->memory, 0.5);
  EXPECT_DOUBLE_EQ(row.ratios->bytes, 1);
}

TEST(RoundReport, JsonHasTheBaselineOnlyWhereThereIsOne) {
  const RoundRow alone = MakeRow(1000, 2, "delta fp32", {OneRun(1, 8)}, {});
  const RoundRow beside = MakeRow(1000, 8, "delta fp32", {OneRun(1, 8)}, {OneRun(4, 16)});
  const nlohmann::json rows = nlohmann::json::parse(RoundJson({alone, beside}));
  EXPECT_EQ(rows[0]["params"], 1000);
  EXPECT_EQ(rows[0]["codec"], "delta fp32");
  EXPECT_EQ(rows[0]["bytes_down"], 30);
  EXPECT_FALSE(rows[0].contains("time_ratio"));
  EXPECT_EQ(rows[1]["workers"], 8);
  EXPECT_EQ(rows[1]["time_ratio"], 0.25);
  EXPECT_EQ(rows[1]["baseline_server_peak_rss_bytes"], 16);
  EXPECT_THAT(RoundTable({alone, beside}), HasSubstr("0.250"));
}

TEST(Baseline, ItsFileIsReadAndChecked) {
  const Measurement run =
      ParseBaselineJson(R"([{"round_seconds": 2.5, "bytes_up": 4, "bytes_down": 5, "server_peak_rss_bytes": 6}])")
          .value();
  EXPECT_EQ(run.round_seconds, 2.5);
  EXPECT_EQ(run.bytes_up, 4);
  EXPECT_EQ(run.bytes_down, 5);
  EXPECT_EQ(run.server_peak_rss_bytes, 6);
  for (const char* text : {"", "{}", "[]", "[1]", R"([{"round_seconds": "2"}])", R"([{"round_seconds": 2}])"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBaselineJson(text).status())) << text;
  }
}

}  // namespace
}  // namespace autoloco::bench
