#include "common/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex.h>

#include <set>

#include "common/config/value.h"

namespace autoloco {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Paths(const std::vector<const SettingField*>& settings) {
  std::vector<std::string> paths;
  for (const SettingField* setting : settings) paths.push_back(setting->path);
  return paths;
}

class SettingsTest : public ::testing::Test {
 protected:
  const SettingTable server_{v1::ServerConfig::descriptor()};
  const SettingTable worker_{v1::WorkerConfig::descriptor()};
};

TEST_F(SettingsTest, PathsFollowTheDeclaration) {
  EXPECT_EQ(server_.settings().front().path, "run.name");
  EXPECT_THAT(server_.settings().back().path, ::testing::StartsWith("server."));
  EXPECT_EQ(worker_.settings().front().path, "worker.server");
  const SettingField* setting = server_.Find("run.outer.learning_rate");
  ASSERT_NE(setting, nullptr);
  EXPECT_EQ(setting->environment, "AUTOLOCO__RUN__OUTER__LEARNING_RATE");
  EXPECT_EQ(setting->fields.size(), 3u);
  EXPECT_EQ(setting->declared.default_(), "0.7");
  EXPECT_EQ(server_.Find("run.outer"), nullptr);
  EXPECT_EQ(server_.Find("worker.server"), nullptr);
}

TEST_F(SettingsTest, EveryDeclarationIsComplete) {
  std::set<std::string> paths;
  for (const SettingTable* table : {&server_, &worker_}) {
    for (const SettingField& setting : table->settings()) {
      SCOPED_TRACE(setting.path);
      EXPECT_TRUE(paths.insert(setting.path).second);
      EXPECT_FALSE(setting.declared.help().empty());
      EXPECT_EQ(setting.declared.help().back(), '.');
      EXPECT_TRUE(setting.is_text() || setting.declared.required() || !setting.declared.default_().empty());
      EXPECT_FALSE(setting.declared.required() && !setting.declared.default_().empty());
      regex_t regex;
      EXPECT_EQ(regcomp(&regex, setting.declared.pattern().c_str(), REG_EXTENDED), 0);
      regfree(&regex);
      if (setting.leaf()->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_ENUM) {
        EXPECT_THAT(setting.leaf()->enum_type()->FindValueByNumber(0)->name(), ::testing::EndsWith("_UNSPECIFIED"));
      }
    }
  }
}

TEST_F(SettingsTest, EveryDefaultIsTakenAndReadsBack) {
  for (const SettingTable* table : {&server_, &worker_}) {
    v1::ServerConfig server;
    v1::WorkerConfig worker;
    google::protobuf::Message* root = &server;
    if (table == &worker_) root = &worker;
    for (const SettingField& setting : table->settings()) {
      if (setting.declared.required()) continue;
      SCOPED_TRACE(setting.path);
      const absl::Status set = SetFromText(setting, setting.declared.default_(), root);
      EXPECT_TRUE(set.ok()) << set;
      EXPECT_TRUE(IsGiven(setting, *root));
    }
  }
}

TEST_F(SettingsTest, FillDefaultsKeepsWhatIsGiven) {
  v1::ServerConfig config;
  SettingValues values(&server_, &config);
  ASSERT_TRUE(values.Set(*server_.Find("server.state_dir"), "/s", "flag --state-dir").ok());
  ASSERT_TRUE(values.Set(*server_.Find("run.outer.learning_rate"), "0.5", "a").ok());
  ASSERT_TRUE(values.Set(*server_.Find("run.outer.learning_rate"), "0.25", "b").ok());
  ASSERT_TRUE(values.FillDefaults().ok());
  EXPECT_EQ(config.run().outer().learning_rate(), 0.25);
  EXPECT_EQ(config.run().outer().momentum(), 0.9);
  EXPECT_EQ(config.run().total_inner_steps(), 1000u);
  EXPECT_EQ(config.run().inner().schedule(), v1::InnerConfig::SCHEDULE_COSINE);
  EXPECT_TRUE(config.run().outer().nesterov());
  EXPECT_TRUE(config.run().model().has_init_from());
  EXPECT_EQ(values.Origin("run.outer.learning_rate"), "b");
  EXPECT_EQ(values.Origin("run.outer.momentum"), "");
  for (const SettingField& setting : server_.settings()) EXPECT_TRUE(IsGiven(setting, config)) << setting.path;
}

TEST_F(SettingsTest, MissingRequiredSettingSaysHowToGiveIt) {
  v1::WorkerConfig config;
  SettingValues values(&worker_, &config);
  EXPECT_THAT(std::string(values.FillDefaults().message()),
              AllOf(HasSubstr("worker.data: required"), HasSubstr("--data"), HasSubstr("AUTOLOCO__WORKER__DATA")));
}

TEST_F(SettingsTest, SetNamesOriginKeyAndExpectation) {
  v1::ServerConfig config;
  SettingValues values(&server_, &config);
  EXPECT_EQ(values.Set(*server_.Find("run.outer.momentum"), "1", "flag --momentum").message(),
            "flag --momentum: run.outer.momentum: expected a number at least 0 and below 1, found '1'");
  EXPECT_EQ(values.Origin("run.outer.momentum"), "");
}

TEST_F(SettingsTest, FlagsMayBeEndings) {
  EXPECT_THAT(Paths(FindByFlag(server_, "run.rounds.min_workers")), ElementsAre("run.rounds.min_workers"));
  EXPECT_THAT(Paths(FindByFlag(server_, "rounds.min-workers")), ElementsAre("run.rounds.min_workers"));
  EXPECT_THAT(Paths(FindByFlag(server_, "min-workers")), ElementsAre("run.rounds.min_workers"));
  EXPECT_THAT(Paths(FindByFlag(server_, "learning-rate")),
              ElementsAre("run.inner.learning_rate", "run.outer.learning_rate"));
  EXPECT_THAT(Paths(FindByFlag(server_, "name")), ElementsAre("run.name"));
  EXPECT_THAT(Paths(FindByFlag(server_, "workers")), ElementsAre());
  EXPECT_THAT(Paths(FindByFlag(server_, "")), ElementsAre());
}

TEST_F(SettingsTest, FlagNamesMeanTheirSettingOnly) {
  EXPECT_EQ(FlagName(server_, *server_.Find("server.state_dir")), "--state-dir");
  EXPECT_EQ(FlagName(server_, *server_.Find("run.outer.learning_rate")), "--outer.learning-rate");
  for (const SettingTable* table : {&server_, &worker_}) {
    for (const SettingField& setting : table->settings()) {
      EXPECT_THAT(Paths(FindByFlag(*table, FlagName(*table, setting).substr(2))), ElementsAre(setting.path));
    }
  }
}

}  // namespace
}  // namespace autoloco
