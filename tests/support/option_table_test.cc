#include "tests/support/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace autoloco::test {
namespace {

using ::testing::ElementsAre;

struct Options {
  bool list = false;
  std::uint32_t rows = 7;
  std::optional<std::uint64_t> steps;
  std::vector<std::uint32_t> delays;
  std::optional<double> momentum;
  std::string json;
};

OptionTable TableOf(Options* options) {
  return {.valued = {{"--rows", WholeNumber(&options->rows)},
                     {"--steps", WholeNumber(&options->steps, 2)},
                     {"--delays", WholeNumbers(&options->delays, 0)},
                     {"--momentum", RealNumber(&options->momentum, 0, 1)},
                     {"--json", Text(&options->json)}},
          .switches = {{"--list", &options->list}}};
}

TEST(OptionTableTest, ValuesStandBehindASpaceOrAnEqualsSign) {
  Options options;
  const std::vector<std::string> arguments = {"--delays", "0,80",         "--list",     "--steps=2",
                                              "--json",   "--a=b --list", "--momentum", "0.9"};
  const absl::Status status = ReadOptions(arguments, TableOf(&options));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(options.list);
  EXPECT_EQ(options.rows, 7u);
  EXPECT_EQ(options.steps, 2u);
  EXPECT_THAT(options.delays, ElementsAre(0u, 80u));
  EXPECT_EQ(options.momentum, 0.9);
  EXPECT_EQ(options.json, "--a=b --list");
}

TEST(OptionTableTest, RefusesWhatItCannotUse) {
  for (const char* argument :
       {"--rows", "--rows=0", "--rows=-1", "--rows=4294967296", "--rows=2x", "--steps=1", "--delays=", "--delays=1,,2",
        "--momentum=1", "--momentum=-0.1", "--momentum=nan", "--json=", "--list=1", "--unknown=1", "text"}) {
    Options options;
    EXPECT_TRUE(absl::IsInvalidArgument(ReadOptions({argument}, TableOf(&options)))) << argument;
  }
  Options options;
  EXPECT_EQ(ReadOptions({"--rows", "x"}, TableOf(&options)).message(), "--rows: cannot use 'x'");
  EXPECT_EQ(ReadOptions({"--rows"}, TableOf(&options)).message(), "--rows needs a value");
  EXPECT_EQ(ReadOptions({"--row", "1"}, TableOf(&options)).message(), "unknown option --row");
}

TEST(OptionTableTest, OtherArgumentsGoElsewhereInTheirOrder) {
  Options options;
  OptionTable table = TableOf(&options);
  std::vector<std::string> others;
  table.other = [&](const std::string& argument) {
    others.push_back(argument);
    return argument == "bad" ? UnknownOption(argument) : absl::OkStatus();
  };
  EXPECT_TRUE(ReadOptions({"text", "--codec.step=1", "--rows", "3", "more"}, table).ok());
  EXPECT_THAT(others, ElementsAre("text", "--codec.step=1", "more"));
  EXPECT_EQ(options.rows, 3u);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadOptions({"bad", "--rows=4"}, table)));
  EXPECT_EQ(options.rows, 3u);
}

}  // namespace
}  // namespace autoloco::test
