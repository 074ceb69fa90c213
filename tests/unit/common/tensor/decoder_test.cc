#include "common/tensor/decoder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;

DecoderShape SmallShape() {
  DecoderShape shape;
  shape.vocab_size = 256;
  shape.width = 16;
  shape.layers = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.mlp_hidden = 40;
  shape.context = 32;
  return shape;
}

std::vector<float> Initialize(const DecoderShape& shape, std::uint64_t seed) {
  const Layout layout = MakeDecoderLayout(shape).value();
  std::vector<float> values(layout.value_count());
  InitializeParameters(layout, seed, 0.02, values);
  return values;
}

std::span<const float> TensorOf(const Layout& layout, const std::vector<float>& values, const std::string& name) {
  for (const TensorEntry& tensor : layout.tensors()) {
    if (tensor.spec.name == name) return std::span(values).subspan(tensor.offset, tensor.count);
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

TEST(DecoderTest, LayoutHasHuggingFaceNamesInOrder) {
  const Layout layout = MakeDecoderLayout(SmallShape()).value();
  std::vector<std::string> names;
  for (const TensorEntry& tensor : layout.tensors()) names.push_back(tensor.spec.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.embed_tokens.weight",
                                             "model.layers.0.input_layernorm.weight",
                                             "model.layers.0.self_attn.q_proj.weight",
                                             "model.layers.0.self_attn.k_proj.weight",
                                             "model.layers.0.self_attn.v_proj.weight",
                                             "model.layers.0.self_attn.o_proj.weight",
                                             "model.layers.0.post_attention_layernorm.weight",
                                             "model.layers.0.mlp.gate_proj.weight",
                                             "model.layers.0.mlp.up_proj.weight",
                                             "model.layers.0.mlp.down_proj.weight",
                                             "model.layers.1.input_layernorm.weight",
                                             "model.layers.1.self_attn.q_proj.weight",
                                             "model.layers.1.self_attn.k_proj.weight",
                                             "model.layers.1.self_attn.v_proj.weight",
                                             "model.layers.1.self_attn.o_proj.weight",
                                             "model.layers.1.post_attention_layernorm.weight",
                                             "model.layers.1.mlp.gate_proj.weight",
                                             "model.layers.1.mlp.up_proj.weight",
                                             "model.layers.1.mlp.down_proj.weight",
                                             "model.norm.weight"}));
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(layout.tensors()[0].spec.shape, (Shape{256, 16}));
  EXPECT_EQ(layout.tensors()[2].spec.shape, (Shape{16, 16}));
  EXPECT_EQ(layout.tensors()[3].spec.shape, (Shape{8, 16}));
  EXPECT_EQ(layout.tensors()[4].spec.shape, (Shape{8, 16}));
  EXPECT_EQ(layout.tensors()[7].spec.shape, (Shape{40, 16}));
  EXPECT_EQ(layout.tensors()[9].spec.shape, (Shape{16, 40}));
  EXPECT_EQ(layout.tensors()[19].spec.shape, (Shape{16}));
}

TEST(DecoderTest, CountsAsWorkedOutByHand) {
  // 4 layers, width 128, 4 heads, SwiGLU 320, tied head, 256 bytes: 32768 + 4 (4 * 16384 + 3 * 40960 + 256) + 128.
  DecoderShape shape;
  shape.vocab_size = 256;
  shape.width = 128;
  shape.layers = 4;
  shape.heads = 4;
  shape.kv_heads = 4;
  shape.mlp_hidden = 320;
  shape.context = 128;
  EXPECT_EQ(MakeDecoderLayout(shape)->value_count(), 787584u);
  shape.tied_head = false;
  const Layout untied = MakeDecoderLayout(shape).value();
  EXPECT_EQ(untied.value_count(), 787584u + 32768u);
  EXPECT_EQ(untied.tensors().back().spec.name, "lm_head.weight");
}

