#include "worker/client/bulk_connections.h"

#include <gtest/gtest.h>

namespace autoloco::worker {
namespace {

TEST(BulkConnectionsTest, AreKeptUntilACallFails) {
  ChannelOptions options;
  options.target = "127.0.0.1:1";
  BulkConnections connections(options);
  const auto first = *connections.Get(1);
  const auto more = *connections.Get(3);
  ASSERT_EQ(more.size(), 3u);
  EXPECT_EQ(more[0], first[0]);
  EXPECT_NE(more[1], more[0]);
  connections.Ended(absl::OkStatus());
  EXPECT_EQ(connections.Get(2)->at(1), more[1]);
  connections.Ended(absl::UnavailableError("cut"));
  EXPECT_NE(connections.Get(1)->at(0), more[0]);
}

TEST(BulkConnectionsTest, AnAddressThatIsNoneIsAnError) {
  ChannelOptions options;
  options.target = "nowhere";
  EXPECT_FALSE(BulkConnections(options).Get(1).ok());
}

}  // namespace
}  // namespace autoloco::worker
