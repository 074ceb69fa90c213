#include "server/core/token_ledger.h"

#include <gtest/gtest.h>

#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

const WorkerId kA{"a", 1};
const WorkerId kB{"b", 2};

void ExpectBalanced(const TokenLedger& ledger) {
  EXPECT_TRUE(Balances(ledger.totals(), OutstandingTokens(ledger.outstanding())));
}

TEST(TokenLedger, EveryLeaseEndsOnceWithWhatWasTrained) {
  TokenLedger ledger;
  ledger.Open({3, 0, kA}, 100);
  ledger.Open({3, 0, kB}, 100);
  EXPECT_EQ(OutstandingTokens(ledger.outstanding()), 200u);
  ExpectBalanced(ledger);
  ledger.End(3, kA, LeaseFate::kApplied, 80);
  ledger.End(3, kA, LeaseFate::kLate, 80);
  ledger.End(3, kB, LeaseFate::kRejected, 1000);  // more than it was given
  ledger.End(4, kB, LeaseFate::kApplied, 10);     // of a round that it has no lease for
  EXPECT_EQ(ledger.totals(), (LedgerTotals{.leased = 200, .applied = 80, .rejected = 100, .unused = 20}));
  ExpectBalanced(ledger);
  EXPECT_FALSE(Balances({.leased = 200, .applied = 80, .rejected = 100, .unused = 21}, 0));
}

TEST(TokenLedger, WhatCannotComeAnyMoreIsLost) {
  TokenLedger ledger;
  for (const Round round : {1, 2, 3}) {
    ledger.Open({round, 0, kA}, 10);
    ledger.Open({round, 0, kB}, 10);
  }
  ledger.Lose(3, kA);
  EXPECT_EQ(ledger.totals().lost, 10u);
  ledger.LoseBefore(2, "a");
  EXPECT_EQ(ledger.totals().lost, 20u);
  ledger.LoseBefore(2);
  EXPECT_EQ(ledger.totals().lost, 30u);
  ledger.LoseRound(2);
  EXPECT_EQ(ledger.totals().lost, 50u);
  EXPECT_EQ(ledger.outstanding().size(), 1u);
  ExpectBalanced(ledger);
}

TEST(TokenLedger, AnotherLifeIsAnotherLease) {
  TokenLedger ledger;
  ledger.Open({3, 0, kA}, 10);
  ledger.End(3, {"a", 5}, LeaseFate::kApplied, 10);
  EXPECT_EQ(ledger.outstanding().size(), 1u);
  ledger.LoseBefore(4, "a");
  EXPECT_TRUE(ledger.outstanding().empty());
}

TEST(TokenLedger, ChangesAreRecordedOnceAndFoldToTheSame) {
  TokenLedger ledger;
  EXPECT_TRUE(ledger.TakeRecords().empty());
  ledger.Open({3, 0, kA}, 100);
  ledger.Open({3, 0, kB}, 100);
  ledger.End(3, kA, LeaseFate::kApplied, 80);
  CoreState state;
  for (const Record& record : ledger.TakeRecords()) Apply(record, &state);
  EXPECT_EQ(state.leases, ledger.outstanding());
  EXPECT_EQ(state.ledger, ledger.totals());
  EXPECT_TRUE(ledger.TakeRecords().empty());
}

// The same, with the machine that keeps it. CoreScript checks the balance after every event.
LedgerTotals TotalsOf(const CoreScript& script) { return script.Status().ledger; }

// Leases of 20 samples of 2 tokens each.
CoreConfig LedgerConfig() {
  CoreConfig config = SmallConfig();
  config.evaluation_windows = 0;
  config.tokens_per_sample = 2;
  return config;
}

