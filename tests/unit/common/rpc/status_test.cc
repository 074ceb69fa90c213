#include "common/rpc/status.h"

#include <gtest/gtest.h>

#include <string>

namespace autoloco {
namespace {

TEST(StatusTest, EveryCodeSurvivesTheWay) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    const grpc::Status sent = ToGrpcStatus(status);
    EXPECT_EQ(static_cast<int>(sent.error_code()), code);
    EXPECT_EQ(FromGrpcStatus(sent), status);
  }
}

TEST(StatusTest, CodesThatGrpcDoesNotDefineAreUnknown) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::DO_NOT_USE, "odd")).code(), absl::StatusCode::kUnknown);
  EXPECT_STREQ(StatusCodeName(static_cast<absl::StatusCode>(99)), "UNKNOWN");
}

TEST(StatusTest, LongMessagesAreCut) {
  const absl::Status status = absl::InvalidArgumentError(std::string(100000, 'x'));
  EXPECT_EQ(ToGrpcStatus(status).error_message().size(), kStatusMessageBytesMax);
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::ABORTED, std::string(100000, 'x'))).message().size(),
            kStatusMessageBytesMax);
}

TEST(StatusTest, NamesAreThoseOfTheDocuments) {
  EXPECT_STREQ(StatusCodeName(absl::StatusCode::kOk), "OK");
  EXPECT_STREQ(StatusCodeName(absl::StatusCode::kFailedPrecondition), "FAILED_PRECONDITION");
}

TEST(StatusTest, AdviceIsThatOfTheContract) {
  EXPECT_EQ(AdviceFor(absl::StatusCode::kOk), Advice::kNone);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kUnavailable), Advice::kRetry);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kDataLoss), Advice::kRetry);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kOutOfRange), Advice::kRetry);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kResourceExhausted), Advice::kBackOff);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kAborted), Advice::kMoveOn);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kFailedPrecondition), Advice::kStop);
  EXPECT_EQ(AdviceFor(absl::StatusCode::kUnauthenticated), Advice::kStop);
}

TEST(StatusTest, RetryableIsRetryOrBackOff) {
  EXPECT_TRUE(IsRetryable(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(IsRetryable(absl::StatusCode::kResourceExhausted));
  EXPECT_FALSE(IsRetryable(absl::StatusCode::kOk));
  EXPECT_FALSE(IsRetryable(absl::StatusCode::kAborted));
  EXPECT_FALSE(IsRetryable(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace autoloco
