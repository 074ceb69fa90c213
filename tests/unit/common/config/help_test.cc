#include "common/config/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;

TEST(HelpTest, ListsEverySettingOnLinesOfBoundedWidth) {
  for (const auto* root : {v1::ServerConfig::descriptor(), v1::WorkerConfig::descriptor()}) {
    const SettingTable table(root);
    const std::string help = HelpText({"autoloco-x", "Does a thing."}, table);
    EXPECT_THAT(help, HasSubstr("Usage: autoloco-x [--config FILE]"));
    EXPECT_THAT(help, HasSubstr("Does a thing."));
    for (const char* flag : {"--config FILE", "--check-config", "--print-config", "--version", "--help, -h"}) {
      EXPECT_THAT(help, HasSubstr(flag));
    }
    for (const SettingField& setting : table.settings()) {
      EXPECT_THAT(help, HasSubstr(absl::StrCat("(", setting.path, ")\n")));
      EXPECT_THAT(help, HasSubstr(absl::StrCat("\n  ", FlagName(table, setting))));
    }
    for (const absl::string_view line : absl::StrSplit(help, '\n')) EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(HelpTest, SaysDefaultRangeUnitAndMeaning) {
  const SettingTable table(v1::ServerConfig::descriptor());
  EXPECT_THAT(HelpText({"p", "s"}, table), HasSubstr(R"(
  --steps NUMBER  (run.interval.steps)
      Inner steps between two synchronisations (H); where adaptive policies start from.
      Default: 500 steps. Takes a whole number from 1 to 1000000.
)"));
  EXPECT_THAT(HelpText({"p", "s"}, table), HasSubstr(R"(
  --insecure  (server.insecure)
)"));
}

TEST(HelpTest, Defaults) {
  const SettingTable table(v1::ServerConfig::descriptor());
  EXPECT_EQ(DefaultText(*table.Find("run.rounds.lease_seconds")), "15 seconds");
  EXPECT_EQ(DefaultText(*table.Find("run.outer.momentum")), "0.9");
  EXPECT_EQ(DefaultText(*table.Find("run.model.init_from")), "empty");
  EXPECT_EQ(DefaultText(*table.Find("server.state_dir")), "required");
}

TEST(HelpTest, Version) {
  EXPECT_THAT(VersionText({"p", "s"}), ::testing::MatchesRegex("p [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

}  // namespace
}  // namespace autoloco
