#include "server/storage/checkpoint_manifest.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

RoundRecord SampleRecord() {
  RoundRecord record;
  record.round = 2;
  record.first_inner_step = 50;
  record.inner_steps = 25;
  record.interval = 25.25;
  record.reason = Reason::kAgreement;
  record.learning_rate = 4e-3;
  record.momentum_scale = 0.5;
  record.final_average = true;
  record.learning_rate_sum = 0.1;
  record.ratio = 0.75;
  record.factors = {1.9, 0.8, 0.7, 1.1, false};
  record.assigned = 8;
  record.contributors = 7;
  record.worker_steps = 175;
  record.tokens = std::numeric_limits<std::uint64_t>::max();
  record.loss_mean = 2.25;
  record.loss_last = 1.5;  // loss_first: undefined
  record.gradient_norm = 0.5;
  record.step_seconds = 1e-9;
  record.mean_delta_norm = 3;
  record.momentum_norm = 4;
  record.parameter_norm = 5;
  record.statistics = {1.5, 0.5, 0.25, -0.125, 0.3, 60, 0.05};
  record.seconds = 12.5;
  return record;
}

CheckpointManifest Sample() {
  CheckpointManifest manifest;
  manifest.run_id = "run-01234567";
  manifest.written_at = "2026-01-31T12:00:00Z";
  manifest.snapshot.version = 3;
  manifest.snapshot.inner_steps_done = 75;
  manifest.snapshot.next_sample = std::numeric_limits<std::uint64_t>::max();
  manifest.snapshot.next_sample_by_worker = {{"w1", 7}, {"w2", 0}};
  manifest.snapshot.next_incarnation = 5;
  manifest.snapshot.rounds_aborted = 2;
  manifest.snapshot.worker_inner_steps = 150;
  manifest.snapshot.evaluations = {{0, 0, 5.5, 1000}, {1, 25, std::nan(""), 1000}, {2, 50, -INFINITY, 0}};
  manifest.snapshot.interval.factor = 1.25;
  manifest.snapshot.interval.average = -0.25;
  manifest.snapshot.interval.losses = {2.5, 2.25};
  manifest.snapshot.history = {SampleRecord(), RoundRecord()};
  manifest.layout = *Layout::Make({{"a", {2, 3}}, {"b", {4}}});
  manifest.params_digest = "00ff";
  manifest.view_digest = "11ff";
  manifest.has_view = true;
  manifest.momentum_digest = "ff00";
  manifest.all_finite = false;
  manifest.files = {{"params.safetensors", 123, "abcd"}};
  return manifest;
}

TEST(CheckpointManifestTest, ComesBackAsItWas) {
  CheckpointManifest want = Sample();
  want.snapshot.evaluations[0].loss = 0.1 + 0.2;
  want.snapshot.interval.average = -0.1 - 0.2;
  want.snapshot.interval.losses.push_back(1.0 / 3);
  want.snapshot.history[0].interval = 25 + 1.0 / 3;
  want.snapshot.history[0].statistics.path = 1.0 / 9;
  const auto got = ParseManifest(ManifestText(want));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->run_id, want.run_id);
  EXPECT_EQ(got->written_at, want.written_at);
  EXPECT_EQ(got->snapshot.version, 3u);
  EXPECT_EQ(got->snapshot.inner_steps_done, 75u);
  EXPECT_EQ(got->snapshot.next_sample, want.snapshot.next_sample);
  EXPECT_EQ(got->snapshot.next_sample_by_worker, want.snapshot.next_sample_by_worker);
  EXPECT_EQ(got->snapshot.next_incarnation, 5u);
  EXPECT_EQ(got->snapshot.rounds_aborted, 2u);
  EXPECT_EQ(got->snapshot.worker_inner_steps, 150u);
  ASSERT_EQ(got->snapshot.evaluations.size(), 3u);
  EXPECT_EQ(got->snapshot.evaluations[0].loss, 0.1 + 0.2);
  EXPECT_EQ(got->snapshot.evaluations[0].tokens, 1000u);
  EXPECT_TRUE(std::isnan(got->snapshot.evaluations[1].loss));
  EXPECT_EQ(got->snapshot.evaluations[1].inner_step, 25u);
  EXPECT_EQ(got->snapshot.evaluations[2].loss, -INFINITY);
  EXPECT_EQ(got->snapshot.interval, want.snapshot.interval);
  EXPECT_EQ(got->snapshot.history, want.snapshot.history);  // bit for bit
  EXPECT_EQ(FirstDifference(want.layout, got->layout), "");
  EXPECT_EQ(got->params_digest, "00ff");
  EXPECT_EQ(got->view_digest, "11ff");
  EXPECT_TRUE(got->has_view);
  EXPECT_EQ(got->momentum_digest, "ff00");
  EXPECT_FALSE(got->all_finite);
  ASSERT_EQ(got->files.size(), 1u);
  EXPECT_EQ(got->files[0].name, "params.safetensors");
  EXPECT_EQ(got->files[0].bytes, 123u);
  EXPECT_EQ(got->files[0].digest, "abcd");
  EXPECT_EQ(ManifestText(*got), ManifestText(want));
}

