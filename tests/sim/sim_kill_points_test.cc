// The server is killed between any two of its effects, and the strict run ends with the digest of the undisturbed one.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

namespace autoloco::sim {
namespace {

TEST(SimKillPointsTest, TwoHundredKillPointsAllEndWithTheSameDigest) {
  constexpr std::uint64_t kRuns = 10;
  constexpr std::uint64_t kPointsOfRun = 20;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const Result calm = RunScenario(Undisturbed(KillPoint(seed, 0)), Bug::kNone, nullptr);
    ASSERT_TRUE(calm.violations.empty()) << calm.violations.front();
    ASSERT_GT(calm.server_effects, kPointsOfRun);
    Dice dice(seed, 7);
    for (std::uint64_t i = 0; i < kPointsOfRun; ++i) {
      const std::uint64_t effects = dice.Below(calm.server_effects);
      const Result result = RunScenario(KillPoint(seed, effects), Bug::kNone, nullptr);
      for (const std::string& violation : result.violations) {
        ADD_FAILURE() << "seed " << seed << " killed before effect " << effects << ": " << violation;
      }
      EXPECT_EQ(result.faults[static_cast<std::size_t>(Fault::kServerCrashAtEffect)], 1u) << effects;
      EXPECT_EQ(result.version, calm.version);
      EXPECT_EQ(result.final_digest, calm.final_digest) << "seed " << seed << " killed before effect " << effects;
    }
  }
}

}  // namespace
}  // namespace autoloco::sim
