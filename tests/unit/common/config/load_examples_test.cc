// The config files of deploy/examples load, without a warning.
#include <gtest/gtest.h>

#include "common/config/load.h"

namespace autoloco {
namespace {

TEST(LoadExamplesTest, ServerFileLoads) {
  v1::ServerConfig config;
  const Outcome outcome =
      LoadServerConfig({"--config", AUTOLOCO_SOURCE_DIR "/deploy/examples/server.yaml"}, {}, &config);
  EXPECT_FALSE(outcome.exits);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(config.run().name(), "example");
}

TEST(LoadExamplesTest, QuickstartFileLoads) {
  v1::ServerConfig config;
  const Outcome outcome = LoadServerConfig(
      {"--config", AUTOLOCO_SOURCE_DIR "/deploy/examples/quickstart.yaml", "--state-dir=/s"}, {}, &config);
  EXPECT_FALSE(outcome.exits);
  EXPECT_EQ(outcome.err, "");
}

TEST(LoadExamplesTest, WorkerFileLoads) {
  v1::WorkerConfig config;
  const Outcome outcome =
      LoadWorkerConfig({"--config", AUTOLOCO_SOURCE_DIR "/deploy/examples/worker.yaml"}, {}, &config);
  EXPECT_FALSE(outcome.exits);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace autoloco
