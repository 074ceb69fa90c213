#include "common/config/docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "autoloco/v1/run_config.pb.h"
#include "common/config/environment.h"
#include "common/config/settings.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;

TEST(SettingsDocTest, CommittedFileIsCurrent) {
  const std::string path = AUTOLOCO_SOURCE_DIR "/deploy/SETTINGS.md";
  const std::vector<std::string> environment = ProcessEnvironment();
  if (std::find(environment.begin(), environment.end(), "AUTOLOCO_UPDATE_GOLDEN=1") != environment.end()) {
    std::ofstream(path) << SettingsMarkdown();
  }
  std::ostringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(committed.str(), SettingsMarkdown())
      << "deploy/SETTINGS.md is out of step with run_config.proto; run AUTOLOCO_UPDATE_GOLDEN=1 with this test";
}

TEST(SettingsDocTest, HasARowForEverySetting) {
  const std::string text = SettingsMarkdown();
  for (const auto* root : {v1::ServerConfig::descriptor(), v1::WorkerConfig::descriptor()}) {
    const SettingTable table(root);
    for (const SettingField& setting : table.settings()) {
      EXPECT_THAT(text, HasSubstr("| `" + setting.path + "` |"));
    }
  }
  EXPECT_THAT(text, HasSubstr("text matching auto\\|cpu\\|cuda(:[0-9]+)?"));
}

}  // namespace
}  // namespace autoloco
