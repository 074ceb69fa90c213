#include "server/runtime/parameter_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/codec/delta_codec.h"

namespace autoloco::server {
namespace {

std::string Payload(const EncodedPayload& snapshot) {
  return absl::StrJoin(snapshot.Pieces(0, snapshot.payload_bytes()), "");
}

TEST(ParameterStoreTest, StartsWithZeros) {
  absl::StatusOr<ParameterStore> store = ParameterStore::Allocate(*Layout::Make({{"t", {3}}}));
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(store->ParamsDigest(), Digest128(std::vector<float>(3)));
  EXPECT_EQ(store->momentum().size(), 3);
}

TEST(ParameterStoreTest, EncodesItsParametersWhateverTheThreads) {
  const Layout layout = *Layout::Make({{"t", {200000}}});
  absl::StatusOr<ParameterStore> store = ParameterStore::Allocate(layout);
  ASSERT_TRUE(store.ok());
  for (std::size_t i = 0; i < store->params().size(); ++i) store->params()[i] = static_cast<float>(i) * 0.25F;
  WorkPool one(1);
  WorkPool four(4);
  const auto snapshot = store->Encode(7, store->ParamsDigest(), 1, &one);
  EXPECT_EQ(snapshot->header().version, 7);
  EXPECT_EQ(snapshot->header().form, PullForm::kFull);
  EXPECT_EQ(snapshot->block_count(), BlockCount(200000));
  EXPECT_EQ(Payload(*snapshot), Payload(*store->Encode(7, store->ParamsDigest(), 1, &four)));
  EXPECT_EQ(Payload(*snapshot), EncodeVector(store->params(), Codec::kFp32, 1));

  std::vector<float> decoded(200000);
  const std::string payload = Payload(*snapshot);
  ASSERT_TRUE(DecodeVector(std::as_bytes(std::span(payload.data(), payload.size())), Codec::kFp32, decoded).ok());
  EXPECT_EQ(Digest128(decoded), snapshot->header().params_digest);
}

TEST(ParameterStoreTest, ASnapshotIsACopy) {
  absl::StatusOr<ParameterStore> store = ParameterStore::Allocate(*Layout::Make({{"t", {3}}}));
  ASSERT_TRUE(store.ok());
  WorkPool pool(1);
  const auto snapshot = store->Encode(0, store->ParamsDigest(), 1, &pool);
  const std::string before = Payload(*snapshot);
  store->params()[1] = 5;
  EXPECT_EQ(Payload(*snapshot), before);
}

TEST(ParameterStoreTest, AViewIsMadeOfTheParametersAndGoesItsOwnWay) {
  absl::StatusOr<ParameterStore> store = ParameterStore::Allocate(*Layout::Make({{"t", {3}}}));
  ASSERT_TRUE(store.ok());
  store->params()[1] = 5;
  EXPECT_EQ(store->view(), nullptr);
  EXPECT_TRUE(store->view_values().empty());
  EXPECT_EQ(store->ViewDigest(), store->ParamsDigest()) << "the parameters are the view";
  ASSERT_TRUE(store->MakeView().ok());
  EXPECT_EQ(store->view_values()[1], 5);
  EXPECT_EQ(store->ViewDigest(), store->ParamsDigest());
  store->params()[1] = 6;
  ASSERT_TRUE(store->MakeView().ok());
  EXPECT_EQ(store->view_values()[1], 5) << "it is there already";
  EXPECT_NE(store->ViewDigest(), store->ParamsDigest());
  store->DropView();
  EXPECT_EQ(store->ViewDigest(), store->ParamsDigest());
}

}  // namespace
}  // namespace autoloco::server
