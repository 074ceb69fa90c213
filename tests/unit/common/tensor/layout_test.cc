#include "common/tensor/layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

Layout MakeLayout(std::vector<TensorSpec> tensors) { return Layout::Make(std::move(tensors)).value(); }

std::string RefusalOf(std::vector<TensorSpec> tensors) {
  const absl::Status status = Layout::Make(std::move(tensors)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(LayoutTest, PlacesTensorsWithoutGaps) {
  const Layout layout = MakeLayout({{"a", {2, 3}}, {"b", {1}}, {"c", {4, 1, 2}}});
  ASSERT_EQ(layout.tensors().size(), 3u);
  EXPECT_EQ(layout.value_count(), 15u);
  EXPECT_EQ(layout.tensors()[1].offset, 6u);
  EXPECT_EQ(layout.tensors()[1].count, 1u);
  EXPECT_EQ(layout.tensors()[2].offset, 7u);
  EXPECT_EQ(layout.tensors()[2].count, 8u);
}

TEST(LayoutTest, FindsTheTensorOfAValue) {
  const Layout layout = MakeLayout({{"a", {2, 3}}, {"b", {1}}, {"c", {8}}});
  EXPECT_EQ(layout.TensorAt(0).spec.name, "a");
  EXPECT_EQ(layout.TensorAt(5).spec.name, "a");
  EXPECT_EQ(layout.TensorAt(6).spec.name, "b");
  EXPECT_EQ(layout.TensorAt(7).spec.name, "c");
  EXPECT_EQ(layout.TensorAt(14).spec.name, "c");
}

// The hash is over exactly these bytes, on every machine.
TEST(LayoutTest, HashesTheSerializedForm) {
  const std::string bytes(
      "\x02\0\0\0"
      "\x01\0\0\0a\x02\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
      "\x02\0\0\0bc\x01\0\0\0\x00\x01\0\0\0\0\0\0",
      4 + 25 + 18);
  const Layout layout = MakeLayout({{"a", {2, 3}}, {"bc", {256}}});
  EXPECT_EQ(layout.hash(), Hash64(std::as_bytes(std::span<const char>(bytes))));
}

TEST(LayoutTest, EveryDifferenceChangesTheHash) {
  const std::uint64_t hash = MakeLayout({{"a", {2, 3}}, {"b", {6}}}).hash();
  EXPECT_EQ(MakeLayout({{"a", {2, 3}}, {"b", {6}}}).hash(), hash);
  EXPECT_NE(MakeLayout({{"a", {3, 2}}, {"b", {6}}}).hash(), hash);
  EXPECT_NE(MakeLayout({{"b", {6}}, {"a", {2, 3}}}).hash(), hash);
  EXPECT_NE(MakeLayout({{"a", {2, 3}}, {"c", {6}}}).hash(), hash);
  EXPECT_NE(MakeLayout({{"a", {2, 3}}}).hash(), hash);
}

TEST(LayoutTest, NothingIsALayout) {
  EXPECT_EQ(Layout().value_count(), 0u);
  EXPECT_EQ(MakeLayout({}).hash(), Layout().hash());
}

TEST(LayoutTest, RefusesBadNames) {
  EXPECT_EQ(RefusalOf({{"", {1}}}), "tensor 0: want a name of 1 to 256 bytes, got 0");
  EXPECT_EQ(RefusalOf({{std::string(257, 'x'), {1}}}), "tensor 0: want a name of 1 to 256 bytes, got 257");
  EXPECT_EQ(RefusalOf({{"ok", {1}}, {"a\n", {1}}}), "tensor 1: want a name of printable ASCII, got \"a\\n\"");
  EXPECT_EQ(RefusalOf({{"\xc3\xa9", {1}}}), "tensor 0: want a name of printable ASCII, got \"\\xc3\\xa9\"");
  EXPECT_EQ(RefusalOf({{"a", {1}}, {"b", {1}}, {"a", {2}}}), "tensor a: the name is used twice");
  EXPECT_TRUE(Layout::Make({{std::string(256, '~'), {1}}}).ok());
}

TEST(LayoutTest, RefusesBadShapes) {
  EXPECT_EQ(RefusalOf({{"a", {}}}), "tensor a: want a rank of 1 to 8, got 0");
  EXPECT_EQ(RefusalOf({{"a", std::vector<std::uint64_t>(9, 1)}}), "tensor a: want a rank of 1 to 8, got 9");
  EXPECT_EQ(RefusalOf({{"a", {2, 0}}}), "tensor a (2, 0): an extent is 0");
  EXPECT_TRUE(Layout::Make({{"a", std::vector<std::uint64_t>(8, 2)}}).ok());
}

TEST(LayoutTest, RefusesTooManyValuesWithoutOverflow) {
  const std::uint64_t half = std::uint64_t{1} << 39;
  EXPECT_TRUE(Layout::Make({{"a", {half}}, {"b", {half}}}).ok());
  EXPECT_EQ(RefusalOf({{"a", {half}}, {"b", {half}}, {"c", {1}}}), "layout: more than 1099511627776 values in all");
  EXPECT_EQ(RefusalOf({{"a", {half, 3}}}), absl::StrCat("tensor a (", half, ", 3): more than 1099511627776 values"));
  const std::uint64_t big = std::uint64_t{1} << 63;
  EXPECT_EQ(RefusalOf({{"a", {big, 2, big}}}),
            absl::StrCat("tensor a (", big, ", 2, ", big, "): more than 1099511627776 values"));
}

TEST(LayoutTest, NamesTheFirstDifference) {
  const Layout want = MakeLayout({{"a", {2, 3}}, {"b", {6}}});
  EXPECT_EQ(FirstDifference(want, want), "");
  EXPECT_EQ(FirstDifference(want, MakeLayout({{"a", {2, 3}}, {"b", {7}}})), "tensor 1: want b (6), got b (7)");
  EXPECT_EQ(FirstDifference(want, MakeLayout({{"x", {2, 3}}, {"b", {7}}})), "tensor 0: want a (2, 3), got x (2, 3)");
  EXPECT_EQ(FirstDifference(want, MakeLayout({{"a", {2, 3}}})), "tensor 1: want b (6), got no more tensors");
  EXPECT_EQ(FirstDifference(Layout(), want), "tensor 0: want no more tensors, got a (2, 3)");
}

}  // namespace
}  // namespace autoloco
