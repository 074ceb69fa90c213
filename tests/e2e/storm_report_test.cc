#include "tests/e2e/storm_report.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace autoloco::test {
namespace {

StormResults Good() {
  StormResults results;
  results.rounds_opened = 100;
  results.rounds = 98;
  results.shares = {1.0, 0.9, 0.95};
  results.restart_seconds = {2, 30, 4};
  results.ledger_balanced = true;
  results.memory = {{0, 100'000'000}, {30, 110'000'000}, {45, 500'000'000}, {61, 90'000'000}, {90, 120'000'000}};
  return results;
}

TEST(StormReportTest, GoodIsGood) {
  const StormVerdict verdict = Judge(Good(), StormBounds());
  EXPECT_TRUE(verdict.passed) << ::testing::PrintToString(verdict.lines);
  EXPECT_EQ(verdict.lines.size(), 5u);
}

TEST(StormReportTest, EveryBoundCounts) {
  std::vector<StormResults> bad(6, Good());
  bad[0].rounds = 96;
  bad[1].shares = {0.8, 0.9};
  bad[2].restart_seconds = {11, 12};
  bad[3].memory.push_back({90, 160'000'000});
  bad[4].ledger_balanced = false;
  bad[5].faults.push_back("the server ended by itself");
  for (std::size_t i = 0; i < bad.size(); ++i) EXPECT_FALSE(Judge(bad[i], StormBounds()).passed) << i;
  EXPECT_FALSE(Judge(StormResults(), StormBounds()).passed);  // nothing measured
}

TEST(StormReportTest, RoundsAreCountedAsTheyAreOpened) {
  RoundCount count;
  const auto open = [&count] { count.Read("t INFO round reason=opened round=3 detail=\"x\""); };
  const auto commit = [&count] { count.Read("t INFO round_committed round=3 applied=2"); };
  open();
  EXPECT_EQ(count.opened(), 0u);  // still open
  open();                         // the first one was lost
  EXPECT_EQ(count.opened(), 1u);
  commit();
  EXPECT_EQ(count.opened(), 2u);
  EXPECT_EQ(count.committed(), 1u);
  count.Read("t INFO membership reason=joined round=3");
  EXPECT_EQ(count.opened(), 2u);
}

TEST(StormReportTest, JsonHasTheKeysThatProgramsRead) {
  const nlohmann::json json = nlohmann::json::parse(StormJson(StormOptions(), Good(), true));
  EXPECT_EQ(json.at("rounds"), 98);
  EXPECT_DOUBLE_EQ(json.at("committed_share"), 0.98);
  EXPECT_DOUBLE_EQ(json.at("participation"), 0.95);
  EXPECT_EQ(json.at("restart_to_contribution_s"), 4);
  EXPECT_EQ(json.at("ledger_balanced"), true);
  EXPECT_EQ(json.at("rss_first_bytes"), 110'000'000);
  EXPECT_EQ(json.at("rss_last_bytes"), 120'000'000);
  const nlohmann::json nothing = nlohmann::json::parse(StormJson(StormOptions(), StormResults(), false));
  EXPECT_EQ(nothing.at("ledger_balanced"), false);
  EXPECT_TRUE(nothing.at("restart_to_contribution_s").is_null());
}

TEST(StormOptionsTest, VictimsAreUniformAndTheServerHasItsTurns) {
  StormOptions options;
  std::multiset<int> victims;
  for (std::uint64_t kill = 0; kill < 10000; ++kill) victims.insert(StormVictim(options, kill));
  EXPECT_EQ(victims.count(-1), 1000u);
  for (int worker = 0; worker < 16; ++worker) EXPECT_NEAR(victims.count(worker), 562, 100) << worker;
  EXPECT_EQ(victims.upper_bound(15), victims.end());
  options.server_every = 0;
  EXPECT_NE(StormVictim(options, 9), -1);
}

TEST(StormOptionsTest, ReadsAndRefuses) {
  const std::vector<std::string> good = {"--workers", "32", "--minutes=10", "--seed", "7", "--json", "file"};
  const StormOptions options = ParseStormOptions(good).value();
  EXPECT_EQ(options.workers, 32u);
  EXPECT_EQ(options.minutes, 10);
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.json, "file");
  for (const char* bad : {"--workers=0", "--workers=many", "--minutes=-1", "--what=1", "--committed-min=2"}) {
    const std::vector<std::string> arguments = {bad};
    EXPECT_FALSE(ParseStormOptions(arguments).ok()) << bad;
  }
}

}  // namespace
}  // namespace autoloco::test
