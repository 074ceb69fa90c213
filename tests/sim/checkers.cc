#include "tests/sim/checkers.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"

namespace autoloco::sim {
namespace {

std::string KeyText(const server::PushKey& key) {
  return absl::StrCat(key.worker.name, "#", key.worker.incarnation, " round ", key.round);
}

}  // namespace

Checkers::Checkers(const Scenario& scenario, Trace* trace) : scenario_(scenario), trace_(trace) {
  parameters_ = InitialParameters(scenario.data_seed, scenario.core.method);
  versions_.push_back({DigestOf(parameters_.values), DigestOf(parameters_.View())});
}

void Checkers::Violate(const char* checker, const std::string& text) {
  violations_.push_back(absl::StrCat(checker, ": ", text));
  trace_->Line("CHECK", checker, text);
}

// ---------------------------------------------------------------------------------------------------- workers

Lineage Checkers::NewLineage() {
  const Values none = TrainerState().residual;
  residuals_.push_back({{none}, none, none});
  return residuals_.size() - 1;
}

void Checkers::OnStateLost(Lineage lineage) { residuals_[lineage].allowed.push_back(TrainerState().residual); }

void Checkers::OnRestarted(Lineage lineage) { residuals_[lineage].allowed.push_back(residuals_[lineage].before); }

void Checkers::OnTrained(const std::string& worker, Lineage lineage, const Delta& delta) {
  const Round round = delta.assignment.round;
  if (round >= versions_.size()) {
    Violate("base", absl::StrCat(worker, " trained round ", round, ", whose version is not durable"));
  } else if (versions_[round].view != delta.base_digest) {
    Violate("base", absl::StrCat(worker, " trained round ", round, " from ", delta.base_digest,
                                 ", the server's version has ", versions_[round].view));
  }
  const std::vector<Values>& allowed = residuals_[lineage].allowed;
  if (std::find(allowed.begin(), allowed.end(), delta.before.residual) == allowed.end()) {
    Violate("residual", absl::StrCat(worker, " trained round ", round, " with a residual that is not the one left"));
  }
}

void Checkers::OnSent(const server::PushKey& key, Lineage lineage, const Delta& delta) {
  const auto [it, first] = sent_.try_emplace(key, Sent{lineage, delta});
  if (!first && it->second.delta.digest != delta.digest) {
    // Only what may count must be the same: a key of a round that was aborted and opened again is used anew.
    if (it->second.accepted) Violate("key", absl::StrCat(KeyText(key), " was sent again with other bytes"));
    it->second = Sent{lineage, delta};
  }
}

void Checkers::OnOutcome(const server::PushKey& key, bool accepted) {
  const auto it = sent_.find(key);
  if (it == sent_.end()) return;
  if (accepted && !it->second.accepted) {
    Violate("acknowledged", absl::StrCat(KeyText(key), " was acknowledged, and no record of it is durable"));
  }
  if (accepted) residuals_[it->second.lineage].allowed = {it->second.delta.after.residual};
}

// ---------------------------------------------------------------------------------------------------- records

void Checkers::OnDurable(const std::vector<server::Record>& records, const server::CoreState& state) {
  for (const server::Record& record : records) {
    std::visit([this](const auto& one) { Durable(one); }, record);
  }
  CheckLedger(state);
}

void Checkers::Durable(const server::PushRecord& record) {
  const auto it = sent_.find(record.key);
  if (it == sent_.end()) {
    Violate("fencing", absl::StrCat(KeyText(record.key), " was recorded, and nobody sent it under this key"));
    return;
  }
  if (record.push.outcome != server::PushOutcome::kAccepted) return;
  Sent& sent = it->second;
  if (sent.delta.digest != record.push.payload_digest) {
    Violate("key", absl::StrCat(KeyText(record.key), " was accepted with bytes that were not sent"));
  }
  sent.accepted = true;
  // Until the worker knows, both are right: it may have stopped before the answer came.
  const Values& before = sent.delta.before.residual;
  const Values& after = sent.delta.after.residual;
  residuals_[sent.lineage] = {{before, after}, before, after};
  const auto [held, first] = round_.accepted.try_emplace(record.key.worker.name, record.key);
  if (!first && !(held->second == record.key)) {
    Violate("twice", absl::StrCat(KeyText(record.key), " was accepted beside ", KeyText(held->second)));
  }
}

// A delta counts in its own round, or a little later where the run says so.
bool Checkers::MayCount(Round round, Round decided) const {
  const server::LateSettings& late = scenario_.core.late;
  return round <= decided && decided - round <= (late.apply ? late.versions_max : 0);
}

void Checkers::Durable(const server::RoundDecidedRecord& record) {
  const server::StartCommit& decision = record.decision;
  if (round_.decision && !(*round_.decision == decision)) {
    Violate("decision", absl::StrCat("round ", decision.round, " was decided anew, otherwise"));
  }
  round_.decision = decision;
  std::set<std::string> counted;
  for (const server::StartCommit::Contribution& contribution : decision.contributions) {
    const server::PushKey& key = contribution.push;
    const auto it = sent_.find(key);
    if (it == sent_.end() || !it->second.accepted || !MayCount(key.round, decision.round)) {
      Violate("decision", absl::StrCat("round ", decision.round, " counts ", KeyText(key), ", which was not accepted"));
    } else if (it->second.applied) {
      Violate("twice", absl::StrCat(KeyText(key), " counts a second time, in round ", decision.round));
    }
    if (!counted.insert(key.worker.name).second) {
      Violate("twice", absl::StrCat(key.worker.name, " counts twice in round ", decision.round));
    }
  }
  for (const auto& [worker, key] : round_.accepted) {
    if (counted.count(worker) == 0 && left_out_.count({decision.round, worker}) == 0) {
      Violate("lost", absl::StrCat(KeyText(key), " was accepted and is not part of its round"));
    }
  }
}

void Checkers::Durable(const server::RoundCommittedRecord& record) {
  const Digests recorded = {record.record.params_digest, record.record.view_digest};
  if (record.round + 1 < versions_.size()) {
    if (versions_[record.round + 1] != recorded) {
      Violate("parameters", absl::StrCat("version ", record.round + 1, " was made anew, otherwise"));
    }
    return;
  }
  if (record.round + 1 != versions_.size() || !round_.decision || round_.decision->round != record.round) {
    Violate("decision", absl::StrCat("round ", record.round, " was committed without a durable decision"));
    return;
  }
  std::vector<WeightedPayload> deltas;
  const std::uint64_t tokens_before = tokens_applied_;
  for (const server::StartCommit::Contribution& contribution : round_.decision->contributions) {
    const auto it = sent_.find(contribution.push);
    if (it == sent_.end()) return;  // said already
    it->second.applied = true;
    deltas.push_back({contribution.push.worker.name, contribution.weight, it->second.delta.payload});
    tokens_applied_ += it->second.delta.report.tokens;
    ++contributed_[contribution.push.worker.name];
  }
  if (record.record.tokens != tokens_applied_ - tokens_before) {
    Violate("ledger", absl::StrCat("round ", record.round, " books ", record.record.tokens, " tokens, trained were ",
                                   tokens_applied_ - tokens_before));
  }
  const auto stats = ApplyStep(round_.decision->step, round_.decision->method, deltas, &parameters_, nullptr);
  if (!stats.ok()) Violate("parameters", std::string(stats.status().message()));
  versions_.push_back({DigestOf(parameters_.values), DigestOf(parameters_.View())});
  if (versions_.back() != recorded) {
    Violate("parameters",
            absl::StrCat("version ", record.round + 1, " has digests ", recorded.params, " ", recorded.view,
                         ", the decision and the deltas give ", versions_.back().params, " ", versions_.back().view));
  }
  round_ = {};
}

void Checkers::Durable(const server::RoundAbortedRecord& record) {
  if (record.reason.empty()) Violate("lost", absl::StrCat("round ", record.round, " was aborted without a reason"));
  round_ = {};
}

void Checkers::CheckLedger(const server::CoreState& state) {
  const server::LedgerTotals& ledger = state.ledger;
  std::uint64_t outstanding = 0;
  for (const auto& [key, lease] : state.leases) outstanding += lease.leased;
  const std::uint64_t ended = ledger.applied + ledger.late + ledger.rejected + ledger.lost + ledger.unused;
  if (ledger.leased != ended + outstanding) {
    Violate("ledger", absl::StrCat("leased ", ledger.leased, ", ended ", ended, ", outstanding ", outstanding));
  }
  if (ledger.applied != tokens_applied_) {
    Violate("ledger", absl::StrCat("applied ", ledger.applied, ", trained and summed ", tokens_applied_));
  }
}

// ---------------------------------------------------------------------------------------------------- effects

void Checkers::OnServerStarted() {
  answered_.clear();
  pushes_.clear();
  sessions_.clear();
}

void Checkers::OnPushOpened(const server::PushOpened& push) { pushes_[push.ticket] = push; }

void Checkers::OnEffect(const server::Effect& effect, const server::CoreState& state) {
  std::visit([this, &state](const auto& one) { Leaving(one, state); }, effect);
}

void Checkers::Answered(Ticket ticket, const char* what) {
  if (!answered_.insert(ticket).second) {
    Violate("ticket", absl::StrCat(what, " ", ticket, " was answered a second time"));
  }
}

void Checkers::CheckVersionDurable(const char* what, Version version, const server::CoreState& state) {
  if (version > state.run.version) {
    Violate("durable", absl::StrCat(what, " of version ", version, ", durable is ", state.run.version));
  }
}

void Checkers::Leaving(const server::SendWelcome& effect, const server::CoreState& state) {
  CheckVersionDurable("welcome", effect.version, state);
  if (effect.incarnation >= state.run.next_incarnation) {
    Violate("durable", absl::StrCat("incarnation ", effect.incarnation, " was given out before it was recorded"));
  }
  const auto session = sessions_.find(effect.session);
  if (session == sessions_.end()) return;
  const auto [it, first] = incarnations_.try_emplace(effect.incarnation, session->second);
  if (!first && it->second != session->second) {
    Violate("fencing",
            absl::StrCat("incarnation ", effect.incarnation, " is ", it->second, "'s and ", session->second, "'s"));
  }
}

void Checkers::Leaving(const server::SendAssignment& effect, const server::CoreState& state) {
  const server::Assignment& assignment = effect.assignment;
  CheckVersionDurable("assignment", assignment.round, state);
  const auto session = sessions_.find(effect.session);
  if (session == sessions_.end() || !state.round || state.round->number != assignment.round) {
    if (state.run.version == assignment.round && assignment.inner_steps > 0) {
      Violate("durable", absl::StrCat("round ", assignment.round, " was assigned before it was recorded"));
    }
    return;
  }
  const auto entry = state.round->entries.find(session->second);
  if (entry == state.round->entries.end() || !(entry->second.assignment == assignment)) {
    Violate("durable",
            absl::StrCat("round ", assignment.round, ": ", session->second, " was assigned what is not recorded"));
  }
}

void Checkers::Leaving(const server::SendRoundClosed& effect, const server::CoreState& state) {
  CheckVersionDurable("round closed", effect.version, state);
}

void Checkers::Leaving(const server::AnswerPush& effect, const server::CoreState& state) {
  Answered(effect.ticket, "push");
  const auto it = pushes_.find(effect.ticket);
  if (it == pushes_.end() || effect.outcome == server::PushOutcome::kRoundAborted) return;
  const server::PushOpened& push = it->second;
  const server::RecordedPush* recorded = state.pushes.Find({push.sender.worker, push.round, push.fragment});
  const bool forgotten = push.round + server::PushRegister::kRoundsKept <= state.run.version;
  if (recorded == nullptr ? !forgotten : recorded->outcome != effect.outcome) {
    Violate("durable",
            absl::StrCat(push.sender.worker.name, "#", push.sender.worker.incarnation, " round ", push.round,
                         " was answered ", server::PushOutcomeName(effect.outcome), " before that was recorded"));
  }
}

void Checkers::Leaving(const server::RefusePush& effect, const server::CoreState&) { Answered(effect.ticket, "push"); }

void Checkers::Leaving(const server::AnswerPushStatus& effect, const server::CoreState&) {
  Answered(effect.ticket, "push status");
}

void Checkers::Leaving(const server::ServePull& effect, const server::CoreState& state) {
  Answered(effect.ticket, "pull");
  CheckVersionDurable("pull", effect.version, state);
  if (effect.form != server::PullForm::kLive && effect.version < versions_.size() &&
      effect.view_digest != versions_[effect.version].view) {
    Violate("pull", absl::StrCat("version ", effect.version, " is said to have digest ", effect.view_digest,
                                 ", it has ", versions_[effect.version].view));
  }
}

void Checkers::OnEvictionAnswered(const std::string& worker, bool evicted, const absl::Status& status,
                                  const server::CoreState& state) {
  const auto member = state.members.find(worker);
  const bool is_out = member != state.members.end() && member->second.reason == server::Reason::kEvicted;
  if (status.ok() && is_out != evicted) {
    Violate("durable", absl::StrCat(worker, evicted ? " was said to be evicted" : " was said to be let in again",
                                    ", and no record of it is durable"));
  }
}

void Checkers::Leaving(const server::AnswerEvict& effect, const server::CoreState&) {
  Answered(effect.ticket, "eviction");
}

void Checkers::Leaving(const server::RefusePull& effect, const server::CoreState&) { Answered(effect.ticket, "pull"); }

void Checkers::Leaving(const server::StartCommit& effect, const server::CoreState& state) {
  if (!state.round || !state.round->decision || !(*state.round->decision == effect)) {
    Violate("durable", absl::StrCat("the commit of round ", effect.round, " began before its decision was recorded"));
  }
}

void Checkers::Leaving(const server::StartCheckpoint& effect, const server::CoreState& state) {
  CheckVersionDurable("checkpoint", effect.snapshot.version, state);
}

void Checkers::Leaving(const server::Decision& effect, const server::CoreState&) {
  if (effect.reason == server::Reason::kLeftOut) left_out_.insert({effect.round, effect.worker.name});
}

}  // namespace autoloco::sim
