#include "common/tensor/safetensors.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char kTwoTensors[] =
    R"({"__metadata__":{"format":"pt","step":"7"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[24,28]}})";

Layout TwoTensors() { return Layout::Make({{"a", {2, 3}}, {"b", {1}}}).value(); }

std::string FileBytes(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + data;
}

template <typename Value>
std::string DataBytes(const std::vector<Value>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

class SafetensorsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomically(path_, bytes).ok());
    return path_;
  }
  const TempFolder folder_;
  const std::string path_ = folder_.File("model.safetensors");
};

TEST_F(SafetensorsTest, WritesTheFormatToTheByte) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(SaveParameters(path_, TwoTensors(), values, {{"step", "7"}}).ok());
  std::string header = kTwoTensors;
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadFile(path_, 1000).value(), FileBytes(header, DataBytes(values)));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(SafetensorsTest, PiecesInAnyOrderGiveTheSameFile) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(SaveParameters(folder_.File("whole"), TwoTensors(), values, {{"step", "7"}}).ok());
  auto writer = SafetensorsWriter::Create(path_, TensorShapes(TwoTensors()), {{"step", "7"}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::span<const float> span(values);
  ASSERT_TRUE(writer->Write(4, span.subspan(4)).ok());
  ASSERT_TRUE(writer->Write(0, span.subspan(0, 1)).ok());
  ASSERT_TRUE(writer->Write(1, span.subspan(1, 3)).ok());
  ASSERT_TRUE(writer->Write(7, {}).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(ReadFile(path_, 1000).value(), ReadFile(folder_.File("whole"), 1000).value());
}

TEST_F(SafetensorsTest, ReadsBackWhatItWrote) {
  std::vector<float> values = {1, -2, 3e-45f, 0.0f, -0.0f, std::nanf(""), 7};
  values[3] = INFINITY;
  ASSERT_TRUE(SaveParameters(path_, TwoTensors(), values, {{"step", "7"}, {"quote\"", "\n"}}).ok());
  std::vector<float> loaded(7);
  ASSERT_TRUE(LoadParameters(path_, TwoTensors(), loaded).ok());
  EXPECT_EQ(std::memcmp(loaded.data(), values.data(), 28), 0);
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"step", "7"}, {"quote\"", "\n"}}));
  ASSERT_NE(file.Find("b"), nullptr);
  EXPECT_EQ(file.Find("b")->shape, std::vector<std::uint64_t>{1});
  EXPECT_EQ(file.Find("c"), nullptr);
}

TEST_F(SafetensorsTest, ReadsAFileWithTensorsInAnotherOrderAndUnaligned) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} )";
  Write(FileBytes(header, DataBytes<float>({7, 1, 2, 3, 4, 5, 6})));
  std::vector<float> values(7);
  ASSERT_TRUE(LoadParameters(path_, TwoTensors(), values).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(SafetensorsFile::Open(path_)->tensors().front().name, "b");
}

TEST_F(SafetensorsTest, ConvertsBf16) {
  const std::string header = R"({"b":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}})";
  Write(FileBytes(header, DataBytes<std::uint16_t>({0x3F80, 0xC020, 0x0001, 0x7F80})));
  std::vector<float> values(4);
  ASSERT_TRUE(LoadParameters(path_, Layout::Make({{"b", {4}}}).value(), values).ok());
  EXPECT_EQ(values, (std::vector<float>{1.0f, -2.5f, std::bit_cast<float>(0x00010000u), INFINITY}));
}

TEST_F(SafetensorsTest, ConvertsF16) {
  const std::string header = R"({"h":{"dtype":"F16","shape":[10],"data_offsets":[0,20]}})";
  Write(FileBytes(header, DataBytes<std::uint16_t>(
                              {0x3C00, 0xC100, 0x7BFF, 0x0400, 0x03FF, 0x0001, 0x8001, 0x8000, 0x7C00, 0x7E00})));
  std::vector<float> values(10);
  ASSERT_TRUE(LoadParameters(path_, Layout::Make({{"h", {10}}}).value(), values).ok());
  EXPECT_EQ(
      std::vector<float>(values.begin(), values.begin() + 9),
      (std::vector<float>{1.0f, -2.5f, 65504.0f, 0x1p-14f, 1023 * 0x1p-24f, 0x1p-24f, -0x1p-24f, -0.0f, INFINITY}));
  EXPECT_TRUE(std::signbit(values[7]));
  EXPECT_TRUE(std::isnan(values[9]));
}

