#include "common/base/status_macros.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

absl::StatusOr<std::unique_ptr<int>> Make(bool ok) {
  if (!ok) return absl::NotFoundError("no number");
  return std::make_unique<int>(3);
}

absl::Status Sum(bool first_ok, bool second_ok, int* sum) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, Make(first_ok));
  std::unique_ptr<int> second;
  AUTOLOCO_ASSIGN_OR_RETURN(second, Make(second_ok));
  *sum = *first + *second;
  return absl::OkStatus();
}

absl::Status Pass(const absl::Status& status, bool* passed) {
  AUTOLOCO_RETURN_IF_ERROR(status);
  *passed = true;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, AssignOrReturn) {
  int sum = 0;
  EXPECT_TRUE(Sum(true, true, &sum).ok());
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(Sum(false, true, &sum), absl::NotFoundError("no number"));
  EXPECT_EQ(Sum(true, false, &sum), absl::NotFoundError("no number"));
}

TEST(StatusMacrosTest, ReturnIfError) {
  bool passed = false;
  EXPECT_EQ(Pass(absl::AbortedError("x"), &passed), absl::AbortedError("x"));
  EXPECT_FALSE(passed);
  EXPECT_TRUE(Pass(absl::OkStatus(), &passed).ok());
  EXPECT_TRUE(passed);
}

}  // namespace
}  // namespace autoloco
