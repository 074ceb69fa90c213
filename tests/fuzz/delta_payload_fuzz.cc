// A whole payload of a delta. Checksums are put right along the headers on request, so that what lies behind them is
// reached.
#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/codec/delta_codec.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/common/codec/codec_blocks.h"

namespace autoloco::test {
namespace {

constexpr std::size_t kHeaderBytes = 20;
constexpr std::size_t kHashedBytes = 12;

void CorrectChecksums(std::string* payload) {
  for (std::size_t at = 0; payload->size() - at >= kHeaderBytes;) {
    std::uint32_t body_bytes = 0;
    std::memcpy(&body_bytes, payload->data() + at + 8, sizeof(body_bytes));
    if (payload->size() - at - kHeaderBytes < body_bytes) return;
    const auto block = Bytes(*payload).subspan(at, kHeaderBytes + body_bytes);
    const std::uint64_t checksum = Hash64(block.first(kHashedBytes), block.subspan(kHeaderBytes));
    std::memcpy(payload->data() + at + kHashedBytes, &checksum, sizeof(checksum));
    at += block.size();
  }
}

void DecodePayload(const std::string& payload, Codec codec, std::size_t count) {
  std::vector<float> values(count);
  const absl::Status status = DecodeVector(Bytes(payload), codec, values);
  if (!status.ok()) return;
  AUTOLOCO_CHECK(payload.size() <= MaxPayloadBytes(count, codec));
  for (const float value : values) AUTOLOCO_CHECK(!IsQuantized(codec) || std::isfinite(value));
}

}  // namespace
}  // namespace autoloco::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kBlocksMax = 3;
  autoloco::test::FuzzInput input(data, size);
  const autoloco::Codec codec = input.NextCodec();
  const std::size_t count = input.Count(kBlocksMax * autoloco::kBlockValues);
  const bool correct = input.Byte() % 2 == 0;
  std::string payload = input.Rest();
  if (correct) autoloco::test::CorrectChecksums(&payload);
  autoloco::test::DecodePayload(payload, codec, count);
  return 0;
}
