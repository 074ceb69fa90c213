#include "server/rpc/rounds_call.h"

#include <gtest/gtest.h>

#include <vector>

namespace autoloco::server {
namespace {

TEST(RoundsCallTest, UndefinedNumbersAreNotSet) {
  RoundRecord record;
  record.round = 3;
  record.reason = Reason::kAgreement;
  record.loss_mean = 0.0;
  record.statistics.agreement = 0.25;
  const v1::RoundRecord proto = ToProto(record);
  EXPECT_EQ(proto.round(), 3);
  EXPECT_EQ(proto.reason(), "agreement");
  EXPECT_TRUE(proto.has_loss_mean());
  EXPECT_FALSE(proto.has_loss_first());
  EXPECT_EQ(proto.agreement(), 0.25);
  EXPECT_FALSE(proto.has_noise_steps());
}

TEST(RoundsCallTest, GivesThePartThatWasAskedFor) {
  std::vector<RoundRecord> history(5000);
  for (std::size_t i = 0; i < history.size(); ++i) history[i].round = i;
  v1::GetRoundsRequest request;
  v1::Rounds rounds = ToProto(history, request);
  EXPECT_EQ(rounds.rounds_size(), kRoundsPerReplyMax);
  EXPECT_EQ(rounds.rounds_committed(), 5000);
  EXPECT_LT(rounds.ByteSizeLong(), 3u << 20);  // a message holds 4 MiB
  request.set_first_round(4998);
  rounds = ToProto(history, request);
  ASSERT_EQ(rounds.rounds_size(), 2);
  EXPECT_EQ(rounds.rounds(0).round(), 4998);
  request.set_first_round(10);
  request.set_count_max(3);
  EXPECT_EQ(ToProto(history, request).rounds_size(), 3);
  request.set_first_round(6000);
  EXPECT_EQ(ToProto(history, request).rounds_size(), 0);
}

}  // namespace
}  // namespace autoloco::server
