#include "common/base/digest.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

std::span<const std::byte> Bytes(absl::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

// Published values of XXH3 with seed 0.
TEST(DigestTest, MatchesPublishedValues) {
  EXPECT_EQ(Hash64(Bytes("")), 0x2D06800538D394C2u);
  EXPECT_EQ(Hash64(Bytes("abc")), 0x78AF5F94892F3950u);
  EXPECT_EQ(Digest128(Bytes("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Digest128(Bytes("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(DigestTest, FloatsHashAsLittleEndianBytes) {
  const std::vector<float> values = {1.0f, -2.5f};
  const std::string bytes("\x00\x00\x80\x3f\x00\x00\x20\xc0", 8);
  EXPECT_EQ(Hash64(values), Hash64(Bytes(bytes)));
  EXPECT_EQ(Digest128(values), Digest128(Bytes(bytes)));
}

TEST(DigestTest, PiecesGiveTheDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * 7);
  for (const std::size_t cut : {0u, 1u, 15u, 256u, 1024u, 2999u, 3000u}) {
    Digest128Stream stream;
    stream.Update(Bytes(text).first(cut));
    stream.Update(Bytes(text).subspan(cut));
    EXPECT_EQ(stream.Finish(), Digest128(Bytes(text))) << cut;
    EXPECT_EQ(Hash64(Bytes(text).first(cut), Bytes(text).subspan(cut)), Hash64(Bytes(text))) << cut;
  }
}

TEST(DigestTest, AnEmptyStreamHasTheDigestOfNothing) { EXPECT_EQ(Digest128Stream().Finish(), Digest128(Bytes(""))); }

}  // namespace
}  // namespace autoloco
