#include "common/rpc/layout_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace autoloco {
namespace {

Layout SomeLayout() { return *Layout::Make({{"first", {3, 4}}, {"second", {5}}}); }

TEST(LayoutProtoTest, RoundTrip) {
  const Layout layout = SomeLayout();
  const absl::StatusOr<Layout> back = FromProto(ToProto(layout));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(FirstDifference(layout, *back), "");
  EXPECT_EQ(back->hash(), layout.hash());
}

TEST(LayoutProtoTest, TheHashMustFitTheTensors) {
  v1::LayoutProto proto = ToProto(SomeLayout());
  proto.mutable_tensors(1)->set_shape(0, 6);
  const absl::Status status = FromProto(proto).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("hash"));
}

TEST(LayoutProtoTest, HostileShapesAreInvalid) {
  v1::LayoutProto overflow;
  v1::LayoutProto::Tensor* tensor = overflow.add_tensors();
  tensor->set_name("huge");
  for (int i = 0; i < 8; ++i) tensor->add_shape(std::uint64_t{1} << 63);
  EXPECT_EQ(FromProto(overflow).status().code(), absl::StatusCode::kInvalidArgument);

  v1::LayoutProto deep;
  tensor = deep.add_tensors();
  tensor->set_name("deep");
  for (int i = 0; i < 100000; ++i) tensor->add_shape(1);
  EXPECT_EQ(FromProto(deep).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace autoloco
