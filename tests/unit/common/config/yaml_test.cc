#include "common/config/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/config/value.h"
#include "common/config/yaml_tree.h"

namespace autoloco {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class YamlTest : public ::testing::Test {
 protected:
  absl::Status Read(absl::string_view text) { return ReadYaml(text, "s.yaml", &values_); }

  const SettingTable table_{v1::ServerConfig::descriptor()};
  v1::ServerConfig config_;
  SettingValues values_{&table_, &config_};
};

TEST_F(YamlTest, ReadsNestedSettings) {
  const absl::Status read = Read(R"(
# a comment
run:
  name: "first"
  seed: 7
  outer: {learning_rate: 5e-1, nesterov: false}
  model:
    preset: 60m
  codec:
    delta: "bf16"
server:
  state_dir: /var/lib/auto loco
  metrics_listen: ""
  listen: '[::1]:7070'
)");
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(config_.run().name(), "first");
  EXPECT_EQ(config_.run().seed(), 7u);
  EXPECT_EQ(config_.run().outer().learning_rate(), 0.5);
  EXPECT_TRUE(config_.run().outer().has_nesterov());
  EXPECT_FALSE(config_.run().outer().nesterov());
  EXPECT_FALSE(config_.run().outer().has_momentum());
  EXPECT_EQ(config_.run().model().preset(), v1::ModelConfig::PRESET_60M);
  EXPECT_EQ(config_.run().codec().delta(), v1::CodecConfig::DELTA_BF16);
  EXPECT_EQ(config_.server().state_dir(), "/var/lib/auto loco");
  EXPECT_TRUE(config_.server().has_metrics_listen());
  EXPECT_EQ(config_.server().listen(), "[::1]:7070");
  EXPECT_EQ(values_.Origin("run.seed"), "s.yaml:5:9");
  EXPECT_EQ(values_.Origin("run.outer.learning_rate"), "s.yaml:6:26");
}

TEST_F(YamlTest, EmptyFilesGiveNothing) {
  for (const char* text : {"", "# nothing\n", "---\n", "{}"}) {
    EXPECT_TRUE(Read(text).ok()) << text;
  }
  EXPECT_EQ(config_.ByteSizeLong(), 0u);
}

TEST_F(YamlTest, PlainScalarsAreTextForTextSettings) {
  ASSERT_TRUE(Read("run: {name: 123}\nserver: {state_dir: true}").ok());
  EXPECT_EQ(config_.run().name(), "123");
  EXPECT_EQ(config_.server().state_dir(), "true");
}

TEST_F(YamlTest, Refuses) {
  struct Case {
    const char* text;
    const char* error;
  };
  for (const Case& c : {
           Case{"runn:\n  seed: 1\n", "s.yaml:1:1: unknown key 'runn'; did you mean 'run'?"},
           Case{"worker: {}\n", "s.yaml:1:1: unknown key 'worker'; expected one of run, server"},
           Case{"run:\n  outer:\n    lerning_rate: 1\n",
                "s.yaml:3:5: run.outer: unknown key 'lerning_rate'; did you mean 'learning_rate'?"},
           Case{"run:\n  learning_rate: 1\n",
                "s.yaml:2:3: run: unknown key 'learning_rate'; did you mean run.inner.learning_rate or "
                "run.outer.learning_rate?"},
           Case{"run:\n  outer:\n    zzz: 1\n",
                "s.yaml:3:5: run.outer: unknown key 'zzz'; expected one of learning_rate, momentum, nesterov"},
           Case{"run:\n  ? \"a\\nb\"\n  : 1\n", "unknown key 'a\\nb'"},
           Case{"run:\n  <<: {seed: 1}\n", "s.yaml:2:3: run: unknown key '<<'"},
           Case{"run:\n  seed: 1\n  seed: 1\n",
                "s.yaml:3:3: run.seed: expected each key once, found it again (first at line 2)"},
           Case{"run: {seed: 1}\nserver: {}\nrun: {seed: 2}\n",
                "s.yaml:3:1: run: expected each key once, found it again (first at line 1)"},
           Case{
               "run:\n  seed: \"7\"\n",
               "s.yaml:2:9: run.seed: expected a whole number from 0 to 18446744073709551615 without quotes, found the "
               "text '7'"},
           Case{"run:\n  outer:\n    nesterov: 'true'\n",
                "s.yaml:3:15: run.outer.nesterov: expected true or false without quotes, found the text 'true'"},
           Case{"run:\n  outer:\n    nesterov: yes\n",
                "s.yaml:3:15: run.outer.nesterov: expected true or false, found 'yes'"},
           Case{"run:\n  outer:\n    learning_rate: 11\n",
                "s.yaml:3:20: run.outer.learning_rate: expected a number above 0 and at most 10, found '11'"},
           Case{"run:\n  seed: null\n",
                "run.seed: expected a whole number from 0 to 18446744073709551615, found nothing (null)"},
           Case{"run:\n  seed:\n", "s.yaml:2:3: run.seed: expected a whole number"},
           Case{"run:\n  name: ~\n", "found nothing (null); \"\" is empty text"},
           Case{"run:\n  name: [a]\n",
                "s.yaml:2:9: run.name: expected text matching [a-zA-Z0-9_.-]{1,64}, found a list"},
           Case{"run:\n  name: {a: b}\n", "found a mapping"},
           Case{"run:\n", "s.yaml:1:1: run: expected a mapping of settings, found nothing (null)"},
           Case{"run: 7\n", "s.yaml:1:6: run: expected a mapping of settings, found a single value"},
           Case{"run:\n- seed\n", "run: expected a mapping of settings, found a list"},
           Case{"- run\n", "s.yaml:1:1: expected a mapping with run, server, found a list"},
           Case{"run\n", "s.yaml:1:1: expected a mapping with run, server, found a single value"},
           Case{"run: {seed: 1\n", "s.yaml:"},
           Case{"run: &a {outer: *a}\n", "anchors are not taken"},
           Case{"run: {}\n---\nrun: {}\n", "s.yaml: expected one YAML document, found several"},
       }) {
    SCOPED_TRACE(c.text);
    v1::ServerConfig config;
    SettingValues values(&table_, &config);
    const absl::Status read = ReadYaml(c.text, "s.yaml", &values);
    EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.message()), AllOf(StartsWith("s.yaml:"), HasSubstr(c.error)));
  }
}

