#include "worker/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace autoloco::worker {
namespace {

using ::testing::HasSubstr;

void Write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// Text in which every four bytes tell where they stand.
std::string NumberedText(std::size_t size) {
  std::string text;
  for (std::uint32_t i = 0; text.size() < size; ++i) {
    for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(i >> shift & 0xff));
  }
  text.resize(size);
  return text;
}

std::vector<std::int32_t> TokensOf(const std::string& text, std::size_t begin, std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = begin; i < begin + count; ++i) tokens.push_back(static_cast<unsigned char>(text[i]));
  return tokens;
}

std::vector<std::int32_t> Sample(const Dataset& dataset, std::uint64_t index, std::uint32_t context) {
  std::vector<std::int32_t> tokens(context + 1);
  dataset.ReadSample(index, tokens);
  return tokens;
}

std::vector<std::int32_t> HeldOut(const Dataset& dataset, std::uint64_t index, std::uint32_t context) {
  std::vector<std::int32_t> tokens(context + 1);
  dataset.ReadHeldOut(index, tokens);
  return tokens;
}

std::unique_ptr<Dataset> OpenOrDie(const DatasetConfig& config) {
  absl::StatusOr<std::unique_ptr<Dataset>> dataset = Dataset::Open(config);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return std::move(dataset).value();
}

TEST(DatasetTest, AnEpochReadsEverySampleExactlyOnce) {
  const TempFolder folder;
  const std::string text = NumberedText(1000);
  Write(folder.File("text"), text);
  const auto dataset = OpenOrDie({folder.File("text"), 8, 0.1, 7});
  EXPECT_EQ(dataset->token_count(), 1000u);
  EXPECT_EQ(dataset->sample_count(), 112u);   // (900 - 1) / 8
  EXPECT_EQ(dataset->held_out_count(), 12u);  // (100 - 1) / 8
  std::set<std::vector<std::int32_t>> want;
  for (std::size_t i = 0; i < 112; ++i) want.insert(TokensOf(text, i * 8, 9));
  ASSERT_EQ(want.size(), 112u);
  std::vector<std::vector<std::int32_t>> orders[2];
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t i = 0; i < 112; ++i) orders[epoch].push_back(Sample(*dataset, epoch * 112 + i, 8));
    EXPECT_EQ(std::set<std::vector<std::int32_t>>(orders[epoch].begin(), orders[epoch].end()), want);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
}

TEST(DatasetTest, LeasesAreDisjoint) {
  const TempFolder folder;
  Write(folder.File("text"), NumberedText(4000));
  const auto dataset = OpenOrDie({folder.File("text"), 8, 0.1, 7});
  std::set<std::vector<std::int32_t>> first;
  for (std::uint64_t i = 0; i < 200; ++i) first.insert(Sample(*dataset, i, 8));
  for (std::uint64_t i = 200; i < 400; ++i) EXPECT_FALSE(first.contains(Sample(*dataset, i, 8))) << i;
}

TEST(DatasetTest, OrderDependsOnTheSeedAlone) {
  const TempFolder folder;
  Write(folder.File("text"), NumberedText(4000));
  const auto one = OpenOrDie({folder.File("text"), 8, 0.1, 7});
  const auto same = OpenOrDie({folder.File("text"), 8, 0.1, 7});
  const auto other = OpenOrDie({folder.File("text"), 8, 0.1, 8});
  int equal = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    EXPECT_EQ(Sample(*one, i, 8), Sample(*same, i, 8));
    equal += Sample(*one, i, 8) == Sample(*other, i, 8);
  }
  EXPECT_LT(equal, 10);
  EXPECT_EQ(one->fingerprint(), other->fingerprint());
}

TEST(DatasetTest, HeldOutIsTheEndAndNoSampleTouchesIt) {
  const TempFolder folder;
  const std::string text = std::string(900, 'a') + std::string(100, 'b');
  Write(folder.File("text"), text);
  const auto dataset = OpenOrDie({folder.File("text"), 16, 0.1, 1});
  for (std::uint64_t i = 0; i < dataset->sample_count(); ++i) {
    EXPECT_THAT(Sample(*dataset, i, 16), ::testing::Each('a'));
  }
  for (std::uint64_t i = 0; i < dataset->held_out_count(); ++i) {
    EXPECT_THAT(HeldOut(*dataset, i, 16), ::testing::Each('b'));
  }
}

TEST(DatasetTest, HeldOutWindowsComeInTextOrder) {
  const TempFolder folder;
  const std::string text = NumberedText(1000);
  Write(folder.File("text"), text);
  const auto dataset = OpenOrDie({folder.File("text"), 8, 0.25, 1});
  ASSERT_EQ(dataset->held_out_count(), 31u);
  for (std::uint64_t i = 0; i < 31; ++i) EXPECT_EQ(HeldOut(*dataset, i, 8), TokensOf(text, 750 + i * 8, 9));
}

TEST(DatasetTest, AFolderIsTheConcatenationInNameOrder) {
  const TempFolder folder;
  const std::string text = NumberedText(1000);
  std::filesystem::create_directory(folder.File("b"));
  Write(folder.File("c"), text.substr(503));
  Write(folder.File("b/y"), text.substr(500, 3));  // windows span three files
  Write(folder.File("b/x"), text.substr(100, 400));
  Write(folder.File("a"), text.substr(0, 100));
  const TempFolder whole;
  Write(whole.File("text"), text);
  const auto pieces = OpenOrDie({folder.path(), 8, 0.1, 7});
  const auto one = OpenOrDie({whole.File("text"), 8, 0.1, 7});
  ASSERT_EQ(pieces->sample_count(), one->sample_count());
  for (std::uint64_t i = 0; i < one->sample_count(); ++i) EXPECT_EQ(Sample(*pieces, i, 8), Sample(*one, i, 8));
  for (std::uint64_t i = 0; i < one->held_out_count(); ++i) EXPECT_EQ(HeldOut(*pieces, i, 8), HeldOut(*one, i, 8));
}

