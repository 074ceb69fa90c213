// Several blocks added up at once.
#include <string>
#include <vector>

#include "common/codec/delta_codec.h"
#include "gtest/gtest.h"
#include "tests/unit/common/codec/codec_blocks.h"

namespace autoloco {
namespace {

using test::Bytes;
using test::Gaussian;

// Runs of one codec longer and shorter than what is added up at once, and every kind.
const std::vector<Codec> kBlocks = {Codec::kRms4,    Codec::kRms4, Codec::kRms4, Codec::kRms4, Codec::kRms4,
                                    Codec::kRms4,    Codec::kRms4, Codec::kRms4, Codec::kRms4, Codec::kFp32,
                                    Codec::kInt8,    Codec::kInt8, Codec::kBf16, Codec::kBf16, Codec::kRms8,
                                    Codec::kTernary, Codec::kRms4};

std::vector<std::string> Encoded(std::size_t count) {
  std::vector<std::string> payloads;
  for (const Codec codec : kBlocks) {
    const Coding coding = {.codec = codec, .step = codec == Codec::kTernary ? 2.5 : 1.0};
    payloads.push_back(EncodeVector(Gaussian(count, payloads.size()), coding, nullptr).value());
  }
  return payloads;
}

TEST(DeltaCodecSumTest, IsOneBlockAfterTheOther) {
  for (const std::size_t count : {1u, 17u, 5000u, 65536u}) {
    const std::vector<std::string> payloads = Encoded(count);
    for (std::size_t summed = 1; summed <= kBlocks.size(); ++summed) {
      BlockDecoder decoder;
      std::vector<WeightedBlock> blocks;
      std::vector<float> want(count);
      std::vector<double> want_norms(summed);
      for (std::size_t i = 0; i < summed; ++i) {
        blocks.push_back({Bytes(payloads[i]), kBlocks[i], 1.0F - 0.3F * static_cast<float>(i)});
        std::vector<float> values(count);
        ASSERT_TRUE(decoder.Decode(blocks[i].bytes, kBlocks[i], 0, values, &want_norms[i]).ok());
        for (std::size_t k = 0; k < count; ++k) {
          const float product = blocks[i].weight * values[k];
          want[k] = i == 0 ? product : want[k] + product;
        }
      }
      std::vector<float> sum(count, 7.0F);
      std::vector<double> norms(summed);
      std::size_t damaged = 0;
      ASSERT_TRUE(decoder.Sum(blocks, 0, sum, norms, &damaged).ok());
      ASSERT_EQ(sum, want) << summed << " blocks of " << count;
      ASSERT_EQ(norms, want_norms);
    }
  }
}

TEST(DeltaCodecSumTest, NamesTheDamagedBlock) {
  std::vector<std::string> payloads = Encoded(100);
  for (std::size_t bad = 0; bad < kBlocks.size(); ++bad) {
    payloads[bad].back() ^= 1;
    std::vector<WeightedBlock> blocks;
    for (std::size_t i = 0; i < kBlocks.size(); ++i) blocks.push_back({Bytes(payloads[i]), kBlocks[i], 1});
    std::vector<float> sum(100);
    std::vector<double> norms(kBlocks.size());
    std::size_t damaged = kBlocks.size();
    EXPECT_EQ(BlockDecoder().Sum(blocks, 0, sum, norms, &damaged).code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(damaged, bad);
    payloads[bad].back() ^= 1;
  }
}

}  // namespace
}  // namespace autoloco
