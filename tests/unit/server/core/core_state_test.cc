// The fold of records: what a restarted server goes on from.
#include "server/core/core_state.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace autoloco::server {
namespace {

RoundState OpenedRound(Round number, std::uint64_t attempt = 0) {
  RoundState round;
  round.number = number;
  round.attempt = attempt;
  round.inner_steps = 5;
  round.entries["a"].incarnation = 1;
  return round;
}

RoundEntry DeliveredEntry() {
  RoundEntry entry;
  entry.incarnation = 1;
  entry.assignment.round = 3;
  entry.delivered = true;
  entry.delivered_by = 1;
  entry.payload_digest = "d";
  return entry;
}

RoundCommittedRecord Committed(Round round) {
  RoundCommittedRecord record;
  record.round = round;
  record.record.round = round;
  record.record.view_digest = absl::StrCat("view ", round + 1);
  return record;
}

TEST(CoreState, AnOpenRoundTakesItsEntriesAndItsDecision) {
  CoreState state;
  Apply(RoundOpenedRecord{OpenedRound(3)}, &state);
  Apply(EntryRecord{3, "a", DeliveredEntry()}, &state);
  Apply(EntryRecord{2, "b", DeliveredEntry()}, &state);  // of a round that is not open
  ASSERT_TRUE(state.round.has_value());
  EXPECT_EQ(state.round->entries.size(), 1u);
  EXPECT_EQ(state.round->KeyOf("a", state.round->entries["a"]), (PushKey{{"a", 1}, 3, 0}));
  RoundDecidedRecord decided;
  decided.decision.round = 3;
  decided.decision.contributions = {{{{"a", 1}, 3, 0}, 1.0}};
  decided.record.contributors = 1;
  Apply(decided, &state);
  EXPECT_EQ(*state.round->decision, decided.decision);
  EXPECT_EQ(state.round->record.contributors, 1u);
}

TEST(CoreState, ACommittedRoundIsHistoryOnce) {
  CoreState state;
  Apply(RoundOpenedRecord{OpenedRound(0)}, &state);
  Apply(Committed(0), &state);
  Apply(Committed(0), &state);
  EXPECT_FALSE(state.round.has_value());
  EXPECT_EQ(state.run.history.size(), 1u);
  Apply(Committed(1), &state);
  EXPECT_EQ(state.run.history.size(), 2u);
}

TEST(CoreState, OutcomesAreKeptForSomeRoundsAndForgottenWithAnAbortedOne) {
  CoreState state;
  const PushKey early{{"a", 1}, 0, 0};
  const PushKey late{{"a", 1}, PushRegister::kRoundsKept, 0};
  Apply(PushRecord{early, {"d", PushOutcome::kAccepted, ""}, 100, 5}, &state);
  Apply(PushRecord{late, {"e", PushOutcome::kNonFinite, "why"}, 0, 0}, &state);
  Apply(Committed(PushRegister::kRoundsKept - 1), &state);
  EXPECT_NE(state.pushes.Find(early), nullptr);
  Apply(RoundOpenedRecord{OpenedRound(PushRegister::kRoundsKept, 1)}, &state);
  Apply(RoundAbortedRecord{PushRegister::kRoundsKept, 0, "an earlier attempt"}, &state);
  EXPECT_TRUE(state.round.has_value());
  EXPECT_NE(state.pushes.Find(late), nullptr);
  Apply(RoundAbortedRecord{PushRegister::kRoundsKept, 1, "nobody left"}, &state);
  EXPECT_FALSE(state.round.has_value());
  EXPECT_EQ(state.pushes.Find(late), nullptr);
  Apply(Committed(PushRegister::kRoundsKept), &state);
  EXPECT_EQ(state.pushes.Find(early), nullptr);
}

TEST(CoreState, TheRunItsMembersAndItsNumbersAreAsLastRecorded) {
  CoreState state;
  RunRecord run;
  run.progress.version = 4;
  run.progress.next_sample = 80;
  run.participants = {"a", "b"};
  run.data = DataIdentity{1000, 7};
  state.run.history.resize(4);
  Apply(run, &state);
  EXPECT_EQ(state.run.version, 4u);
  EXPECT_EQ(state.run.next_sample, 80u);
  EXPECT_EQ(state.run.history.size(), 4u) << "what grows has records of its own";
  EXPECT_EQ(state.participants.size(), 2u);
  EXPECT_EQ(state.data, run.data);

  MemberState member;
  member.tokens = 10;
  Apply(MemberRecord{"a", member}, &state);
  Apply(MemberRecord{"b", {}}, &state);
  Apply(MemberForgottenRecord{"b"}, &state);
  EXPECT_EQ(state.members.size(), 1u);
  EXPECT_EQ(state.members["a"].tokens, 10u);

  Apply(EvaluationRecord{{4, 20, 3.5, 100}}, &state);
  Apply(EvaluationRecord{{4, 20, 3.25, 200}}, &state);
  ASSERT_EQ(state.run.evaluations.size(), 1u);
  EXPECT_EQ(state.run.evaluations[0].loss, 3.25);
  Apply(CheckpointRecord{4}, &state);
  EXPECT_EQ(state.checkpoint, 4u);
  Apply(RoundOpenedRecord{OpenedRound(4)}, &state);
  Apply(RunEvaluatedRecord{4}, &state);
  EXPECT_TRUE(state.evaluated);
  EXPECT_FALSE(state.round.has_value());
}

TEST(CoreState, LeasesStayUntilTheyEnd) {
  CoreState state;
  const LeaseKey key{3, 0, {"a", 1}};
  Apply(LeaseRecord{key, {.leased = 100}}, &state);
  Apply(LedgerRecord{{.leased = 100}}, &state);
  EXPECT_EQ(state.leases.size(), 1u);
  Apply(LeaseRecord{key, {.leased = 100, .trained = 90, .fate = LeaseFate::kApplied}}, &state);
  Apply(LedgerRecord{{.leased = 100, .applied = 90, .unused = 10}}, &state);
  EXPECT_TRUE(state.leases.empty());
  EXPECT_EQ(state.ledger.applied, 90u);
}

TEST(CoreState, ACheckpointAloneIsAState) {
  CoreSnapshot snapshot;
  EXPECT_EQ(StateOf(snapshot), CoreState());
  snapshot.version = 3;
  EXPECT_EQ(StateOf(snapshot).run, snapshot);
  EXPECT_EQ(StateOf(snapshot).checkpoint, 3u);
}

TEST(CoreState, RecordsHaveNamesOfTheirOwn) {
  const Record records[] = {RunRecord(),          MemberRecord(),       MemberForgottenRecord(), RoundOpenedRecord(),
                            EntryRecord(),        PushRecord(),         RoundDecidedRecord(),    RoundCommittedRecord(),
                            RoundAbortedRecord(), RunEvaluatedRecord(), EvaluationRecord(),      CheckpointRecord(),
                            LeaseRecord(),        LedgerRecord()};
  std::set<std::string> names;
  for (const Record& record : records) names.insert(RecordName(record));
  EXPECT_EQ(names.size(), std::variant_size_v<Record>);
}

}  // namespace
}  // namespace autoloco::server