TEST_F(YamlTest, ReadsFiles) {
  const std::string path = ::testing::TempDir() + "/autoloco_yaml_test.yaml";
  std::ofstream(path) << "run: {seed: 9}\n";
  ASSERT_TRUE(ReadYamlFile(path, &values_).ok());
  EXPECT_EQ(config_.run().seed(), 9u);
  EXPECT_EQ(values_.Origin("run.seed"), path + ":1:13");
  std::ofstream(path) << "run: {seed: x}\n";
  EXPECT_THAT(std::string(ReadYamlFile(path, &values_).message()), StartsWith(path + ":1:13: run.seed: expected"));
  std::ofstream(path) << std::string(kYamlBytesMax + 1, '#');
  EXPECT_THAT(std::string(ReadYamlFile(path, &values_).message()),
              AllOf(StartsWith(path), HasSubstr("expected a config file of at most 1048576 bytes")));
}

TEST_F(YamlTest, UnreadableFilesAreNamed) {
  const absl::Status missing = ReadYamlFile("/nonexistent/s.yaml", &values_);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/nonexistent/s.yaml: cannot open this config file"));
  EXPECT_THAT(std::string(ReadYamlFile("/", &values_).message()), HasSubstr("/: cannot read this config file"));
  EXPECT_FALSE(ReadYamlFile("/dev/zero", &values_).ok());  // endless: bounded
}

TEST_F(YamlTest, PrintsWhatItReads) {
  config_.mutable_run()->set_name("a");
  config_.mutable_run()->mutable_outer()->set_learning_rate(0.7);
  config_.mutable_run()->mutable_inner()->set_schedule(v1::InnerConfig::SCHEDULE_COSINE);
  config_.mutable_server()->set_state_dir("quote \" backslash \\ gr\xc3\xbc\xc3\x9f # : - ~");
  config_.mutable_server()->set_metrics_listen("");
  config_.mutable_server()->set_insecure(true);
  const std::string text = ToYaml(table_, config_);
  EXPECT_EQ(text, R"(run:
  name: "a"
  inner:
    schedule: cosine
  outer:
    learning_rate: 0.7
server:
  metrics_listen: ""
  state_dir: "quote \" backslash \\ gr)"
                  "\xc3\xbc\xc3\x9f"
                  R"( # : - ~"
  insecure: true
)");
  v1::ServerConfig again;
  SettingValues values(&table_, &again);
  const absl::Status read = ReadYaml(text, "again", &values);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(again.SerializeAsString(), config_.SerializeAsString());
  EXPECT_EQ(ToYaml(table_, v1::ServerConfig()), "");
}

}  // namespace
}  // namespace autoloco
