#include "tests/support/core_script.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/core/token_ledger.h"

namespace autoloco::server {

Layout SmallLayout() { return *Layout::Make({{"a.weight", {2, 3}}, {"b.weight", {2}}}); }

CoreConfig SmallConfig() {
  CoreConfig config;
  config.run_id = "run-1";
  config.protocol_version = 1;
  config.layout = SmallLayout();
  config.interval.total_inner_steps = 23;
  config.interval.steps = 5;
  config.interval.steps_min = 2;
  config.interval.steps_max = 40;
  config.interval.schedule = {.schedule = Schedule::kConstant, .learning_rate = 0.01, .total_steps = 23};
  config.batch_size = 4;
  config.min_workers = 1;
  config.start_workers = 2;
  config.lease = absl::Seconds(15);
  config.disconnect_grace = absl::Seconds(3);
  config.deadline.quorum_share = 1;
  config.join_timeout = absl::Seconds(600);
  config.finish_timeout = absl::Seconds(120);
  config.max_payload_bytes = 1000;
  return config;
}

CoreScript::CoreScript(CoreConfig config, const CoreState& state)
    : config_(std::move(config)), start_(state), machine_(config_, start_, now_), folded_(start_) {}

void CoreScript::Say(const Event& event) {
  const std::size_t before = effects_.size();
  const std::size_t stored = records_.size();
  machine_.Step(now_, event, &effects_);
  for (std::size_t i = before; i < effects_.size(); ++i) {
    if (const auto* welcome = std::get_if<SendWelcome>(&effects_[i])) {
      incarnations_[names_[welcome->session]] = welcome->incarnation;
    } else if (const auto* assignment = std::get_if<SendAssignment>(&effects_[i])) {
      assignments_[names_[assignment->session]] = assignment->assignment;
    } else if (const auto* commit = std::get_if<StartCommit>(&effects_[i])) {
      committing_ = commit->round;
    } else if (const auto* checkpoint = std::get_if<StartCheckpoint>(&effects_[i])) {
      checkpoints_.push_back(checkpoint->snapshot.version);
    } else if (const auto* store = std::get_if<StoreRecords>(&effects_[i])) {
      AUTOLOCO_CHECK(store->sequence == records_.size() + 1);
      records_.push_back(store->records);
      for (const Record& record : store->records) Apply(record, &folded_);
    }
  }
  AUTOLOCO_CHECK(machine_.DurableState() == folded_);
  AUTOLOCO_CHECK(Balances(folded_.ledger, OutstandingTokens(folded_.leases)));
  if (records_.size() > stored && records_.size() <= steps_stored_max_) Store();
}

void CoreScript::Store() { Say(RecordsStored{records_.size()}); }

CoreState CoreScript::StateAfter(std::size_t steps) const {
  CoreState state = start_;
  for (std::size_t i = 0; i < steps; ++i) {
    for (const Record& record : records_[i]) Apply(record, &state);
  }
  return state;
}

void CoreScript::RunTimers(absl::Duration duration) {
  const absl::Time end = now_ + duration;
  for (auto next = machine_.NextDeadline(); next && *next <= end; next = machine_.NextDeadline()) {
    now_ = std::max(now_, *next);
    Say(TimerFired{});
    AUTOLOCO_CHECK(machine_.NextDeadline() != next || *next > now_);  // else it would spin
  }
  now_ = end;
}

Ticket CoreScript::Hello(const std::string& name) {
  const Ticket session = next_ticket_++;
  sessions_[name] = session;
  names_[session] = name;
  Say(HelloReceived{session, {"", {name, 0}}, 1});
  return session;
}

Ticket CoreScript::Reconnect(const std::string& name) {
  const Ticket session = next_ticket_++;
  sessions_[name] = session;
  names_[session] = name;
  Say(HelloReceived{session, SenderOf(name), 1});
  return session;
}

Ticket CoreScript::Join(const std::string& name) {
  const Ticket session = Hello(name);
  Ready(name);
  return session;
}

void CoreScript::Ready(const std::string& name) {
  Say(ReadyReceived{sessions_.at(name), SenderOf(name), config_.layout, 0, 1000, 7});
}

Ticket CoreScript::OpenPush(const std::string& name, Round round, const std::string& digest,
                            std::uint32_t inner_steps) {
  const Ticket ticket = next_ticket_++;
  PushOpened push;
  push.ticket = ticket;
  push.sender = SenderOf(name);
  push.round = round;
  push.payload_digest = digest;
  push.payload_bytes = 100;
  push.layout_hash = config_.layout.hash();
  push.report = report_;
  push.report.inner_steps = inner_steps;
  Say(push);
  return ticket;
}

Ticket CoreScript::Push(const std::string& name, const std::string& digest) {
  const Assignment& assignment = assignments_.at(name);
  const Ticket ticket = OpenPush(name, assignment.round, digest, assignment.inner_steps);
  Say(PushVerified{ticket, absl::OkStatus(), true, ""});
  return ticket;
}

void CoreScript::Evaluate(const std::string& name, double loss_sum, std::uint64_t tokens) {
  Progress progress;
  progress.phase = WorkerPhase::kEvaluating;
  progress.evaluation = EvaluationPart{assignments_.at(name).round, loss_sum, tokens};
  Say(ProgressReceived{sessions_.at(name), SenderOf(name), progress});
}

void CoreScript::Commit(const CommitStats& stats) {
  AUTOLOCO_CHECK(committing_.has_value());
  const Round round = *std::exchange(committing_, std::nullopt);
  Say(CommitDone{round, "digest", absl::StrCat("view ", round + 1), stats});
}

void CoreScript::Checkpoint(const absl::Status& status) {
  for (const Version version : std::exchange(checkpoints_, {})) Say(CheckpointDone{version, status});
}

int CoreScript::Decided(Reason reason) const {
  int count = 0;
  for (const Decision& decision : All<Decision>()) count += decision.reason == reason ? 1 : 0;
  return count;
}

}  // namespace autoloco::server
