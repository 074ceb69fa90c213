#include "server/core/core_state.h"

#include <variant>

#include "server/core/evaluation_book.h"

namespace autoloco::server {
namespace {

// The round that `record` is about, if it is the open one.
RoundState* RoundOf(Round round, CoreState* state) {
  return state->round && state->round->number == round ? &*state->round : nullptr;
}

void ApplyOne(const RunRecord& record, CoreState* state) {
  static_cast<RunProgress&>(state->run) = record.progress;
  state->participants = record.participants;
  state->data = record.data;
}

void ApplyOne(const MemberRecord& record, CoreState* state) { state->members[record.name] = record.member; }

void ApplyOne(const MemberForgottenRecord& record, CoreState* state) { state->members.erase(record.name); }

void ApplyOne(const RoundOpenedRecord& record, CoreState* state) { state->round = record.round; }

void ApplyOne(const EntryRecord& record, CoreState* state) {
  if (RoundState* round = RoundOf(record.round, state)) round->entries[record.worker] = record.entry;
}

void ApplyOne(const PushRecord& record, CoreState* state) { state->pushes.Record(record.key, record.push); }

void ApplyOne(const RoundDecidedRecord& record, CoreState* state) {
  if (RoundState* round = RoundOf(record.decision.round, state)) {
    round->decision = record.decision;
    round->record = record.record;
  }
}

void ApplyOne(const RoundCommittedRecord& record, CoreState* state) {
  if (RoundOf(record.round, state) != nullptr) state->round.reset();
  std::vector<RoundRecord>& history = state->run.history;
  if (!history.empty() && history.back().round == record.round) history.pop_back();
  history.push_back(record.record);
  state->view_digest = record.record.view_digest;
  state->pushes.Trim(record.round);
}

void ApplyOne(const RoundAbortedRecord& record, CoreState* state) {
  RoundState* round = RoundOf(record.round, state);
  if (round == nullptr || round->attempt != record.attempt) return;
  state->round.reset();
  state->pushes.Forget(record.round);
}

void ApplyOne(const RunEvaluatedRecord&, CoreState* state) {
  state->round.reset();
  state->evaluated = true;
}

void ApplyOne(const EvaluationRecord& record, CoreState* state) {
  AddEvaluation(record.point, &state->run.evaluations);
}

void ApplyOne(const CheckpointRecord& record, CoreState* state) { state->checkpoint = record.version; }

void ApplyOne(const LeaseRecord& record, CoreState* state) {
  if (record.lease.fate == LeaseFate::kOutstanding) {
    state->leases[record.key] = record.lease;
  } else {
    state->leases.erase(record.key);
  }
}

void ApplyOne(const LedgerRecord& record, CoreState* state) { state->ledger = record.totals; }

}  // namespace

CoreState StateOf(const CoreSnapshot& snapshot) {
  CoreState state;
  state.run = snapshot;
  if (snapshot.version > 0) state.checkpoint = snapshot.version;
  if (!snapshot.history.empty()) state.view_digest = snapshot.history.back().view_digest;
  return state;
}

void Apply(const Record& record, CoreState* state) {
  std::visit([state](const auto& one) { ApplyOne(one, state); }, record);
}

}  // namespace autoloco::server
