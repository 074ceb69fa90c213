#include "tests/bench/round/model_shape.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace autoloco::bench {

DecoderShape ShapeOfSize(std::uint64_t params) {
  AUTOLOCO_CHECK(params >= kParamsMin);
  AUTOLOCO_CHECK(params <= kParamsMax);
  DecoderShape shape{
      .vocab_size = 256, .width = 64, .layers = 1, .heads = 1, .kv_heads = 1, .mlp_hidden = 1, .context = 2};
  const std::uint64_t of_a_hidden_unit = 3 * shape.width;
  const std::uint64_t others = MakeDecoderLayout(shape)->value_count() - of_a_hidden_unit;
  shape.mlp_hidden = static_cast<std::uint32_t>((params - others + of_a_hidden_unit / 2) / of_a_hidden_unit);
  return shape;
}

std::vector<std::string> ShapeFlags(const DecoderShape& shape) {
  return {absl::StrCat("--vocab-size=", shape.vocab_size), absl::StrCat("--width=", shape.width),
          absl::StrCat("--layers=", shape.layers),         absl::StrCat("--heads=", shape.heads),
          absl::StrCat("--kv-heads=", shape.kv_heads),     absl::StrCat("--mlp-hidden=", shape.mlp_hidden),
          absl::StrCat("--context=", shape.context)};
}

}  // namespace autoloco::bench
