#include "tests/bench/learning/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/bench/learning/presets.h"
#include "tests/bench/learning/results_file.h"
#include "tests/support/temp_folder.h"

namespace autoloco::bench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

ArmResults Line(const std::string& method, const std::vector<double>& losses, std::uint64_t rounds) {
  ArmResults line;
  line.arm.method = method;
  line.arm.momentum = 0.9;
  for (const double loss : losses) {
    RunResult run;
    run.loss = loss;
    run.rounds = rounds;
    run.bytes_per_worker = 1000.0 * static_cast<double>(rounds);
    run.worst_jump = loss / 100;
    line.runs.push_back(run);
  }
  return line;
}

TEST(Report, MeansErrorsAndPairedDifferences) {
  const std::vector<ReportLine> lines =
      MakeReport({Line("diloco", {2.0, 2.4}, 200), Line("autoloco", {2.1, 2.5}, 100)}, 1e6);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_DOUBLE_EQ(lines[0].loss.mean, 2.2);
  EXPECT_NEAR(lines[0].loss.error, 0.2, 1e-12);  // sd 0.2828 / sqrt(2)
  EXPECT_FALSE(lines[0].to_reference.has_value());
  ASSERT_TRUE(lines[1].to_reference.has_value());
  EXPECT_NEAR(lines[1].to_reference->mean, 0.1, 1e-12);  // in both pairs: the spread of the seeds cancels
  EXPECT_NEAR(lines[1].to_reference->error, 0, 1e-12);
  EXPECT_DOUBLE_EQ(lines[1].worst_jump, 0.025);
  EXPECT_DOUBLE_EQ(lines[1].rounds, 100);
}

TEST(Report, CodedArmsAreSetAgainstTheSameMethodInFp32) {
  ArmResults coded = Line("autoloco", {2.2, 2.4}, 100);
  coded.arm.codec = Codec::kRms4;
  coded.arm.broadcast = Codec::kRms4;
  const std::vector<ReportLine> lines =
      MakeReport({Line("diloco", {1.0, 1.0}, 200), Line("autoloco", {2.0, 2.0}, 100), coded}, 1e6);
  EXPECT_EQ(lines[2].codec, "rms4 both ways");
  EXPECT_FALSE(lines[1].to_exact.has_value());
  ASSERT_TRUE(lines[2].to_exact.has_value());
  EXPECT_NEAR(*lines[2].to_exact, 0.15, 1e-12);
  EXPECT_NEAR(json::parse(ReportJson(lines)).at(2).at("relative_to_fp32").get<double>(), 0.15, 1e-12);
}

TEST(Report, JsonHasTheFieldsThatProgramsRead) {
  const std::vector<ReportLine> lines = MakeReport({Line("diloco", {2.0, 2.4}, 200)}, 1e6);
  const json object = json::parse(ReportJson(lines)).at(0);
  EXPECT_EQ(object.at("method"), "diloco");
  EXPECT_EQ(object.at("data"), "iid");
  EXPECT_EQ(object.at("codec"), "fp32");
  EXPECT_EQ(object.at("seeds"), 2);
  EXPECT_DOUBLE_EQ(object.at("loss_mean").get<double>(), 2.2);
  EXPECT_GT(object.at("loss_se").get<double>(), 0);
  EXPECT_EQ(object.at("rounds"), 200);
  EXPECT_EQ(object.at("bytes_per_worker"), 200000);
  EXPECT_EQ(object.at("data_parallel_bytes"), 1e6);
  EXPECT_DOUBLE_EQ(object.at("worst_jump").get<double>(), 0.024);
}

TEST(Report, ADivergedRunShowsAndBreaksNothing) {
  const double infinite = std::numeric_limits<double>::infinity();
  const std::vector<ReportLine> lines =
      MakeReport({Line("diloco", {2.0, 2.4}, 200), Line("autoloco", {2.0, infinite}, 100)}, 1e6);
  EXPECT_TRUE(json::parse(ReportJson(lines)).at(1).at("loss_mean").is_null());
  EXPECT_THAT(ReportTable(lines), HasSubstr("inf"));
  EXPECT_THAT(ReportSvg(lines), HasSubstr("diloco"));
  EXPECT_THAT(ReportCsv(lines), HasSubstr("\"diloco\",iid,cosine,fp32,0.9,2,2.200000"));
}

TEST(ResultsFile, GoesOnAfterALineThatWasCutOff) {
  const TempFolder folder;
  const std::string path = folder.File("results");
  RunResult result;
  result.loss = 1.25;
  result.rounds = 7;
  result.losses = {2, 1.5F};
  {
    ResultsFile file;
    ASSERT_TRUE(file.Open(path).ok());
    ASSERT_TRUE(file.Add("one", result).ok());
  }
  std::ofstream(path, std::ios::app) << "{\"run\": \"two\", \"lo";
  result.loss = std::numeric_limits<double>::infinity();
  {
    ResultsFile file;
    ASSERT_TRUE(file.Open(path).ok());
    EXPECT_EQ(file.Find("two"), nullptr);
    ASSERT_TRUE(file.Add("three", result).ok());
  }
  ResultsFile file;
  ASSERT_TRUE(file.Open(path).ok());
  ASSERT_NE(file.Find("one"), nullptr);
  EXPECT_EQ(file.Find("one")->loss, 1.25);
  EXPECT_EQ(file.Find("one")->losses, result.losses);
  ASSERT_NE(file.Find("three"), nullptr);
  EXPECT_TRUE(std::isinf(file.Find("three")->loss));
  std::ofstream(path) << "no result\n";
  ResultsFile other;
  EXPECT_FALSE(other.Open(path).ok());
}

TEST(Runner, TakesWhatTheSelectedArmsNeed) {
  const std::vector<Arm> all = MakePreset("claim")->arms;
  std::vector<Arm> selected;
  for (const Arm& arm : all) {
    if (arm.method == "random, autoloco's rounds" && arm.schedule == Schedule::kWsd) selected.push_back(arm);
  }
  ASSERT_EQ(selected.size(), 1U);
  std::vector<std::string> methods;
  for (const Arm& arm : WithNeededArms(selected, all)) {
    EXPECT_EQ(arm.schedule, Schedule::kWsd);
    methods.push_back(arm.method);
  }
  EXPECT_THAT(methods, testing::ElementsAre("diloco, mu 0.7", "diloco, mu 0.8", "diloco, mu 0.9", "diloco, mu 0.95",
                                            "autoloco", "random, autoloco's rounds"));
}

TEST(Presets, RunsThatDifferAreDescribedDifferently) {
  const Preset preset = MakePreset("claim").value();
  const std::string plain = DescribeRun(preset.settings, preset.arms[0], 1);
  EXPECT_NE(plain, DescribeRun(preset.settings, preset.arms[0], 2));
  for (std::size_t i = 1; i < preset.arms.size(); ++i) {
    EXPECT_NE(plain, DescribeRun(preset.settings, preset.arms[i], 1)) << preset.arms[i].method;
  }
  EXPECT_FALSE(MakePreset("large").ok());
}

}  // namespace
}  // namespace autoloco::bench
