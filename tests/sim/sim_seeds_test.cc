// The scenarios of the suite: none may violate anything, and together they must have seen every kind of fault.
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "tests/sim/batch.h"
#include "tests/sim/cluster.h"
#include "tests/sim/faults.h"
#include "tests/sim/scenario.h"

namespace autoloco::sim {
namespace {

TEST(SimSeedsTest, TwoThousandScenariosHoldEveryPromise) {
  const BatchResult batch = RunBatch({.first = 1, .seeds = 2000, .bug = Bug::kNone});
  for (const std::string& violation : batch.first_violations) ADD_FAILURE() << violation;
  EXPECT_EQ(batch.scenarios, 2000u);
  EXPECT_EQ(batch.violations, 0u);
  EXPECT_FALSE(batch.first_failing_seed.has_value());
  std::uint64_t faults = 0;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    EXPECT_GT(batch.faults[kind], 0u) << FaultName(static_cast<Fault>(kind));
    faults += batch.faults[kind];
  }
  for (const char* reason : {"late_applied", "norm_outlier", "clipped", "evicted", "readmitted"}) {
    EXPECT_GT(batch.decisions.count(reason), 0u) << reason;
  }
  EXPECT_GE(faults, 5 * batch.scenarios);
  EXPECT_GE(batch.rounds, 10 * batch.scenarios);
  std::printf("%s\n", ToJson(batch).c_str());
}

TEST(SimSeedsTest, EveryScenarioIsLargeEnough) {
  bool strict = false;
  bool elastic = false;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Scenario scenario = DrawScenario(seed);
    EXPECT_GE(scenario.workers.size(), 3u);
    EXPECT_LE(scenario.workers.size(), 8u);
    EXPECT_GE(scenario.rounds, 10u);
    (scenario.strict ? strict : elastic) = true;
  }
  EXPECT_TRUE(strict);
  EXPECT_TRUE(elastic);
}

TEST(SimSeedsTest, ASeedReplaysExactly) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Result once = RunSeed(seed, Bug::kNone, nullptr);
    const Result again = RunSeed(seed, Bug::kNone, nullptr);
    EXPECT_EQ(once.trace_hash, again.trace_hash) << seed;
    EXPECT_EQ(once.final_digest, again.final_digest) << seed;
    EXPECT_EQ(once.faults, again.faults) << seed;
    EXPECT_EQ(once.lasted, again.lasted) << seed;
  }
}

TEST(SimSeedsTest, SeedsDiffer) {
  EXPECT_NE(RunSeed(1, Bug::kNone, nullptr).trace_hash, RunSeed(2, Bug::kNone, nullptr).trace_hash);
}

TEST(SimSeedsTest, TheJsonHasItsKeys) {
  const std::string json = ToJson(RunBatch({.first = 1, .seeds = 2, .bug = Bug::kNone}));
  for (const char* key : {"\"scenarios\": 2", "\"violations\": 0", "\"first_failing_seed\": null", "\"seconds\"",
                          "\"faults\"", "\"server_crash_at_effect\"", "\"eviction\"", "\"decisions\""}) {
    EXPECT_NE(json.find(key), std::string::npos) << key << " in " << json;
  }
}

}  // namespace
}  // namespace autoloco::sim
