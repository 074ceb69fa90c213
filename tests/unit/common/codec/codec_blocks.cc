#include "tests/unit/common/codec/codec_blocks.h"

#include <cstring>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/random.h"
#include "zstd.h"

namespace autoloco::test {

std::vector<float> Gaussian(std::size_t count, std::uint64_t seed) {
  const RandomStream stream(seed, 0);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(stream.Normal(i) * 1e-3);
  return values;
}

std::string MakeBlock(std::uint32_t index, std::uint8_t codec, std::uint8_t stored, std::uint16_t zero,
                      const std::string& body) {
  std::string block(12, '\0');
  const auto body_bytes = static_cast<std::uint32_t>(body.size());
  std::memcpy(block.data(), &index, 4);
  block[4] = static_cast<char>(codec);
  block[5] = static_cast<char>(stored);
  std::memcpy(block.data() + 6, &zero, 2);
  std::memcpy(block.data() + 8, &body_bytes, 4);
  const std::uint64_t checksum = Hash64(Bytes(block + body));
  block.append(reinterpret_cast<const char*>(&checksum), 8);
  return block + body;
}

std::string Compress(const std::string& text) {
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
  return frame;
}

std::string UnitBytes(const std::vector<float>& units) {
  return {reinterpret_cast<const char*>(units.data()), units.size() * sizeof(float)};
}

absl::Status DecodeStatus(const std::string& payload, std::size_t count, Codec codec) {
  std::vector<float> values(count);
  const absl::Status status = DecodeVector(Bytes(payload), codec, values);
  if (count > 0 && count <= kBlockValues) {
    BlockDecoder decoder;
    std::vector<float> sum(count);
    AUTOLOCO_CHECK(decoder.DecodeAdd(Bytes(payload), codec, 0, 1, sum).ok() == status.ok());
    AUTOLOCO_CHECK(status.ok() || sum == std::vector<float>(count));  // untouched by what was refused
  }
  return status;
}

}  // namespace autoloco::test
