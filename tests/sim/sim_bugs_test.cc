// A checker that finds nothing proves nothing: each planted bug must be found within 200 scenarios.
#include <string>

#include "gtest/gtest.h"
#include "tests/sim/batch.h"
#include "tests/sim/bugs.h"

namespace autoloco::sim {
namespace {

class SimBugsTest : public testing::TestWithParam<Bug> {};

TEST_P(SimBugsTest, IsFoundWithinTwoHundredScenarios) {
  const BatchResult batch = RunBatch({.first = 1, .seeds = 200, .bug = GetParam()});
  EXPECT_TRUE(batch.first_failing_seed.has_value());
  for (const std::string& violation : batch.first_violations) std::printf("%s\n", violation.c_str());
}

INSTANTIATE_TEST_SUITE_P(Bugs, SimBugsTest, testing::ValuesIn(AllBugs()),
                         [](const testing::TestParamInfo<Bug>& info) { return std::string(BugName(info.param)); });

}  // namespace
}  // namespace autoloco::sim
