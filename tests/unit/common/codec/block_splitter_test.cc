#include "common/codec/block_splitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/codec/delta_codec.h"

namespace autoloco {
namespace {

constexpr std::uint64_t kValues = 2 * kBlockValues + 100;

std::span<const std::byte> Bytes(const std::string& payload) { return std::as_bytes(std::span(payload)); }

class BlockSplitterTest : public ::testing::Test {
 protected:
  BlockSplitterTest() {
    std::vector<float> values(kValues);
    const RandomStream random(3, 1);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.Normal(i));
    payload_ = EncodeVector(values, {.codec = Codec::kRms4, .step = 1.5}, nullptr).value();
    offsets_ = IndexBlocks(Bytes(payload_), kValues, Codec::kRms4).value();
  }
  std::string BlockAt(std::uint64_t index) const {
    return payload_.substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }
  // All blocks that come of `payload` in pieces of `piece_bytes`; the first error.
  absl::Status Split(BlockSplitter* splitter, const std::string& payload, std::size_t piece_bytes) {
    blocks_.clear();
    for (std::size_t at = 0; at < payload.size(); at += piece_bytes) {
      // A copy of its own, so that reading beyond it or after it is found.
      const std::vector<char> copy(
          payload.begin() + static_cast<std::ptrdiff_t>(at),
          payload.begin() + static_cast<std::ptrdiff_t>(std::min(payload.size(), at + piece_bytes)));
      std::span<const std::byte> piece = std::as_bytes(std::span(copy));
      while (true) {
        const auto block = splitter->Next(&piece);
        if (!block.ok()) return block.status();
        if (!block->has_value()) break;
        EXPECT_EQ((*block)->index, first_ + blocks_.size());
        const auto* bytes = reinterpret_cast<const char*>((*block)->bytes.data());
        blocks_.emplace_back(bytes, (*block)->bytes.size());
      }
      EXPECT_TRUE(piece.empty());
    }
    return absl::OkStatus();
  }

  std::string payload_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t first_ = 0;
  std::vector<std::string> blocks_;
};

TEST_F(BlockSplitterTest, GivesTheBlocksWhateverThePiecesAre) {
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{7}, std::size_t{20}, std::size_t{5000}, payload_.size()}) {
    BlockSplitter splitter(kValues, Codec::kRms4, 0, 3);
    EXPECT_FALSE(splitter.done());
    ASSERT_TRUE(Split(&splitter, payload_, piece).ok());
    EXPECT_EQ(blocks_, (std::vector<std::string>{BlockAt(0), BlockAt(1), BlockAt(2)})) << piece;
    EXPECT_TRUE(splitter.done());
  }
}

TEST_F(BlockSplitterTest, ARangeOfBlocks) {
  BlockSplitter splitter(kValues, Codec::kRms4, 1, 3);
  first_ = 1;
  ASSERT_TRUE(Split(&splitter, BlockAt(1) + BlockAt(2), 1000).ok());
  EXPECT_EQ(blocks_, (std::vector<std::string>{BlockAt(1), BlockAt(2)}));
  EXPECT_TRUE(splitter.done());
}

TEST_F(BlockSplitterTest, WhatIsCutShortIsNotDone) {
  for (const std::size_t missing : {std::size_t{1}, BlockAt(2).size() - 5, BlockAt(2).size()}) {
    BlockSplitter splitter(kValues, Codec::kRms4, 0, 3);
    ASSERT_TRUE(Split(&splitter, payload_.substr(0, payload_.size() - missing), 4096).ok());
    EXPECT_EQ(blocks_.size(), 2u);
    EXPECT_FALSE(splitter.done());
  }
}

TEST_F(BlockSplitterTest, AnotherBlockThanTheNextOneIsRefused) {
  for (const std::size_t piece : {std::size_t{3}, payload_.size()}) {
    BlockSplitter skipped(kValues, Codec::kRms4, 0, 3);
    EXPECT_EQ(Split(&skipped, BlockAt(1), piece).code(), absl::StatusCode::kInvalidArgument);
    BlockSplitter other_codec(kValues, Codec::kFp32, 0, 3);
    EXPECT_EQ(Split(&other_codec, payload_, piece).code(), absl::StatusCode::kInvalidArgument);
    BlockSplitter behind(kValues, Codec::kRms4, 0, 2);
    EXPECT_EQ(Split(&behind, payload_, piece).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(blocks_.size(), 2u);
  }
}

TEST_F(BlockSplitterTest, ASizeBeyondTheBlocksIsRefusedBeforeItsBytesCome) {
  std::string header = payload_.substr(0, 20);
  header[11] = 1;  // a body of more than 16 MiB
  BlockSplitter splitter(kValues, Codec::kRms4, 0, 3);
  EXPECT_EQ(Split(&splitter, header, 20).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace autoloco
