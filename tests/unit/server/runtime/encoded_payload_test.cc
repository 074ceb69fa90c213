#include "server/runtime/encoded_payload.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"

namespace autoloco::server {
namespace {

TEST(EncodedPayloadTest, GivesPiecesAcrossBlocks) {
  const EncodedPayload payload({}, {"abc", "d", "", "efghij"});
  const std::string whole = "abcdefghij";
  ASSERT_EQ(payload.payload_bytes(), whole.size());
  for (std::size_t offset = 0; offset <= whole.size(); ++offset) {
    for (std::size_t size = 0; offset + size <= whole.size(); ++size) {
      const std::vector<absl::string_view> pieces = payload.Pieces(offset, size);
      EXPECT_EQ(absl::StrJoin(pieces, ""), whole.substr(offset, size)) << offset << "+" << size;
      for (const absl::string_view piece : pieces) EXPECT_FALSE(piece.empty());
    }
  }
}

TEST(EncodedPayloadTest, KnowsWhereItsBlocksLie) {
  const EncodedPayload payload({}, {"abc", "d", "efghij"});
  ASSERT_EQ(payload.block_count(), 3);
  EXPECT_EQ(payload.OffsetOf(0), 0);
  EXPECT_EQ(payload.OffsetOf(2), 4);
  EXPECT_EQ(payload.OffsetOf(3), 10);
}

TEST(EncodedPayloadTest, NoBlocksNoBytes) {
  const EncodedPayload payload({.form = PullForm::kBroadcast, .version = 3, .params_digest = "d"}, {});
  EXPECT_EQ(payload.payload_bytes(), 0);
  EXPECT_EQ(payload.block_count(), 0);
  EXPECT_EQ(payload.header().version, 3);
}

}  // namespace
}  // namespace autoloco::server
