#include "common/base/flat_buffer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(FlatBufferTest, IsAlignedZeroAndWritable) {
  for (const std::uint64_t count : {1u, 5u, 524288u, 524289u, 3000000u}) {
    FlatBuffer buffer = FlatBuffer::Allocate(count).value();
    ASSERT_EQ(buffer.size(), count);
    ASSERT_EQ(buffer.values().size(), count);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.values().data()) % (2u << 20), 0u);
    EXPECT_TRUE(std::all_of(buffer.values().begin(), buffer.values().end(), [](float v) { return v == 0.0f; }));
    buffer.values().front() = 1.0f;
    buffer.values().back() = 2.0f;
    EXPECT_EQ(std::as_const(buffer).values().back(), 2.0f);
  }
}

TEST(FlatBufferTest, NothingIsEmpty) {
  EXPECT_EQ(FlatBuffer().size(), 0u);
  EXPECT_TRUE(FlatBuffer::Allocate(0).value().values().empty());
}

TEST(FlatBufferTest, TooMuchIsAnErrorNotACrash) {
  for (const std::uint64_t count : {std::uint64_t{1} << 50, std::numeric_limits<std::uint64_t>::max(),
                                    std::numeric_limits<std::uint64_t>::max() / 4}) {
    EXPECT_EQ(FlatBuffer::Allocate(count).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(FlatBufferTest, MovesItsMemory) {
  FlatBuffer first = FlatBuffer::Allocate(10).value();
  first.values()[3] = 7.0f;
  const float* const data = first.values().data();
  FlatBuffer second = std::move(first);
  EXPECT_EQ(second.values().data(), data);
  EXPECT_EQ(first.size(), 0u);  // NOLINT: a moved-from buffer is empty
  FlatBuffer third = FlatBuffer::Allocate(20).value();
  third = std::move(second);
  EXPECT_EQ(third.size(), 10u);
  EXPECT_EQ(third.values()[3], 7.0f);
  EXPECT_TRUE(second.values().empty());  // NOLINT
}

}  // namespace
}  // namespace autoloco