TEST(MachineLedger, AppliedDeltasAndWhatTheyLeftUnused) {
  CoreScript script(LedgerConfig());
  script.report().tokens = 30;
  script.Join("a");
  script.Join("b");
  EXPECT_EQ(TotalsOf(script), (LedgerTotals{.leased = 80}));
  EXPECT_EQ(script.Status().ledger_outstanding, 80u);
  script.Push("a");
  script.Push("b");
  script.Commit();
  EXPECT_EQ(TotalsOf(script), (LedgerTotals{.leased = 160, .applied = 60, .unused = 20}));
}

TEST(MachineLedger, LateAndRejectedDeltas) {
  CoreScript script(LedgerConfig());
  script.report().tokens = 40;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  script.Say(SessionClosed{script.SessionOf("b")});
  script.RunTimers(absl::Seconds(4));  // the grace: the round closes without it
  script.Commit();
  EXPECT_EQ(TotalsOf(script).lost, 0u) << "it may still come";
  script.Push("b", "late");
  EXPECT_EQ(script.Last<AnswerPush>()->outcome, PushOutcome::kLate);
  EXPECT_EQ(TotalsOf(script).late, 40u);

  const Ticket broken = script.OpenPush("a", 1, "not finite", 5);
  script.Say(PushVerified{broken, absl::OkStatus(), false, "a.weight[0]"});
  EXPECT_EQ(TotalsOf(script).rejected, 40u);
}

TEST(MachineLedger, AnAbortedRoundIsLostAndLeasedAgain) {
  CoreScript script(LedgerConfig());
  script.Join("a");
  script.Join("b");
  for (const char* name : {"a", "b"}) script.Say(GoodbyeReceived{script.SessionOf(name), script.SenderOf(name), ""});
  EXPECT_EQ(TotalsOf(script), (LedgerTotals{.leased = 80, .lost = 80}));
  script.Join("a");
  EXPECT_EQ(TotalsOf(script), (LedgerTotals{.leased = 120, .lost = 80}));
}

TEST(MachineLedger, AWorkerThatLeavesLosesWhatItStillOwed) {
  CoreScript script(LedgerConfig());
  script.report().tokens = 40;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  script.Say(SessionClosed{script.SessionOf("b")});
  script.RunTimers(absl::Seconds(4));
  script.Commit();
  EXPECT_EQ(TotalsOf(script).lost, 0u);
  script.Say(WorkerHeard{script.SenderOf("a")});
  script.RunTimers(absl::Seconds(12));
  EXPECT_EQ(script.Decided(Reason::kLeaseExpired), 1);
  EXPECT_EQ(TotalsOf(script).lost, 40u);
}

TEST(MachineLedger, ALateDeltaThatWillCountSurvivesItsWorker) {
  CoreConfig config = LedgerConfig();
  config.late.apply = true;
  config.late.versions_max = 2;
  CoreScript script(config);
  script.report().tokens = 40;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  script.Say(SessionClosed{script.SessionOf("b")});
  script.RunTimers(absl::Seconds(4));
  script.Reconnect("b");
  script.Commit();
  script.Push("b", "late");
  EXPECT_EQ(script.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
  script.Say(GoodbyeReceived{script.SessionOf("b"), script.SenderOf("b"), ""});
  EXPECT_EQ(TotalsOf(script).lost, 0u);
  script.Push("a", "second");
  ASSERT_EQ(script.Last<StartCommit>()->contributions.size(), 2u);
  script.Commit();
  EXPECT_EQ(TotalsOf(script).applied, 120u);
  EXPECT_EQ(TotalsOf(script).lost, 0u);
}

TEST(MachineLedger, AStrictSuccessorHasALeaseOfItsOwn) {
  CoreConfig config = LedgerConfig();
  config.strict = true;
  config.min_workers = 2;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  script.Join("b");  // killed and started again
  EXPECT_EQ(TotalsOf(script), (LedgerTotals{.leased = 120, .lost = 40}));
  EXPECT_EQ(script.Status().ledger_outstanding, 80u);
}

}  // namespace
}  // namespace autoloco::server
