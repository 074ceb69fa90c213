#include "common/config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace autoloco {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EnvironmentTest : public ::testing::Test {
 protected:
  absl::Status ReadServer(const std::vector<std::string>& environment) {
    return ReadEnvironment(environment, worker_table_, &server_values_);
  }
  absl::Status ReadWorker(const std::vector<std::string>& environment) {
    return ReadEnvironment(environment, server_table_, &worker_values_);
  }

  const SettingTable server_table_{v1::ServerConfig::descriptor()};
  const SettingTable worker_table_{v1::WorkerConfig::descriptor()};
  v1::ServerConfig server_;
  v1::WorkerConfig worker_;
  SettingValues server_values_{&server_table_, &server_};
  SettingValues worker_values_{&worker_table_, &worker_};
};

TEST_F(EnvironmentTest, SetsValues) {
  ASSERT_TRUE(ReadServer({"PATH=/bin", "AUTOLOCO__RUN__OUTER__LEARNING_RATE=0.5", "AUTOLOCO__SERVER__STATE_DIR=/s=t",
                          "AUTOLOCO__SERVER__METRICS_LISTEN="})
                  .ok());
  EXPECT_EQ(server_.run().outer().learning_rate(), 0.5);
  EXPECT_EQ(server_.server().state_dir(), "/s=t");
  EXPECT_TRUE(server_.server().has_metrics_listen());
  EXPECT_EQ(server_.server().metrics_listen(), "");
  EXPECT_FALSE(server_.run().has_seed());
  EXPECT_EQ(server_values_.Origin("run.outer.learning_rate"),
            "environment variable AUTOLOCO__RUN__OUTER__LEARNING_RATE");
}

TEST_F(EnvironmentTest, PassesOverForeignNames) {
  EXPECT_TRUE(ReadServer({"AUTOLOCO_SERVER_PORT=tcp://10.0.0.1:7070", "AUTOLOCO_UPDATE_GOLDEN=1", "AUTOLOCO__SERVER",
                          "AUTOLOCO__WORKER__DATA=/data", "autoloco__run__seed=x"})
                  .ok());
  EXPECT_FALSE(server_.has_run());
  EXPECT_TRUE(ReadWorker({"AUTOLOCO__SERVER__LISTEN=0.0.0.0:1", "AUTOLOCO__RUN__SEED=not looked at"}).ok());
  EXPECT_FALSE(worker_.has_worker());
}

TEST_F(EnvironmentTest, RefusesUnknownNamesWithTheNearest) {
  EXPECT_THAT(std::string(ReadServer({"AUTOLOCO__RUN__OUTER__LERNING_RATE=0.5"}).message()),
              AllOf(HasSubstr("environment variable 'AUTOLOCO__RUN__OUTER__LERNING_RATE'"),
                    HasSubstr("did you mean AUTOLOCO__RUN__OUTER__LEARNING_RATE?")));
  EXPECT_THAT(std::string(ReadWorker({"AUTOLOCO__NONSENSE=1"}).message()),
              AllOf(HasSubstr("environment variable 'AUTOLOCO__NONSENSE'"), HasSubstr("expected the name of a setting"),
                    HasSubstr("AUTOLOCO__WORKER__SERVER")));
}

TEST_F(EnvironmentTest, RefusesBadValues) {
  EXPECT_EQ(ReadServer({"AUTOLOCO__RUN__ROUNDS__MIN_WORKERS=two"}).message(),
            "environment variable AUTOLOCO__RUN__ROUNDS__MIN_WORKERS: run.rounds.min_workers: expected a whole number "
            "from 1 to 65536, found 'two'");
}

TEST_F(EnvironmentTest, NamesAreUniqueOverBothPrograms) {
  std::set<std::string> names;
  for (const SettingTable* table : {&server_table_, &worker_table_}) {
    for (const SettingField& setting : table->settings()) {
      EXPECT_TRUE(names.insert(setting.environment).second) << setting.environment;
    }
  }
}

TEST_F(EnvironmentTest, ProcessEnvironmentHasNamesAndValues) {
  const std::vector<std::string> environment = ProcessEnvironment();
  EXPECT_THAT(environment, ::testing::Contains(::testing::StartsWith("PATH=")));
}

}  // namespace
}  // namespace autoloco
