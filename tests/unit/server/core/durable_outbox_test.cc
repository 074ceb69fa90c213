#include "server/core/durable_outbox.h"

#include <gtest/gtest.h>

namespace autoloco::server {
namespace {

std::vector<Record> OneRecord() { return {CheckpointRecord{1}}; }

// The tickets of the refusals in `effects`, which stand for all that can be seen.
std::vector<Ticket> Seen(const std::vector<Effect>& effects) {
  std::vector<Ticket> tickets;
  for (const Effect& effect : effects) {
    if (const auto* refusal = std::get_if<RefusePull>(&effect)) tickets.push_back(refusal->ticket);
  }
  return tickets;
}

TEST(DurableOutbox, NothingWaitsWhereNothingIsUnsaved) {
  DurableOutbox outbox;
  std::vector<Effect> out;
  outbox.Add({}, {RefusePull{1, {}}, DropPayload{2}}, &out);
  EXPECT_EQ(out.size(), 2u);
  EXPECT_EQ(outbox.held(), 0u);
}

TEST(DurableOutbox, WhatCanBeSeenWaitsForItsRecordsAndKeepsItsOrder) {
  DurableOutbox outbox;
  std::vector<Effect> out;
  outbox.Add(OneRecord(), {RefusePull{1, {}}}, &out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(std::get<StoreRecords>(out[0]).sequence, 1u);
  outbox.Add({}, {RefusePull{2, {}}}, &out);
  outbox.Add(OneRecord(), {RefusePull{3, {}}}, &out);
  EXPECT_EQ(std::get<StoreRecords>(out[1]).sequence, 2u);
  EXPECT_TRUE(Seen(out).empty());
  outbox.Stored(1, &out);
  EXPECT_EQ(Seen(out), (std::vector<Ticket>{1, 2}));
  outbox.Stored(1, &out);
  outbox.Stored(2, &out);
  EXPECT_EQ(Seen(out), (std::vector<Ticket>{1, 2, 3}));
  outbox.Add({}, {RefusePull{4, {}}}, &out);
  EXPECT_EQ(Seen(out).size(), 4u);
}

TEST(DurableOutbox, WhatOnlyTheServerSeesDoesNotWait) {
  DurableOutbox outbox;
  std::vector<Effect> out;
  outbox.Add(OneRecord(), {AdmitPush{1, 10}, Decision{}, RoundCommitted{}, EvaluationReady{}}, &out);
  EXPECT_EQ(out.size(), 5u);
  const std::vector<Effect> seen = {
      SendWelcome{},    SendAssignment{}, SendRoundClosed{}, SendAbort{},         SendDrain{},  CloseSession{},
      AnswerPush{},     RefusePush{},     DropPayload{},     DropSpooled{},       DropSpooledBefore{},
      AnswerPushStatus{}, ServePull{},    RefusePull{},      StartCommit{},       StartCheckpoint{}, RunFinished{}};
  outbox.Add({}, seen, &out);
  EXPECT_EQ(out.size(), 5u);
  EXPECT_EQ(outbox.held(), seen.size());
}

}  // namespace
}  // namespace autoloco::server