TEST(DecoderTest, RefusesShapesThatDoNotFit) {
  const auto refusal = [](void (*change)(DecoderShape*)) {
    DecoderShape shape = SmallShape();
    change(&shape);
    const absl::Status status = ValidateDecoderShape(shape);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(MakeDecoderLayout(shape).status(), status);
    return std::string(status.message());
  };
  EXPECT_TRUE(ValidateDecoderShape(SmallShape()).ok());
  EXPECT_THAT(refusal([](DecoderShape* s) { s->width = 18; }), HasSubstr("got width 18, heads 4"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->width = 12; }), HasSubstr("must be even (rotary positions), got 3"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->kv_heads = 3; }), HasSubstr("got heads 4, kv_heads 3"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->vocab_size = 0; }), HasSubstr("vocab_size must be at least 1"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->layers = 0; }), HasSubstr("layers must be at least 1"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->heads = 0; }), HasSubstr("heads must be at least 1"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->kv_heads = 0; }), HasSubstr("kv_heads must be at least 1"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->context = 0; }), HasSubstr("context must be at least 1"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->rope_theta = 0; }), HasSubstr("rope_theta must be positive, got 0"));
  EXPECT_THAT(refusal([](DecoderShape* s) { s->norm_epsilon = NAN; }), HasSubstr("norm_epsilon must be positive"));
}

TEST(DecoderTest, HugeNumbersAreRefusedBeforeMemoryIsTaken) {
  DecoderShape shape = SmallShape();
  shape.layers = 0xFFFFFFFFu;
  EXPECT_EQ(MakeDecoderLayout(shape).status().code(), absl::StatusCode::kInvalidArgument);
  shape = SmallShape();
  shape.vocab_size = shape.width = shape.mlp_hidden = 0xFFFFFFF0u;
  EXPECT_EQ(MakeDecoderLayout(shape).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DecoderTest, InitialValuesHaveTheWantedDistribution) {
  const Layout layout = MakeDecoderLayout(SmallShape()).value();
  const std::vector<float> values = Initialize(SmallShape(), 7);
  const auto norm = TensorOf(layout, values, "model.layers.1.input_layernorm.weight");
  EXPECT_TRUE(std::all_of(norm.begin(), norm.end(), [](float v) { return v == 1.0f; }));
  const auto embedding = TensorOf(layout, values, "model.embed_tokens.weight");
  double sum = 0;
  double squares = 0;
  for (const float value : embedding) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto n = static_cast<double>(embedding.size());
  EXPECT_NEAR(sum / n, 0, 0.0016);                    // standard error 0.0003
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 0.0012);  // 0.0002
}

TEST(DecoderTest, InitialValuesFollowSeedAndNameOnly) {
  const std::vector<float> values = Initialize(SmallShape(), 7);
  EXPECT_EQ(values, Initialize(SmallShape(), 7));
  EXPECT_NE(values, Initialize(SmallShape(), 8));
  DecoderShape deeper = SmallShape();
  deeper.layers = 3;
  const std::vector<float> deeper_values = Initialize(deeper, 7);
  const Layout layout = MakeDecoderLayout(SmallShape()).value();
  const Layout deeper_layout = MakeDecoderLayout(deeper).value();
  for (const TensorEntry& tensor : layout.tensors()) {
    const auto want = TensorOf(layout, values, tensor.spec.name);
    const auto got = TensorOf(deeper_layout, deeper_values, tensor.spec.name);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin(), got.end())) << tensor.spec.name;
  }
}

// Any change of generator, streams or order changes every run from a seed. Rounded, so that another libm passes.
TEST(DecoderTest, GoldenValues) {
  const std::vector<float> values = Initialize(SmallShape(), 42);
  const Layout layout = MakeDecoderLayout(SmallShape()).value();
  const auto q = TensorOf(layout, values, "model.layers.1.self_attn.q_proj.weight");
  EXPECT_NEAR(values[0], 0.019020279869, 1e-8);
  EXPECT_NEAR(values[1], -0.033576052636, 1e-8);
  EXPECT_NEAR(q[0], -0.015534281731, 1e-8);
  EXPECT_NEAR(q[255], -0.027156008407, 1e-8);
}

}  // namespace
}  // namespace autoloco