TEST(DatasetTest, FingerprintSeesContentsAndSizesNotNames) {
  const TempFolder folder;
  const std::string text = NumberedText(1000);
  Write(folder.File("one"), text);
  Write(folder.File("two"), text);
  std::string changed = text;
  changed[500] ^= 1;
  Write(folder.File("changed"), changed);
  Write(folder.File("longer"), text + "x");
  const auto fingerprint = [&](const std::string& name) {
    return OpenOrDie({folder.File(name), 8, 0.1, 7})->fingerprint();
  };
  EXPECT_EQ(fingerprint("one"), fingerprint("two"));
  EXPECT_NE(fingerprint("one"), fingerprint("changed"));
  EXPECT_NE(fingerprint("one"), fingerprint("longer"));
}

TEST(DatasetTest, SmallestTextThatServes) {
  const TempFolder folder;
  Write(folder.File("text"), NumberedText(18));
  const auto dataset = OpenOrDie({folder.File("text"), 8, 0.5, 1});
  EXPECT_EQ(dataset->sample_count(), 1u);
  EXPECT_EQ(dataset->held_out_count(), 1u);
  EXPECT_EQ(Sample(*dataset, 0, 8), Sample(*dataset, 12345, 8));
  EXPECT_EQ(HeldOut(*dataset, 0, 8), TokensOf(NumberedText(18), 9, 9));
  Write(folder.File("all"), NumberedText(9));
  const auto no_held_out = OpenOrDie({folder.File("all"), 8, 0, 1});
  EXPECT_EQ(no_held_out->sample_count(), 1u);
  EXPECT_EQ(no_held_out->held_out_count(), 0u);
}

TEST(DatasetTest, TooShortSaysWhatIsMissing) {
  const TempFolder folder;
  Write(folder.File("text"), NumberedText(17));
  const absl::Status status = Dataset::Open({folder.File("text"), 8, 0.5, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("text")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("want at least 9 bytes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("found 9 and 8"));
}

// Ten tokens and windows of 64: an unsigned difference of the two must not wrap.
TEST(DatasetTest, AFileShorterThanOneWindowIsNamed) {
  const TempFolder folder;
  for (std::size_t bytes = 1; bytes <= 64; ++bytes) {
    Write(folder.File("text"), NumberedText(bytes));
    for (const double held_out : {0.0, 0.03, 0.5}) {
      const absl::Status status = Dataset::Open({folder.File("text"), 64, held_out, 1}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes << " bytes: " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("text")));
      EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("\n")));
    }
  }
}

TEST(DatasetTest, RefusesWhatIsNoText) {
  const TempFolder folder;
  Write(folder.File("empty"), "");
  absl::Status status = Dataset::Open({folder.File("empty"), 8, 0.1, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("empty") + ": want text, found an empty file"));

  Write(folder.File("full"), NumberedText(1000));  // an empty file among others is named as well
  status = Dataset::Open({folder.path(), 8, 0.1, 1}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("empty")));

  status = Dataset::Open({folder.File("missing"), 8, 0.1, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("missing")));

  std::filesystem::create_directory(folder.File("folder"));
  status = Dataset::Open({folder.File("folder"), 8, 0.1, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.File("folder")));

  EXPECT_EQ(Dataset::Open({"/dev/null", 8, 0.1, 1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Dataset::Open({folder.File("full"), 0, 0.1, 1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Dataset::Open({folder.File("full"), 8, 1, 1}).status().code(), absl::StatusCode::kInvalidArgument);
}

// A sparse file: what is not written takes no disk and is not read.
TEST(DatasetTest, ReadsBeyondFourGibibytes) {
  const TempFolder folder;
  const std::string path = folder.File("text");
  constexpr std::uint64_t kSize = std::uint64_t{5} << 30;
  Write(path, "begin");
  std::filesystem::resize_file(path, kSize);
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(kSize - 9).write("the end!?", 9);
  const auto dataset = OpenOrDie({path, 1024, 0.5, 1});
  EXPECT_EQ(dataset->token_count(), kSize);
  EXPECT_EQ(dataset->sample_count(), (kSize / 2 - 1) / 1024);
  const std::uint64_t last = dataset->held_out_count() - 1;
  EXPECT_EQ(last, (kSize / 2 - 1) / 1024 - 1);
  EXPECT_THAT(HeldOut(*dataset, last, 1024), ::testing::Each(0));  // its last token is the one before the last window's
  const auto fine = OpenOrDie({path, 9, 0.5, 1});
  std::vector<std::int32_t> tokens = HeldOut(*fine, fine->held_out_count() - 1, 9);
  EXPECT_THAT(tokens, ::testing::Contains('t'));
  const std::uint64_t before = dataset->fingerprint();
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(kSize - 1).write("!", 1);
  EXPECT_NE(OpenOrDie({path, 1024, 0.5, 1})->fingerprint(), before);
}

TEST(SpreadIndexTest, SpreadsEvenly) {
  EXPECT_EQ(SpreadIndex(0, 4, 10), 0u);
  EXPECT_EQ(SpreadIndex(1, 4, 10), 2u);
  EXPECT_EQ(SpreadIndex(2, 4, 10), 5u);
  EXPECT_EQ(SpreadIndex(3, 4, 10), 7u);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(SpreadIndex(i, 8, 3), i);
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 62;
  EXPECT_EQ(SpreadIndex(511, 512, kLarge), kLarge / 512 * 511);
}

}  // namespace
}  // namespace autoloco::worker
