// The deadline of a round: quorum, what is learned from arrivals, the operator's word, broken sessions.
#include "server/core/round_deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace autoloco::server {
namespace {

using State = AwaitedWork::State;
using ::testing::HasSubstr;

const absl::Time kOpened = absl::UnixEpoch() + absl::Hours(3);

AwaitedWork Delivered(double seconds, double assigned = 0) {
  return {State::kDelivered, kOpened + absl::Seconds(assigned), kOpened + absl::Seconds(seconds), {}};
}
AwaitedWork EndedEarly(double seconds) { return {State::kEndedEarly, kOpened, kOpened + absl::Seconds(seconds), {}}; }
AwaitedWork Working() { return {State::kConnected, kOpened, {}, {}}; }
AwaitedWork Broken(double seconds) { return {State::kDisconnected, kOpened, {}, kOpened + absl::Seconds(seconds)}; }
AwaitedWork Gone() { return {State::kMissing, kOpened, {}, {}}; }

// Seconds from the opening; -1: none.
double At(const std::vector<AwaitedWork>& work, const DeadlineSettings& settings = {}) {
  const RoundDeadline deadline = ComputeDeadline(settings, kOpened, work);
  return deadline.at ? absl::ToDoubleSeconds(*deadline.at - kOpened) : -1;
}

TEST(RoundDeadlineTest, QuorumIsRoundedUp) {
  EXPECT_EQ(QuorumOf(0.6, 1), 1u);
  EXPECT_EQ(QuorumOf(0.6, 2), 2u);
  EXPECT_EQ(QuorumOf(0.6, 3), 2u);
  EXPECT_EQ(QuorumOf(0.6, 5), 3u);
  EXPECT_EQ(QuorumOf(0.6, 10), 6u);
  EXPECT_EQ(QuorumOf(0.01, 4), 1u);
  EXPECT_EQ(QuorumOf(1, 7), 7u);
  for (std::size_t assigned = 1; assigned < 300; ++assigned) {
    const std::uint32_t quorum = QuorumOf(0.6, assigned);
    EXPECT_GE(10 * quorum, 6 * assigned);
    EXPECT_LT(10 * (quorum - 1), 6 * assigned);
  }
}

TEST(RoundDeadlineTest, NoDeadlineBelowTheQuorum) {
  EXPECT_EQ(At({Working(), Working(), Working()}), -1);
  EXPECT_EQ(At({Delivered(10), Working(), Working(), Working()}), -1);
  EXPECT_EQ(At({Delivered(10), Delivered(11), Working(), Working()}), -1);
  EXPECT_GT(At({Delivered(10), Delivered(11), Delivered(12), Working()}), 0);
}

// A worker that left with a part of its interval hurries nobody.
TEST(RoundDeadlineTest, APartOfAnIntervalIsNoArrivalAndNoPartOfTheQuorum) {
  EXPECT_EQ(At({EndedEarly(10), Working(), Working()}), -1);
  EXPECT_EQ(At({EndedEarly(10), Delivered(100), Working()}), -1);
  EXPECT_EQ(At({EndedEarly(10), Delivered(100), Delivered(100), Working()}),
            At({Delivered(100), Delivered(100), Working()}));
  EXPECT_EQ(At({EndedEarly(10), Broken(5)}), 13);  // it was the last delta
}

// Arrivals 100, 102, 104: median 102, MAD 2, so 4 x 1.4826 x 2 = 11.8608.
TEST(RoundDeadlineTest, LearnsFromMedianAndSpread) {
  EXPECT_NEAR(At({Delivered(100), Delivered(102), Delivered(104), Working()}), 102 + 11.8608, 1e-6);
  const RoundDeadline deadline =
      ComputeDeadline({}, kOpened, std::vector{Delivered(100), Delivered(102), Delivered(104), Working()});
  EXPECT_EQ(deadline.reason, Reason::kDeadline);
  EXPECT_EQ(deadline.quorum, 3u);
  EXPECT_THAT(deadline.text, HasSubstr("median arrival 102.000 s of 3 deltas"));
}

TEST(RoundDeadlineTest, SlackHasBounds) {
  EXPECT_NEAR(At({Delivered(100), Delivered(100), Delivered(100), Working()}), 101, 1e-6);  // at least 1 s
  EXPECT_NEAR(At({Delivered(40), Delivered(100), Delivered(160), Working()}), 150, 1e-6);   // at most half of 100 s
  EXPECT_NEAR(At({Delivered(0.1), Delivered(0.2), Delivered(0.3), Working()}), 1.2, 1e-6);  // the floor wins
  DeadlineSettings settings;
  settings.slack_min = absl::Seconds(7);
  settings.slack_share_max = 0.1;
  EXPECT_NEAR(At({Delivered(100), Delivered(100), Delivered(100), Working()}, settings), 107, 1e-6);
  EXPECT_NEAR(At({Delivered(40), Delivered(100), Delivered(160), Working()}, settings), 110, 1e-6);
  settings.spread_factor = 0.1;
  EXPECT_NEAR(At({Delivered(40), Delivered(100), Delivered(160), Working()}, settings), 100 + 0.1 * 1.4826 * 60, 1e-6);
}

TEST(RoundDeadlineTest, OneWildArrivalDoesNotMoveIt) {
  const double calm = At({Delivered(100), Delivered(101), Delivered(102), Delivered(103), Delivered(104), Working()});
  const double wild = At({Delivered(1), Delivered(101), Delivered(102), Delivered(103), Delivered(104), Working()});
  EXPECT_NEAR(calm, 102 + 4 * 1.4826, 1e-6);
  EXPECT_NEAR(wild, calm, 1e-6);
}

// Joined after 60 s with work that fits: its arrival counts from the opening, its duration does not stretch the slack.
TEST(RoundDeadlineTest, AJoinerArrivesLikeTheOthers) {
  EXPECT_NEAR(At({Delivered(60), Delivered(100), Delivered(140, 60), Working()}), 100 + 40, 1e-6);
}

TEST(RoundDeadlineTest, TheOperatorsDeadlineHoldsAfterTheQuorum) {
  DeadlineSettings settings;
  settings.fixed = absl::Seconds(30);
  EXPECT_EQ(At({Delivered(10), Working(), Working()}, settings), -1);
  EXPECT_NEAR(At({Delivered(10), Delivered(11), Working()}, settings), 30, 1e-9);
  EXPECT_EQ(ComputeDeadline(settings, kOpened, std::vector{Delivered(10), Delivered(11), Working()}).reason,
            Reason::kDeadlineFixed);
}

TEST(RoundDeadlineTest, AQuorumOfAllIsNoDeadline) {
  DeadlineSettings settings;
  settings.quorum_share = 1;
  EXPECT_EQ(At({Delivered(10), Delivered(11), Working()}, settings), -1);
  EXPECT_NEAR(At({Delivered(10), Delivered(11), Broken(5)}, settings), 14, 1e-9);
}

TEST(RoundDeadlineTest, BrokenSessionsAreWaitedForBriefly) {
  EXPECT_NEAR(At({Delivered(10), Broken(4)}), 13, 1e-9);  // below the quorum of two as well
  EXPECT_NEAR(At({Delivered(10), Broken(12)}), 15, 1e-9);
  EXPECT_EQ(At({Delivered(10), Broken(4), Working(), Working()}), -1);
  EXPECT_EQ(At({Broken(4), Broken(5)}), -1);  // nothing to close with
  EXPECT_EQ(ComputeDeadline({}, kOpened, std::vector{Delivered(10), Broken(4)}).reason, Reason::kDisconnectGrace);
  // The learned deadline is earlier than the grace of the last break.
  EXPECT_NEAR(At({Delivered(10), Delivered(10), Delivered(10), Broken(10)}), 11, 1e-9);
}

TEST(RoundDeadlineTest, NobodyToWaitForIsNoDeadline) {
  EXPECT_EQ(At({Delivered(10), Delivered(11), Gone()}), -1);
  EXPECT_EQ(At({}), -1);
}

}  // namespace
}  // namespace autoloco::server
