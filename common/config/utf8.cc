#include "common/config/utf8.h"

#include <cstddef>
#include <cstdint>

namespace autoloco {
namespace {

constexpr std::uint32_t kMalformed = 0xffffffff;

// The code point at the front of `text`, which is not empty; its bytes are removed. kMalformed: none there.
std::uint32_t TakeCodePoint(absl::string_view* text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>((*text)[i]); };
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by length: below it, a shorter form exists
  const std::uint8_t first = byte(0);
  std::size_t length = 1;
  std::uint32_t point = first;
  if (first >= 0x80) {
    if ((first & 0xe0) == 0xc0) {
      length = 2;
      point = first & 0x1f;
    } else if ((first & 0xf0) == 0xe0) {
      length = 3;
      point = first & 0x0f;
    } else if ((first & 0xf8) == 0xf0) {
      length = 4;
      point = first & 0x07;
    } else {
      return kMalformed;
    }
  }
  if (text->size() < length) return kMalformed;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kMalformed;
    point = point << 6 | (byte(i) & 0x3f);
  }
  if (point < kLeast[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return kMalformed;
  text->remove_prefix(length);
  return point;
}

}  // namespace

bool IsPrintableUtf8(absl::string_view text) {
  while (!text.empty()) {
    const std::uint32_t point = TakeCodePoint(&text);
    if (point == kMalformed || point < 0x20 || (point >= 0x7f && point <= 0x9f)) return false;
  }
  return true;
}

}  // namespace autoloco
