#include "worker/client/transfer.h"

#include <gtest/gtest.h>

namespace autoloco::worker {
namespace {

TEST(TransferTest, CallsOfOneTransferComeAndGo) {
  Transfer transfer(absl::Seconds(60));
  grpc::ClientContext first;
  grpc::ClientContext second;
  EXPECT_TRUE(transfer.Begin(&first).ok());
  EXPECT_TRUE(transfer.Begin(&second).ok());
  transfer.Moved(10);
  transfer.End(&first);
  transfer.End(&second);
  EXPECT_TRUE(transfer.Finish(absl::OkStatus()).ok());
}

TEST(TransferTest, StoppedCallsAreNoCancelledTransfer) {
  Transfer transfer(absl::Seconds(60));
  grpc::ClientContext first;
  grpc::ClientContext late;
  EXPECT_TRUE(transfer.Begin(&first).ok());
  transfer.StopCalls();
  EXPECT_EQ(transfer.Begin(&late).code(), absl::StatusCode::kCancelled);
  transfer.End(&first);
  EXPECT_EQ(transfer.Finish(absl::UnavailableError("cut")), absl::UnavailableError("cut"));
}

TEST(TransferTest, CancelledBeforeItBegins) {
  Transfer transfer(absl::Seconds(60));
  grpc::ClientContext context;
  transfer.Cancel();
  EXPECT_EQ(transfer.Begin(&context).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(transfer.Finish(absl::UnavailableError("cut")).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace autoloco::worker
