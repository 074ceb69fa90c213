#include "server/runtime/push_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/digest.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

class PushCheckTest : public ::testing::Test {
 protected:
  PushCheckTest() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i);
  }

  PushCheck Check(const std::string& payload) {
    return CheckPayload(Bytes(payload), Digest128(Bytes(payload)), layout_, Codec::kFp32, &pool_);
  }
  std::string Encoded() const { return EncodeVector(values_, Codec::kFp32, 1); }

  const Layout layout_ = *Layout::Make({{"first", {70000}}, {"second", {2, 70000}}});
  std::vector<float> values_ = std::vector<float>(210000);
  WorkPool pool_{3};
};

TEST_F(PushCheckTest, AGoodPayloadIsGood) {
  const PushCheck check = Check(Encoded());
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_TRUE(check.finite);
}

// 0^2 + 1^2 + ... + 209999^2, which fp64 holds exactly.
TEST_F(PushCheckTest, TheNormIsThatOfAllValues) {
  const std::uint64_t count = values_.size();
  const double n = static_cast<double>(count);
  EXPECT_EQ(Check(Encoded()).norm, std::sqrt(static_cast<double>((count - 1) * count * (2 * count - 1) / 6)));
  values_.assign(values_.size(), 3e38f);  // its squares do not overflow fp64
  EXPECT_NEAR(Check(Encoded()).norm / (static_cast<double>(3e38f) * std::sqrt(n)), 1, 1e-12);
  values_[5] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Check(Encoded()).norm, 0);
}

TEST_F(PushCheckTest, AnotherDigestIsDataLossWithBothDigests) {
  const std::string payload = Encoded();
  const std::string announced(32, '0');
  const PushCheck check = CheckPayload(Bytes(payload), announced, layout_, Codec::kFp32, &pool_);
  EXPECT_EQ(check.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(check.status.message()), HasSubstr(announced));
  EXPECT_THAT(std::string(check.status.message()), HasSubstr(Digest128(Bytes(payload))));
}

TEST_F(PushCheckTest, TheFirstDamagedBlockIsNamed) {
  std::string payload = Encoded();
  const auto offsets = IndexBlocks(Bytes(payload), layout_.value_count(), Codec::kFp32);
  ASSERT_TRUE(offsets.ok());
  for (const std::size_t block : {3, 1}) payload[(*offsets)[block + 1] - 1] ^= 1;
  const PushCheck check = Check(payload);
  EXPECT_EQ(check.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(check.status.message()), HasSubstr("block 1"));
}

TEST_F(PushCheckTest, BlocksThatDoNotTileThePayloadAreInvalid) {
  std::string payload = Encoded();
  payload.pop_back();
  EXPECT_EQ(Check(payload).status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Check("").status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PushCheckTest, TheFirstValueThatIsNotFiniteIsNamed) {
  values_[200000] = std::numeric_limits<float>::infinity();
  values_[70000 + 65] = std::numeric_limits<float>::quiet_NaN();
  const PushCheck check = Check(Encoded());
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_FALSE(check.finite);
  EXPECT_EQ(check.non_finite, "second[65] = nan");
}

TEST_F(PushCheckTest, DamageCountsMoreThanNan) {
  values_[0] = std::numeric_limits<float>::quiet_NaN();
  std::string payload = Encoded();
  payload.back() ^= 1;
  const PushCheck check = Check(payload);
  EXPECT_EQ(check.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(check.finite);
}

}  // namespace
}  // namespace autoloco::server
