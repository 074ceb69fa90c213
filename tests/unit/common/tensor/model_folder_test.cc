#include "common/tensor/model_folder.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/tensor/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_folder.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;

DecoderShape SmallShape() {
  DecoderShape shape;
  shape.vocab_size = 16;
  shape.width = 8;
  shape.layers = 2;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.mlp_hidden = 12;
  shape.context = 4;
  shape.tied_head = false;
  shape.rope_theta = 500000;
  shape.norm_epsilon = 1e-6;
  return shape;
}

// The config of SmallShape with one key changed or removed.
std::string Changed(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = nlohmann::json::parse(ModelConfigText(SmallShape()));
  config[key] = value;
  return config.dump();
}
std::string Without(const std::string& key) {
  nlohmann::json config = nlohmann::json::parse(ModelConfigText(SmallShape()));
  config.erase(key);
  return config.dump();
}

TEST(ModelConfigTest, AShapeComesBack) {
  for (const bool tied : {false, true}) {
    DecoderShape shape = SmallShape();
    shape.tied_head = tied;
    shape.norm_epsilon = 0.1 + 0.2;
    const auto parsed = ParseModelConfig(ModelConfigText(shape));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, shape);
  }
}

TEST(ModelConfigTest, HasTheKeysThatLlamaConfigReads) {
  const nlohmann::json config = nlohmann::json::parse(ModelConfigText(SmallShape()));
  EXPECT_EQ(config["architectures"], nlohmann::json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["hidden_size"], 8);
  EXPECT_EQ(config["intermediate_size"], 12);
  EXPECT_EQ(config["num_hidden_layers"], 2);
  EXPECT_EQ(config["num_attention_heads"], 2);
  EXPECT_EQ(config["num_key_value_heads"], 1);
  EXPECT_EQ(config["vocab_size"], 16);
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["rope_theta"], 500000.0);
  EXPECT_EQ(config["rms_norm_eps"], 1e-6);
  EXPECT_EQ(config["torch_dtype"], "float32");
  EXPECT_EQ(config["max_position_embeddings"], 4);
}

TEST(ModelConfigTest, MissingKeysTakeHuggingFacesDefaults) {
  const auto kv = ParseModelConfig(Without("num_key_value_heads"));
  ASSERT_TRUE(kv.ok()) << kv.status();
  EXPECT_EQ(kv->kv_heads, kv->heads);
  EXPECT_EQ(ParseModelConfig(Without("rope_theta"))->rope_theta, 10000);
  EXPECT_EQ(ParseModelConfig(Without("max_position_embeddings"))->context, 2048u);
  EXPECT_TRUE(ParseModelConfig(Without("head_dim")).ok());
  EXPECT_TRUE(ParseModelConfig(Changed("some_new_key", {1, 2})).ok());
}

TEST(ModelConfigTest, WhatDoesNotFitIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Without("hidden_size"), "hidden_size: is missing"},
      {Changed("hidden_size", 0), "hidden_size: want a whole number"},
      {Changed("hidden_size", -8), "hidden_size: want a whole number"},
      {Changed("hidden_size", 8.5), "hidden_size: want a whole number"},
      {Changed("hidden_size", "8"), "hidden_size: want a whole number"},
      {Changed("num_hidden_layers", 4000000000u), "num_hidden_layers: want a whole number from 1 to 1024"},
      {Changed("num_attention_heads", 0), "num_attention_heads"},
      {Changed("rope_theta", 0), "rope_theta: want a number above 0"},
      {Changed("rope_theta", "x"), "rope_theta: want a number above 0"},
      {Changed("tie_word_embeddings", 1), "tie_word_embeddings: want true or false"},
      {Changed("model_type", "mistral"), "model_type: want \"llama\""},
      {Changed("hidden_act", "gelu"), "hidden_act: want \"silu\""},
      {Changed("attention_bias", true), "attention_bias: want false"},
      {Changed("head_dim", 16), "head_dim: want 4"},
      {Changed("rope_scaling", {{"factor", 2}}), "rope_scaling"},
      {"[]", "want a JSON object"},
      {"{", "want a JSON object"},
      {"", "want a JSON object"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = ParseModelConfig(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(message));
  }
}

class ModelFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    layout_ = *MakeDecoderLayout(SmallShape());
    values_.resize(layout_.value_count());
    InitializeParameters(layout_, 1, 0.02, values_);
    ASSERT_TRUE(WriteFileAtomically(folder_.File("config.json"), ModelConfigText(SmallShape())).ok());
  }
  void SaveAs(const std::string& name) { ASSERT_TRUE(SaveParameters(folder_.File(name), layout_, values_, {}).ok()); }

  const TempFolder folder_;
  Layout layout_;
  std::vector<float> values_;
};

TEST_F(ModelFolderTest, ReadsEitherName) {
  for (const char* name : {"params.safetensors", "model.safetensors"}) {
    SaveAs(name);
    const auto model = ReadModelFolder(folder_.path());
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->shape, SmallShape());
    EXPECT_EQ(FirstDifference(layout_, model->layout), "");
    EXPECT_TRUE(std::equal(values_.begin(), values_.end(), model->parameters.values().begin()));
    ASSERT_EQ(std::remove(folder_.File(name).c_str()), 0);
  }
}

TEST_F(ModelFolderTest, WhatIsMissingIsNamed) {
  auto model = ReadModelFolder(folder_.path());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("params.safetensors"));
  model = ReadModelFolder(folder_.File("nowhere"));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("config.json"));
}

TEST_F(ModelFolderTest, TheConfigAloneTakesNoMemory) {
  SaveAs("params.safetensors");
  DecoderShape huge = SmallShape();
  huge.width = 1 << 16;
  huge.mlp_hidden = 1 << 20;
  ASSERT_TRUE(WriteFileAtomically(folder_.File("config.json"), ModelConfigText(huge)).ok());
  const auto model = ReadModelFolder(folder_.path());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("params.safetensors: holds "));
}

TEST_F(ModelFolderTest, OtherTensorsAreRefused) {
  const Layout other = *Layout::Make({{"x", {layout_.value_count()}}});
  ASSERT_TRUE(SaveParameters(folder_.File("params.safetensors"), other, values_, {}).ok());
  const auto model = ReadModelFolder(folder_.path());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("model.embed_tokens.weight"));
}

}  // namespace
}  // namespace autoloco
