// Cuts a fuzzer's bytes into numbers and the rest. A target reads its choices first, then the bytes to decode.
#ifndef AUTOLOCO_TESTS_FUZZ_FUZZ_INPUT_H_
#define AUTOLOCO_TESTS_FUZZ_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/codec/codec.h"

namespace autoloco::test {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  // The next byte; 0 where there is none left.
  std::uint8_t Byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  // 0 .. max; small in three cases of four, so that more cases are tried in a second.
  std::size_t Count(std::size_t max) {
    constexpr std::size_t kSmall = 600;
    const bool any = Byte() % 4 == 0;
    std::size_t word = 0;
    for (int i = 0; i < 3; ++i) word = word << 8 | Byte();
    return word % ((any || max < kSmall ? max : kSmall) + 1);
  }
  // A known codec, now and then an unknown one.
  Codec NextCodec() { return static_cast<Codec>(Byte() % 8); }
  std::string Rest() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_FUZZ_FUZZ_INPUT_H_