TEST_F(SafetensorsTest, AcceptsScalarsAndEmptyTensors) {
  const std::string header = R"({"e":{"dtype":"F32","shape":[0,5],"data_offsets":[4,4]},)"
                             R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  Write(FileBytes(header, DataBytes<float>({5})));
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  std::vector<float> value(1);
  CopyValues(*file.Find("s"), value);
  EXPECT_EQ(value[0], 5.0f);
  EXPECT_EQ(file.Find("e")->count, 0u);
  CopyValues(*file.Find("e"), {});
}

TEST_F(SafetensorsTest, TensorsOfSeveralVectorsGoIntoOneFile) {
  const std::vector<float> momentum = {1, 2};
  const std::vector<float> view = {3};
  const std::vector<TensorValues> tensors = {{"momentum", {2}, momentum}, {"view", {1, 1}, view}};
  ASSERT_TRUE(WriteSafetensors(path_, tensors, {}).ok());
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  std::vector<float> got(2);
  CopyValues(*file.Find("momentum"), got);
  EXPECT_EQ(got, momentum);
  EXPECT_EQ(file.Find("view")->shape, (std::vector<std::uint64_t>{1, 1}));
}

TEST_F(SafetensorsTest, RefusesToWriteNonsense) {
  const std::vector<float> two = {1, 2};
  const auto refusal = [&](const std::vector<TensorValues>& tensors) {
    const absl::Status status = WriteSafetensors(path_, tensors, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(std::filesystem::exists(path_));
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({{"a", {3}, two}}), path_ + ": tensor a: shape (3) for 2 values");
  EXPECT_EQ(refusal({{"a", {2}, two}, {"a", {2}, two}}), path_ + ": tensor a: named twice");
  EXPECT_EQ(refusal({{"__metadata__", {2}, two}}), path_ + ": tensor __metadata__: named twice");
}

TEST_F(SafetensorsTest, LoadNamesTheFirstDifferenceAndChangesNothing) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(SaveParameters(path_, TwoTensors(), values, {}).ok());
  const auto refusal = [&](std::vector<TensorSpec> want) {
    const Layout layout = Layout::Make(std::move(want)).value();
    std::vector<float> loaded(layout.value_count(), -1.0f);
    const absl::Status status = LoadParameters(path_, layout, loaded);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(loaded, std::vector<float>(layout.value_count(), -1.0f));
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({{"a", {2, 3}}, {"b", {1}}, {"c", {1}}}), path_ + ": no tensor c");
  EXPECT_EQ(refusal({{"a", {3, 2}}, {"b", {1}}}), path_ + ": tensor a: want shape (3, 2), got (2, 3)");
  EXPECT_EQ(refusal({{"a", {2, 3}}}), path_ + ": tensor b is not part of the model");
}

TEST_F(SafetensorsTest, AMissingFileIsNamed) {
  std::vector<float> values(7);
  const absl::Status status = LoadParameters(path_, TwoTensors(), values);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

// Files that lie: an error that names the file, never a crash, no size believed.
// Without the fsync of the real writer, which would make thousands of damaged copies slow.
void WriteQuickly(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string WithLength(std::uint64_t header_bytes, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &header_bytes, 8);
  return bytes + rest;
}

class SafetensorsHostileTest : public ::testing::Test {
 protected:
  // The error of a file with these bytes; "" when it opens.
  std::string Open(const std::string& bytes) {
    WriteQuickly(path_, bytes);
    const absl::Status status = SafetensorsFile::Open(path_).status();
    if (status.ok()) return "";
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(path_ + ": "));
    return std::string(status.message());
  }
  // The same for a header with 8 bytes of data behind it.
  std::string OpenHeader(const std::string& header) { return Open(WithLength(header.size(), header + "12345678")); }

  const TempFolder folder_;
  const std::string path_ = folder_.File("x.safetensors");
};

TEST_F(SafetensorsHostileTest, Lengths) {
  EXPECT_THAT(Open(""), HasSubstr("want at least 8 bytes, got 0"));
  EXPECT_THAT(Open("1234567"), HasSubstr("want at least 8 bytes, got 7"));
  EXPECT_THAT(Open(WithLength(3, "{}")), HasSubstr("a header of 3 bytes; the file has 2"));
  EXPECT_THAT(Open(WithLength(~std::uint64_t{0}, "{}")), HasSubstr("a header of 18446744073709551615 bytes"));
  EXPECT_THAT(Open(WithLength(kSafetensorsHeaderBytesMax + 1, "{}")), HasSubstr("the limit is 100000000"));
  EXPECT_EQ(Open(WithLength(2, "{}")), "");
}

