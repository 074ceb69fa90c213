#include "worker/train/torch_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "absl/status/statusor.h"

namespace autoloco::worker {
namespace {

TEST(CatchTorchTest, PassesResultsThrough) {
  EXPECT_EQ(CatchTorch("adding", [] { return absl::StatusOr<int>(3); }).value(), 3);
  EXPECT_EQ(CatchTorch("adding", [] { return absl::AbortedError("stop"); }), absl::AbortedError("stop"));
}

TEST(CatchTorchTest, TorchErrorsBecomeInternalOnOneLine) {
  const absl::Status status = CatchTorch("adding", []() -> absl::Status { TORCH_CHECK(false, "sizes\nand more"); });
  EXPECT_EQ(status, absl::InternalError("adding: sizes"));
}

TEST(CatchTorchTest, MemoryErrorsBecomeResourceExhausted) {
  const auto code = [](auto body) { return CatchTorch("adding", body).code(); };
  EXPECT_EQ(code([]() -> absl::Status { throw std::bad_alloc(); }), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code([]() -> absl::Status { TORCH_CHECK(false, "DefaultCPUAllocator: not enough memory: you tried"); }),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code([]() -> absl::Status { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory"); }),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace autoloco::worker
