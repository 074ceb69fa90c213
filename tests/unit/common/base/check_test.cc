#include "common/base/check.h"

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(CheckTest, EvaluatesItsConditionOnce) {
  int calls = 0;
  AUTOLOCO_CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

TEST(CheckDeathTest, NamesConditionAndPlace) {
  EXPECT_DEATH(AUTOLOCO_CHECK(1 + 1 == 3), "check failed: 1 \\+ 1 == 3 at .*check_test.cc:");
}

}  // namespace
}  // namespace autoloco
