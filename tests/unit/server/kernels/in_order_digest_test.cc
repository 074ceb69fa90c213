#include "server/kernels/in_order_digest.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/base/digest.h"
#include "common/base/parallel.h"
#include "common/codec/codec.h"
#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

std::vector<float> Values(std::size_t blocks) {
  std::vector<float> values(blocks * kBlockValues - 7);
  std::iota(values.begin(), values.end(), 0.5F);
  return values;
}

TEST(InOrderDigestTest, AnyOrderGivesTheDigestOfTheWhole) {
  const std::vector<float> values = Values(4);
  std::vector<std::size_t> order = {0, 1, 2, 3};
  do {
    InOrderDigest digest(values);
    for (const std::size_t block : order) digest.OnBlock(block);
    EXPECT_EQ(digest.Finish(), Digest128(values));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(InOrderDigestTest, ManyThreads) {
  const std::vector<float> values = Values(64);
  WorkPool pool(4);
  for (int run = 0; run < 20; ++run) {
    InOrderDigest digest(values);
    pool.ParallelFor(64, [&digest](std::size_t index, std::size_t) { digest.OnBlock(63 - index); });
    ASSERT_EQ(digest.Finish(), Digest128(values));
  }
}

TEST(InOrderDigestTest, NothingHasADigest) {
  EXPECT_EQ(InOrderDigest({}).Finish(), Digest128(std::span<const float>()));
}

}  // namespace
}  // namespace autoloco::server
