#include "server/runtime/inbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <variant>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

TEST(InboxTest, GivesInputsInTheOrderOfPosting) {
  const ManualClock clock;
  Inbox inbox(&clock);
  inbox.Post(SessionEnded{1});
  inbox.Post(SessionEnded{2});
  EXPECT_EQ(std::get<SessionEnded>(*inbox.Take(std::nullopt)).ticket, 1);
  EXPECT_EQ(std::get<SessionEnded>(*inbox.Take(std::nullopt)).ticket, 2);
}

TEST(InboxTest, NothingOnceTheDeadlineHasPassed) {
  ManualClock clock;
  Inbox inbox(&clock);
  EXPECT_FALSE(inbox.Take(clock.Now()).has_value());
  inbox.Post(StopLoop{});
  EXPECT_TRUE(inbox.Take(clock.Now()).has_value()) << "an input that is there comes first";
}

TEST(InboxTest, WakesWhoWaits) {
  Inbox inbox(MonotonicClock());
  std::thread poster([&inbox] { inbox.Post(SessionEnded{7}); });
  EXPECT_EQ(std::get<SessionEnded>(*inbox.Take(std::nullopt)).ticket, 7);
  poster.join();
}

TEST(InboxTest, TicketsAreNeverReused) {
  const ManualClock clock;
  Inbox inbox(&clock);
  EXPECT_EQ(inbox.NextTicket(), 1);
  EXPECT_EQ(inbox.NextTicket(), 2);
}

}  // namespace
}  // namespace autoloco::server
