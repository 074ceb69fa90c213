#include "worker/core/verdict.h"

#include <gtest/gtest.h>

namespace autoloco::worker {
namespace {

TEST(VerdictTest, EveryCode) {
  EXPECT_EQ(Judge(absl::FailedPreconditionError("incarnation expired: w#1")), Verdict::kRejoin);
  EXPECT_EQ(Judge(absl::FailedPreconditionError("incarnation replaced: w is now 2")), Verdict::kStop);
  EXPECT_EQ(Judge(absl::FailedPreconditionError("layout: tensor 3")), Verdict::kStop);
  EXPECT_EQ(Judge(absl::InvalidArgumentError("")), Verdict::kStop);
  EXPECT_EQ(Judge(absl::UnauthenticatedError("")), Verdict::kStop);
  EXPECT_EQ(Judge(absl::PermissionDeniedError("")), Verdict::kStop);
  EXPECT_EQ(Judge(absl::UnimplementedError("")), Verdict::kStop);
  EXPECT_EQ(Judge(absl::AbortedError("")), Verdict::kRebase);
  EXPECT_EQ(Judge(absl::UnavailableError("")), Verdict::kRetry);
  EXPECT_EQ(Judge(absl::ResourceExhaustedError("")), Verdict::kRetry);
  EXPECT_EQ(Judge(absl::DeadlineExceededError("")), Verdict::kRetry);
  EXPECT_EQ(Judge(absl::DataLossError("")), Verdict::kRetry);
  EXPECT_EQ(Judge(absl::OutOfRangeError("")), Verdict::kRetry);
  EXPECT_EQ(Judge(absl::InternalError("")), Verdict::kRetry);
  EXPECT_EQ(Judge(absl::CancelledError("")), Verdict::kRetry);
}

TEST(VerdictTest, APushThatIsNotWantedDoesNotStopTheWorker) {
  EXPECT_EQ(JudgePush(absl::FailedPreconditionError("w#1 has no part in round 3")), Verdict::kRebase);
  EXPECT_EQ(JudgePush(absl::FailedPreconditionError("incarnation expired: w#1")), Verdict::kRejoin);
  EXPECT_EQ(JudgePush(absl::FailedPreconditionError("incarnation replaced: w")), Verdict::kStop);
  EXPECT_EQ(JudgePush(absl::FailedPreconditionError("run id: this is run x")), Verdict::kStop);
  EXPECT_EQ(JudgePush(absl::FailedPreconditionError("run lost: begun anew")), Verdict::kStop);
  EXPECT_EQ(JudgePush(absl::FailedPreconditionError("layout hash: want 1")), Verdict::kStop);
  EXPECT_EQ(JudgePush(absl::InvalidArgumentError("fragment")), Verdict::kStop);
  EXPECT_EQ(JudgePush(absl::UnavailableError("")), Verdict::kRetry);
}

}  // namespace
}  // namespace autoloco::worker