TEST(CheckpointManifestTest, EveryTruncationIsNoticed) {
  const std::string text = ManifestText(Sample());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_EQ(ParseManifest(text.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST(CheckpointManifestTest, AnyChangedValueIsNoticed) {
  const std::string text = ManifestText(Sample());
  for (std::size_t index = 0; index < text.size(); ++index) {
    std::string damaged = text;
    damaged[index] = static_cast<char>(damaged[index] ^ 1);
    const auto parsed = ParseManifest(damaged);
    EXPECT_FALSE(parsed.ok()) << index << " '" << text[index] << "' in ..." << text.substr(index, 20);
  }
}

// What somebody could write who also makes the digest fit.
class HostileManifestTest : public ::testing::Test {
 protected:
  static absl::Status ParseChanged(const std::string& from, const std::string& to) {
    std::string text = ManifestText(Sample());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return ParseManifest(WithDigest(text)).status();
  }

 private:
  static std::string WithDigest(const std::string& text) {
    nlohmann::json manifest = nlohmann::json::parse(text);
    manifest.erase("digest");
    const std::string rest = manifest.dump();
    manifest["digest"] = Digest128(std::as_bytes(std::span<const char>(rest)));
    return manifest.dump();
  }
};

TEST_F(HostileManifestTest, TheWrongTypesAreNamed) {
  EXPECT_THAT(std::string(ParseChanged("\"version\":3", "\"version\":-3").message()), HasSubstr("version: want"));
  EXPECT_THAT(std::string(ParseChanged("\"version\":3", "\"vision\":3").message()), HasSubstr("no version"));
  EXPECT_THAT(std::string(ParseChanged("\"run_id\": \"run-01234567\"", "\"run_id\": 1").message()),
              HasSubstr("run_id: want text"));
  EXPECT_THAT(std::string(ParseChanged("\"all_finite\": false", "\"all_finite\": 0").message()),
              HasSubstr("all_finite: want true or false"));
  EXPECT_THAT(std::string(ParseChanged("\"loss\":\"nan\"", "\"loss\":\"none\"").message()), HasSubstr("loss: want"));
  EXPECT_THAT(std::string(ParseChanged("[2,3]", "[2,\"3\"]").message()), HasSubstr("layout: "));
  EXPECT_THAT(std::string(ParseChanged("[2,3]", "[4294967296,4294967296]").message()), HasSubstr("layout: "));
  EXPECT_THAT(std::string(ParseChanged("[2,3]", "[3,2]").message()), HasSubstr("layout_hash"));
  EXPECT_THAT(std::string(ParseChanged("{\"w1\":7,\"w2\":0}", "[]").message()), HasSubstr("want an object"));
}

TEST_F(HostileManifestTest, FileNamesStayInTheFolder) {
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "", "..", ".", "a/b", "a\\u0000b"}) {
    EXPECT_THAT(std::string(ParseChanged("params.safetensors", name).message()), HasSubstr("names inside")) << name;
  }
}

TEST_F(HostileManifestTest, AnotherFormatIsNotDamage) {
  const absl::Status status = ParseChanged("\"format\": 3", "\"format\": 4");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "format 4; this program reads format 3");
}

TEST(CheckpointManifestTest, GarbageIsNoManifest) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("null"), std::string("{}"), std::string("{\"digest\":\"x\"}"),
        std::string("{\"digest\":7}"), std::string(100000, '['), std::string("\xff\xfe{}")}) {
    EXPECT_EQ(ParseManifest(text).status().code(), absl::StatusCode::kDataLoss) << text.substr(0, 20);
  }
}

TEST(CheckpointManifestTest, ReadingNamesTheFile) {
  const TempFolder temp;
  EXPECT_EQ(ReadManifest(temp.File("manifest.json")).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(temp.File("manifest.json"), "{").ok());
  const absl::Status status = ReadManifest(temp.File("manifest.json")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(temp.File("manifest.json")));
}

}  // namespace
}  // namespace autoloco::server