TEST_F(SafetensorsHostileTest, HeadersThatAreNotAnObject) {
  for (const char* header : {"", "{", "[]", "7", "nul", "{\"a\":}", "{} {}", "\xff\xfe", "{\"\xff\":1}"}) {
    EXPECT_THAT(OpenHeader(header), HasSubstr("the header is not a JSON object")) << header;
  }
  EXPECT_THAT(OpenHeader(std::string(100000, '[')), HasSubstr("the header is not a JSON object"));
  const std::string deep = "{\"a\":" + std::string(50000, '[') + std::string(50000, ']') + "}";
  EXPECT_THAT(OpenHeader(deep), HasSubstr("nests too deep"));
}

TEST_F(SafetensorsHostileTest, Entries) {
  const auto with = [this](const std::string& entry) { return OpenHeader("{\"a\":" + entry + "}"); };
  EXPECT_EQ(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "");
  EXPECT_THAT(with("7"), HasSubstr("tensor a: want an object"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2]})"), HasSubstr("want dtype, shape and data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"), HasSubstr("want dtype, shape and"));
  EXPECT_THAT(with(R"({"dtype":"I64","shape":[1],"data_offsets":[0,8]})"), HasSubstr("F32, BF16 or F16, got I64"));
  EXPECT_THAT(with(R"({"dtype":7,"shape":[1],"data_offsets":[0,8]})"), HasSubstr("F32, BF16 or F16, got no text"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("a shape of whole numbers"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), HasSubstr("a shape of whole numbers"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), HasSubstr("a shape of whole numbers"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), HasSubstr("two data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})"), HasSubstr("two data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":["0",8]})"), HasSubstr("two data_offsets"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("leave the data of 8 bytes"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"), HasSubstr("leave the data of 8 bytes"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
              HasSubstr("needs 4 bytes, data_offsets give 8"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), HasSubstr("want its bytes at offset 0"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), HasSubstr("take 4 bytes, the file has 8"));
}

TEST_F(SafetensorsHostileTest, ProductsThatOverflow) {
  const std::string big = "4294967296";  // 2^32; twice: 2^64, which is 0 in 64 bits
  for (const std::string& shape : {"[" + big + "," + big + "]", "[" + big + "," + big + ",2]",
                                   std::string("[4611686018427387905]"), std::string("[18446744073709551615,3]")}) {
    EXPECT_THAT(OpenHeader("{\"a\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":[0,8]}}"),
                HasSubstr("is beyond 64 bits"))
        << shape;
  }
}

TEST_F(SafetensorsHostileTest, OverlapsGapsAndDuplicates) {
  const auto entry = [](const std::string& name, int begin, int end) {
    return absl::StrCat("\"", name, R"(":{"dtype":"F32","shape":[)", (end - begin) / 4, R"(],"data_offsets":[)", begin,
                        ",", end, "]}");
  };
  EXPECT_EQ(OpenHeader("{" + entry("a", 0, 4) + "," + entry("b", 4, 8) + "}"), "");
  EXPECT_THAT(OpenHeader("{" + entry("a", 0, 8) + "," + entry("b", 4, 8) + "}"),
              HasSubstr("tensor b: want its bytes at"));
  EXPECT_THAT(OpenHeader("{" + entry("a", 0, 8) + "," + entry("b", 0, 8) + "}"),
              HasSubstr("tensor b: want its bytes at"));
  EXPECT_THAT(OpenHeader("{" + entry("a", 4, 8) + "}"), HasSubstr("tensor a: want its bytes at offset 0"));
  EXPECT_THAT(OpenHeader("{" + entry("a", 0, 4) + "," + entry("a", 4, 8) + "}"), HasSubstr("tensor a: named twice"));
  EXPECT_THAT(OpenHeader("{\"__metadata__\":7," + entry("a", 0, 8) + "}"), HasSubstr("__metadata__ is not an object"));
  EXPECT_THAT(OpenHeader("{\"__metadata__\":{\"x\":1}," + entry("a", 0, 8) + "}"),
              HasSubstr("__metadata__ x is not text"));
}

TEST_F(SafetensorsHostileTest, EveryFlippedByteAndEveryCutIsHarmless) {
  const std::vector<float> values = {1, 2, 3};
  const Layout layout = Layout::Make({{"a", {2}}, {"b", {1}}}).value();
  ASSERT_TRUE(SaveParameters(path_, layout, values, {{"k", "v"}}).ok());
  const std::string good = ReadFile(path_, 10000).value();
  std::vector<float> loaded(3);
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_NE(Open(good.substr(0, cut)), "") << cut;
  }
  const std::size_t data = good.size() - 12;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x21);
    WriteQuickly(path_, bad);
    const absl::Status status = LoadParameters(path_, layout, loaded);
    if (at >= data) {
      EXPECT_TRUE(status.ok()) << at;  // values carry no checksum in this format
    } else if (status.ok()) {
      EXPECT_EQ(loaded, values) << at;
    }
  }
}

}  // namespace
}  // namespace autoloco
