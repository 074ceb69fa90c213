#include "common/config/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace autoloco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

class FlagsTest : public ::testing::Test {
 protected:
  // "path=text" of each value; what went wrong when the arguments are refused.
  Arguments Values(const Arguments& arguments) {
    const absl::StatusOr<CommandLine> line = ParseFlags(arguments, table_);
    if (!line.ok()) return {std::string(line.status().message())};
    Arguments values;
    for (const FlagValue& value : line->values) values.push_back(absl::StrCat(value.setting->path, "=", value.text));
    return values;
  }
  std::string ErrorOf(const Arguments& arguments) {
    const absl::StatusOr<CommandLine> line = ParseFlags(arguments, table_);
    return line.ok() ? "" : std::string(line.status().message());
  }

  const SettingTable table_{v1::ServerConfig::descriptor()};
};

TEST_F(FlagsTest, FormsOfAFlag) {
  const Arguments want = {"run.rounds.min_workers=2"};
  for (const Arguments& arguments :
       {Arguments{"--run.rounds.min_workers", "2"}, Arguments{"--run.rounds.min-workers=2"},
        Arguments{"--rounds.min_workers=2"}, Arguments{"--min-workers", "2"}, Arguments{"--min_workers=2"}}) {
    EXPECT_EQ(Values(arguments), want) << arguments[0];
  }
  EXPECT_THAT(Values({"--state-dir=a=b", "--outer.learning_rate=0.5", "--listen", "[::1]:1"}),
              ElementsAre("server.state_dir=a=b", "run.outer.learning_rate=0.5", "server.listen=[::1]:1"));
  EXPECT_THAT(Values({"--metrics-listen="}), ElementsAre("server.metrics_listen="));
  EXPECT_THAT(Values({"--metrics-listen", ""}), ElementsAre("server.metrics_listen="));
  EXPECT_THAT(Values({"--state-dir", "-x"}), ElementsAre("server.state_dir=-x"));
  EXPECT_THAT(Values({"--state-dir=--x"}), ElementsAre("server.state_dir=--x"));
  EXPECT_THAT(Values({}), IsEmpty());
}

TEST_F(FlagsTest, Booleans) {
  EXPECT_THAT(Values({"--insecure"}), ElementsAre("server.insecure=true"));
  EXPECT_THAT(Values({"--no-insecure"}), ElementsAre("server.insecure=false"));
  EXPECT_THAT(Values({"--no-outer.nesterov"}), ElementsAre("run.outer.nesterov=false"));
  EXPECT_THAT(Values({"--insecure=false"}), ElementsAre("server.insecure=false"));
  EXPECT_THAT(Values({"--insecure", "false", "--strict", "--seed", "1"}),
              ElementsAre("server.insecure=false", "run.rounds.strict=true", "run.seed=1"));
}

TEST_F(FlagsTest, BuiltIns) {
  const absl::StatusOr<CommandLine> line =
      ParseFlags({"--config", "a.yaml", "--check-config", "--print-config", "--seed=1"}, table_);
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->config_file, "a.yaml");
  EXPECT_TRUE(line->check_config);
  EXPECT_TRUE(line->print_config);
  EXPECT_FALSE(line->help);
  EXPECT_FALSE(line->version);
  EXPECT_EQ(ParseFlags({"--config=b.yaml"}, table_)->config_file, "b.yaml");
  EXPECT_TRUE(ParseFlags({"--nonsense", "--help"}, table_)->help);
  EXPECT_TRUE(ParseFlags({"-h"}, table_)->help);
  EXPECT_TRUE(ParseFlags({"--version"}, table_)->version);
}

TEST_F(FlagsTest, FlagsAreRememberedAsWritten) {
  const absl::StatusOr<CommandLine> line = ParseFlags({"--min-workers=2"}, table_);
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->values[0].flag, "--min-workers");
}

TEST_F(FlagsTest, Refuses) {
  struct Case {
    Arguments arguments;
    const char* error;
  };
  for (const Case& c : {
           Case{{"server.yaml"}, "argument 'server.yaml': expected a flag (--key value), found a positional argument"},
           Case{{"-x"}, "argument '-x': expected a flag"},
           Case{{""}, "argument '': expected a flag"},
           Case{{"--"}, "argument '--': expected a flag"},
           Case{{"--seed", "1", "2"}, "argument '2': expected a flag"},
           Case{{"--insecure", "yes"}, "argument 'yes': expected a flag"},
           Case{{"--min-workrs", "2"}, "flag '--min-workrs': unknown; did you mean --min-workers?"},
           Case{{"--outer.learning-rat=1"},
                "flag '--outer.learning-rat': unknown; did you mean --outer.learning-rate?"},
           Case{{"--hlep"}, "flag '--hlep': unknown; did you mean --help?"},
           Case{{"--xyzzy"}, "flag '--xyzzy': unknown; --help lists all flags"},
           Case{{"--=1"}, "flag '--': unknown"},
           Case{{"--no-seed"}, "flag '--no-seed': unknown"},
           Case{{"--no-insecure=true"}, "flag --no-insecure: expected no value, found 'true'"},
           Case{{"--learning-rate", "1"},
                "flag --learning-rate: expected one setting, found several: --run.inner.learning_rate, "
                "--run.outer.learning_rate"},
           Case{{"--seed"}, "flag --seed: expected a whole number from 0 to 18446744073709551615, found no value"},
           Case{{"--listen", "--insecure"}, "flag --listen: expected text, found the flag '--insecure'"},
           Case{{"--seed=1", "--run.seed=1"},
                "flag --run.seed: run.seed: expected once, found twice (first as --seed)"},
           Case{{"--insecure", "--no-insecure"},
                "flag --no-insecure: server.insecure: expected once, found twice (first as --insecure)"},
           Case{{"--config"}, "flag --config: expected the path of a config file, found no value"},
           Case{{"--config="}, "flag --config: expected the path of a config file, found ''"},
           Case{{"--config=a", "--config", "b"}, "flag --config: expected once, found twice"},
           Case{{"--check-config=true"}, "flag --check-config: expected no value, found 'true'"},
           Case{{"--print-config=x"}, "flag --print-config: expected no value, found 'x'"},
       }) {
    SCOPED_TRACE(c.error);
    EXPECT_THAT(ErrorOf(c.arguments), HasSubstr(c.error));
  }
}

}  // namespace
}  // namespace autoloco
