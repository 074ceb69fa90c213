#include "server/runtime/live_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/parallel.h"

namespace autoloco::server {
namespace {

TEST(LiveReaderTest, WhatItReadsDecodesToTheView) {
  constexpr std::size_t kValues = kBlockValues + 10;
  const std::shared_ptr<LiveView> view = *LiveView::Allocate(kValues);
  for (std::size_t i = 0; i < kValues; ++i) view->values()[i] = static_cast<float>(i) * 0.25F - 3;
  view->SetVersion(4);
  view->Change(0, [] {});
  LiveReader reader(view, 1);
  BlockDecoder decoder;
  std::string data = "from before";
  for (const std::size_t block : {1, 0}) {
    EXPECT_EQ(reader.Read(block, &data), block == 0 ? 5 : 4);
    std::vector<float> values(BlockSize(kValues, block));
    const absl::Status status = decoder.Decode(std::as_bytes(std::span<const char>(data)), Codec::kFp32,
                                               static_cast<std::uint32_t>(block), values);
    ASSERT_TRUE(status.ok()) << status;
    const float* const want = view->values().data() + block * kBlockValues;
    EXPECT_EQ(values, std::vector<float>(want, want + values.size()));
  }
}

TEST(LiveReaderTest, ManyReadAtOnceBesideChanges) {
  constexpr std::size_t kBlocks = 16;
  const std::shared_ptr<LiveView> view = *LiveView::Allocate(kBlocks * kBlockValues);
  LiveReader reader(view, 1);
  WorkPool pool(4);
  pool.ParallelFor(4 * kBlocks, [&](std::size_t index, std::size_t) {
    const std::size_t block = index / 4;
    if (index % 4 == 0) {
      view->Change(block, [&] { std::fill_n(view->values().data() + block * kBlockValues, kBlockValues, 1.0F); });
      return;
    }
    std::string data;
    const Version version = reader.Read(block, &data);
    BlockDecoder decoder;
    std::vector<float> values(kBlockValues);
    const absl::Status status = decoder.Decode(std::as_bytes(std::span<const char>(data)), Codec::kFp32,
                                               static_cast<std::uint32_t>(block), values);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(values, std::vector<float>(kBlockValues, static_cast<float>(version)));
  });
}

}  // namespace
}  // namespace autoloco::server
