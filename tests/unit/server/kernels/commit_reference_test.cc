#include "server/kernels/commit_reference.h"

#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/codec/delta_codec.h"
#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

// eta 1, mu 0, one delta (1, -1): theta (10, 20) -> (9, 21). The view was (8, 20): it lacks (1, 1), whose RMS is 1. At
// step 1 the unit is 1 and both symbols are 1: all of it is sent.
TEST(CommitReferenceTest, ByHand) {
  const std::string payload = EncodeVector(std::vector<float>{1.0F, -1.0F}, Codec::kFp32, 1);
  const std::vector<Contribution> contributions = {{std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 1.0}};
  std::vector<float> params = {10, 20};
  std::vector<float> momentum = {0, 0};
  std::vector<float> view = {8, 20};
  const CommitInputs inputs = {contributions, {1, 0, true}, Coding{.codec = Codec::kRms4, .step = 1}};
  const CommitResult result = CommitReference(inputs, {params, momentum, view}).value();
  EXPECT_EQ(params, (std::vector<float>{9, 21}));
  EXPECT_EQ(view, (std::vector<float>{9, 21}));
  ASSERT_EQ(result.blocks.size(), 1U);
  EXPECT_EQ(result.view_digest, Digest128(params));
  EXPECT_EQ(result.params_digest, Digest128(params));
}

// At step 2 the unit is 2: the difference of 1 rounds to even, to nothing.
TEST(CommitReferenceTest, WhatIsNotSentStaysBehind) {
  const std::string payload = EncodeVector(std::vector<float>{1.0F, -1.0F}, Codec::kFp32, 1);
  const std::vector<Contribution> contributions = {{std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 1.0}};
  std::vector<float> params = {10, 20};
  std::vector<float> momentum = {0, 0};
  std::vector<float> view = {8, 20};
  const CommitInputs inputs = {contributions, {1, 0, true}, Coding{.codec = Codec::kRms4, .step = 2}};
  const CommitResult result = CommitReference(inputs, {params, momentum, view}).value();
  EXPECT_EQ(view, (std::vector<float>{8, 20}));
  EXPECT_NE(result.view_digest, result.params_digest);
}

}  // namespace
}  // namespace autoloco::server
