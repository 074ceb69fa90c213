#include "server/telemetry/metric_catalogue.h"

#include <cstddef>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricCatalogueTest, StandsInTheOrderOfTheEnum) {
  std::size_t index = 0;
  for (const MetricSpec& spec : MetricCatalogue()) {
    EXPECT_EQ(static_cast<std::size_t>(spec.metric), index++) << spec.name;
    EXPECT_STREQ(SpecOf(spec.metric).name, spec.name);
  }
  EXPECT_EQ(index, static_cast<std::size_t>(Metric::kProcessStartTime) + 1);
}

TEST(MetricCatalogueTest, NamesFollowPrometheusCustom) {
  std::set<std::string> names;
  for (const MetricSpec& spec : MetricCatalogue()) {
    const std::string name = spec.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(name, ::testing::MatchesRegex("(autoloco|grpc_server|process)_[a-z_]+"));
    EXPECT_THAT(std::string(spec.help), EndsWith(".")) << name;
    if (spec.type == MetricType::kCounter) {
      EXPECT_THAT(name, EndsWith("_total"));
    } else {
      EXPECT_THAT(name, Not(EndsWith("_total")));
    }
    if (std::string(spec.unit) == "seconds" || std::string(spec.unit) == "bytes") {
      EXPECT_THAT(name, HasSubstr(std::string("_") + spec.unit));
    }
    for (const char* prefixed : {"_ms", "milli", "kilo", "mega", "_mb", "percent"}) {
      EXPECT_THAT(name, Not(HasSubstr(prefixed)));
    }
    EXPECT_TRUE(spec.type != MetricType::kHistogram || std::string(spec.unit) == "seconds") << name;
  }
}

TEST(MetricCatalogueTest, LabelsComeFromAClosedList) {
  const std::set<std::string> allowed = {
      "version", "commit", "run_id", "model",     "codec",        "broadcast_codec", "outcome",   "state",
      "worker",  "kind",   "reason", "direction", "grpc_service", "grpc_method",     "grpc_code", "fate"};
  for (const MetricSpec& spec : MetricCatalogue()) {
    for (std::size_t index = 0; index < spec.label_count(); ++index) {
      EXPECT_EQ(allowed.count(spec.labels[index]), 1u) << spec.name << " " << spec.labels[index];
    }
  }
}

TEST(MetricCatalogueTest, BucketsRise) {
  double before = 0;
  for (const double bound : SecondsBuckets()) {
    EXPECT_GT(bound, before);
    before = bound;
  }
  EXPECT_EQ(before, 3600);
}

}  // namespace
}  // namespace autoloco::server
