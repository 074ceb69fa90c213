#include "server/ctl/rounds_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace autoloco::server {
namespace {

v1::Rounds Sample() {
  v1::Rounds rounds;
  rounds.set_rounds_committed(2);
  v1::RoundRecord* round = rounds.add_rounds();
  round->set_round(0);
  round->set_inner_steps(20);
  round->set_interval(20);
  round->set_reason("warmup");
  round->set_learning_rate(2e-5);
  round->set_ratio(1);
  round->set_plain(true);
  round->set_assigned(1);
  round->set_contributors(1);
  round = rounds.add_rounds();
  round->set_round(1);
  round->set_first_inner_step(20);
  round->set_inner_steps(27);
  round->set_interval(26.666666666666668);
  round->set_reason("learning_rate");
  round->set_learning_rate(3e-3);
  round->set_ratio(0.95);
  round->set_a(1.85);
  round->set_assigned(8);
  round->set_contributors(7);
  round->set_loss_mean(2.125);
  round->set_agreement(0.1 + 0.2);
  round->set_noise_steps(63);
  round->set_mean_delta_norm(1.5);
  round->set_seconds(12);
  return rounds;
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

TEST(RoundsTextTest, TableHasALineARound) {
  const std::vector<std::string> lines = Lines(RoundsTable(Sample()));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0],
            "ROUND  FROM STEP  INTERVAL   RATE      R  CORRECTION  WORKERS   LOSS  AGREEMENT  NOISE STEPS  DELTA  "
            "SECONDS  REASON");
  EXPECT_EQ(lines[1],
            "    0          0        20  2e-05  1.000       plain      1/1      -          -            -      0      "
            "0.0  warmup");
  EXPECT_EQ(lines[2],
            "    1         20        27  0.003  0.950       1.850      7/8  2.125        0.3           63    1.5     "
            "12.0  learning_rate");
}

TEST(RoundsTextTest, CsvHasEveryFieldAndReadsBack) {
  const std::vector<std::string> lines = Lines(RoundsCsv(Sample()));
  ASSERT_EQ(lines.size(), 4u);
  const std::vector<std::string> names = absl::StrSplit(lines[0], ',');
  const std::vector<std::string> first = absl::StrSplit(lines[1], ',');
  const std::vector<std::string> second = absl::StrSplit(lines[2], ',');
  ASSERT_EQ(names.size(), static_cast<std::size_t>(v1::RoundRecord::descriptor()->field_count()));
  ASSERT_EQ(first.size(), names.size());
  ASSERT_EQ(second.size(), names.size());
  const auto column = [&names](const std::string& name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_EQ(second[column("inner_steps")], "27");
  EXPECT_EQ(std::stod(second[column("interval")]), 26.666666666666668);
  EXPECT_EQ(std::stod(second[column("agreement")]), 0.1 + 0.2);
  EXPECT_EQ(second[column("reason")], "learning_rate");
  EXPECT_EQ(second[column("plain")], "false");
  EXPECT_EQ(first[column("agreement")], "");  // undefined
  EXPECT_EQ(first[column("plain")], "true");
}

TEST(RoundsTextTest, JsonIsOneObject) {
  const nlohmann::json object = nlohmann::json::parse(*RoundsJson(Sample()));
  ASSERT_EQ(object["rounds"].size(), 2u);
  EXPECT_EQ(object["rounds"][1]["inner_steps"], 27);
  EXPECT_EQ(object["rounds"][1]["agreement"], 0.1 + 0.2);
  EXPECT_FALSE(object["rounds"][0].contains("agreement"));
  EXPECT_EQ(object["rounds_committed"], "2");
}

}  // namespace
}  // namespace autoloco::server
