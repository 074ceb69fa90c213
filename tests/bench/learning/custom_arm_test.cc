#include "tests/bench/learning/custom_arm.h"

#include <gtest/gtest.h>

#include <string>

namespace autoloco::bench {
namespace {

TEST(CustomArm, TakesWhatIsGivenAndTheDefaultsForTheRest) {
  const Arm arm = ParseCustomArm(
                      "long: policy=autoloco interval=28 power=0.5 agreement=0 correction=momentum momentum=0.85 "
                      "data=non-iid schedule=wsd codec=rms4 broadcast=bf16 feedback=0 average=0")
                      .value();
  EXPECT_EQ(arm.method, "long");
  EXPECT_EQ(arm.kind, Method::kOuter);
  EXPECT_EQ(arm.policy, server::IntervalPolicy::kAutoloco);
  EXPECT_EQ(arm.interval, 28U);
  EXPECT_EQ(arm.learning_rate_power, 0.5);
  EXPECT_EQ(arm.agreement_power, 0);
  EXPECT_EQ(arm.correction, server::OuterCorrection::kMomentum);
  EXPECT_EQ(arm.momentum, 0.85);
  EXPECT_EQ(arm.data, Sharding::kNonIid);
  EXPECT_EQ(arm.schedule, Schedule::kWsd);
  EXPECT_EQ(CodingName(arm), "rms4 up bf16 down without feedback");
  EXPECT_FALSE(arm.final_average);

  const Arm plain = ParseCustomArm(" plain :").value();
  EXPECT_EQ(plain.method, "plain");
  EXPECT_EQ(DescribeRun({}, plain, 1), DescribeRun({}, Arm(), 1));
}

TEST(CustomArm, RefusesWithThePartThatIsWrong) {
  for (const std::string part : {"intervals=3", "interval=x", "interval=0", "momentum=1", "policy=slow", "feedback"}) {
    const absl::Status status = ParseCustomArm("a: power=1 " + part).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << part;
    EXPECT_NE(status.message().find(part.substr(0, part.find('='))), absl::string_view::npos) << status.message();
  }
  EXPECT_FALSE(ParseCustomArm("power=1").ok());
  EXPECT_FALSE(ParseCustomArm(": power=1").ok());
}

}  // namespace
}  // namespace autoloco::bench
