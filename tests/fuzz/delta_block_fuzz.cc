// One block of a delta, with or without a right header around the bytes: a status or values, nothing else.
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/codec/delta_codec.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/unit/common/codec/codec_blocks.h"

namespace autoloco::test {
namespace {

void DecodeBlock(const std::string& block, Codec codec, std::size_t count) {
  static BlockDecoder decoder;  // used again and again, as in a server
  std::vector<float> values(count, 7.0F);
  std::vector<float> sum(count);
  const absl::Status status = decoder.Decode(Bytes(block), codec, 0, values);
  AUTOLOCO_CHECK(decoder.DecodeAdd(Bytes(block), codec, 0, 1, sum).ok() == status.ok());
  double squared_norm = 0;
  AUTOLOCO_CHECK(decoder.Check(Bytes(block), codec, 0, count, &squared_norm).ok() == status.ok());
  const WeightedBlock twice[] = {{Bytes(block), codec, 1}, {Bytes(block), codec, 0.5F}};
  std::vector<float> sum_of_two(count);
  std::vector<double> squared_norms(2);
  std::size_t damaged = 0;
  AUTOLOCO_CHECK(decoder.Sum(twice, 0, sum_of_two, squared_norms, &damaged).ok() == status.ok());
  AUTOLOCO_CHECK(damaged < 2);
  for (std::size_t i = 0; i < count; ++i) {
    if (!status.ok()) {
      AUTOLOCO_CHECK(values[i] == 7.0F && sum[i] == 0);
    } else if (IsQuantized(codec)) {
      AUTOLOCO_CHECK(std::isfinite(values[i]) && sum[i] == values[i]);
      AUTOLOCO_CHECK(sum_of_two[i] == values[i] + 0.5F * values[i]);
    }
  }
}

}  // namespace
}  // namespace autoloco::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  autoloco::test::FuzzInput input(data, size);
  const autoloco::Codec codec = input.NextCodec();
  const std::size_t count = input.Count(autoloco::kBlockValues - 1) + 1;
  const std::uint8_t mode = input.Byte() % 3;
  const std::string rest = input.Rest();
  autoloco::test::DecodeBlock(
      mode == 2 ? rest : autoloco::test::MakeBlock(0, static_cast<std::uint8_t>(codec), mode, 0, rest), codec, count);
  return 0;
}
