#include "worker/core/session_link.h"

#include <gtest/gtest.h>

#include "tests/support/machine_script.h"

namespace autoloco::worker {
namespace {

const absl::Status kBroken = absl::UnavailableError("connection reset");

TEST(SessionLinkTest, SaysHelloAtOnceAsNobodyInParticular) {
  MachineScript script;
  ASSERT_EQ(script.Count<OpenSession>(), 1);
  EXPECT_EQ(script.Last<OpenSession>()->identity, (Identity{.run_id = "", .incarnation = 0}));
}

TEST(SessionLinkTest, AsksForTheConfiguredRun) {
  MachineScript script({.run_id = "run-7"});
  EXPECT_EQ(script.Last<OpenSession>()->identity.run_id, "run-7");
}

TEST(SessionLinkTest, AnotherRunThanTheConfiguredOneIsRefused) {
  MachineScript script({.run_id = "run-7"});
  script.Welcome(1, 0, "run-8");
  EXPECT_EQ(script.Count<Prepare>(), 0);
  ASSERT_TRUE(script.machine().finished());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitRefused);
}

TEST(SessionLinkTest, PausesGrowWhileTheServerIsAway) {
  MachineScript script;
  std::vector<absl::Duration> pauses;
  for (int attempt = 0; attempt < 8; ++attempt) {
    script.EndSession(kBroken);
    const absl::Time next = *script.machine().NextDeadline();
    pauses.push_back(next - script.now());
    script.RunTimers(next - script.now());
    EXPECT_EQ(script.Count<OpenSession>(), attempt + 2);
  }
  EXPECT_LE(pauses[0], absl::Milliseconds(200));
  EXPECT_GE(pauses[0], absl::Milliseconds(100));
  EXPECT_GE(pauses[7], absl::Seconds(5));
  EXPECT_LE(pauses[7], absl::Seconds(10));
}

TEST(SessionLinkTest, AHelloWithoutAWelcomeIsCancelledAndTriedAgain) {
  MachineScript script;
  script.RunTimers(absl::Seconds(9));
  EXPECT_EQ(script.Count<CloseSession>(), 0);
  script.RunTimers(absl::Seconds(2));
  ASSERT_EQ(script.Count<CloseSession>(), 1);
  script.Welcome(1, 0);  // crosses the cancellation: too late
  EXPECT_EQ(script.Count<Prepare>(), 0);
  script.EndSession(absl::CancelledError(""));
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Count<OpenSession>(), 2);
}

TEST(SessionLinkTest, GivesUpAfterTheConnectTimeout) {
  MachineScript script({.connect_timeout = absl::Seconds(60)});
  const absl::Time begin = script.now();
  while (!script.machine().finished()) {
    script.EndSession(kBroken);
    script.RunTimers(*script.machine().NextDeadline() - script.now());
  }
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitGaveUp);
  EXPECT_EQ(script.now() - begin, absl::Seconds(60));
}

TEST(SessionLinkTest, TheConnectTimeoutCountsFromTheLastWelcome) {
  MachineScript script({.connect_timeout = absl::Seconds(60)});
  script.Join();
  script.RunTimers(absl::Seconds(300));
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  script.Say(SessionEnded{.session = script.session(), .status = kBroken});
  EXPECT_FALSE(script.machine().finished());
}

TEST(SessionLinkTest, AServerThatWelcomesAndHangsUpIsNotHammered) {
  MachineScript script;
  absl::Duration pause;
  for (int i = 0; i < 10; ++i) {
    script.Welcome(1, 0);
    script.EndSession(kBroken);
    pause = absl::ZeroDuration();
    const absl::Time begin = script.now();
    const int opened = script.Count<OpenSession>();
    while (script.Count<OpenSession>() == opened) {
      script.RunTimers(absl::Milliseconds(10));
      pause = script.now() - begin;
    }
  }
  EXPECT_GE(pause, absl::Seconds(4));
}

TEST(SessionLinkTest, EventsOfAnEarlierSessionAreIgnored) {
  MachineScript script;
  script.Join();
  const Ticket old = script.session();
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  script.Welcome(1, 0);
  script.Clear();
  script.Say(Assigned{.session = old, .assignment = IntervalOf(0)});
  script.Say(Drained{.session = old, .run_done = true, .reason = ""});
  script.Say(SessionEnded{.session = old, .status = absl::InvalidArgumentError("x")});
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  EXPECT_EQ(script.Count<Note>(), 0);
  EXPECT_FALSE(script.machine().finished());
}

TEST(SessionLinkTest, HeartbeatsWhateverTheWorkerDoes) {
  MachineScript script;
  script.Start();
  script.Clear();
  script.RunTimers(absl::Seconds(20));
  EXPECT_EQ(script.Count<SendProgress>(), 10);
  EXPECT_EQ(script.Last<SendProgress>()->phase, WorkerPhase::kTraining);
  script.EndSession(kBroken);
  script.Clear();
  script.RunTimers(absl::Milliseconds(50));
  EXPECT_EQ(script.Count<SendProgress>(), 0);
}

}  // namespace
}  // namespace autoloco::worker
