#include "common/config/utf8.h"

#include <gtest/gtest.h>

namespace autoloco {
namespace {

TEST(Utf8Test, TakesText) {
  for (const absl::string_view text :
       {"", "plain text ~!", "\xc2\xa0", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xef\xbf\xbf", "\xf0\x9f\x98\x80",
        "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_TRUE(IsPrintableUtf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesControlCharacters) {
  EXPECT_FALSE(IsPrintableUtf8(absl::string_view("\0", 1)));
  for (const absl::string_view text : {"a\nb", "\t", "\x1b[0m", "\x7f", "\xc2\x80", "\xc2\x9f"}) {
    EXPECT_FALSE(IsPrintableUtf8(text));
  }
}

TEST(Utf8Test, RefusesMalformedBytes) {
  for (const absl::string_view text :
       {"\x80", "a\xff", "\xc3", "\xc3\x41", "\xe2\x82", "\xf0\x9f\x98", "\xc0\xaf", "\xc1\x81", "\xe0\x80\xaf",
        "\xf0\x80\x80\xaf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(IsPrintableUtf8(text));
  }
}

}  // namespace
}  // namespace autoloco
