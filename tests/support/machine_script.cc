#include "tests/support/machine_script.h"

#include "common/base/check.h"

namespace autoloco::worker {

Assignment IntervalOf(Round round, std::uint32_t evaluation_parts) {
  return {.round = round,
          .inner_steps = 10,
          .first_inner_step = 10 * round,
          .first_sample = 40 * round,
          .sample_count = 40,
          .evaluation_part = 0,
          .evaluation_parts = evaluation_parts};
}

MachineScript::MachineScript(MachineConfig config) : machine_(config, now_) { Say(TimerFired{}); }

void MachineScript::RunTimers(absl::Duration duration) {
  const absl::Time end = now_ + duration;
  for (int fired = 0; !machine_.finished(); ++fired) {
    AUTOLOCO_CHECK(fired < 100000);  // a deadline that stays due for ever
    const std::optional<absl::Time> deadline = machine_.NextDeadline();
    if (!deadline || *deadline > end) break;
    now_ = std::max(now_, *deadline);
    Say(TimerFired{});
  }
  now_ = end;
}

void MachineScript::Say(const Event& event) {
  const std::size_t before = effects_.size();
  machine_.Step(now_, event, &effects_);
  for (std::size_t i = before; i < effects_.size(); ++i) {
    if (const auto* open = std::get_if<OpenSession>(&effects_[i])) session_ = open->session;
    if (const auto* pull = std::get_if<StartPull>(&effects_[i])) pull_ = pull->ticket;
    if (const auto* push = std::get_if<StartPush>(&effects_[i])) push_ = push->ticket;
    if (const auto* evaluation = std::get_if<StartEvaluation>(&effects_[i])) {
      evaluating_ = evaluation->assignment.round;
      last_work_evaluation_ = true;
    }
    if (const auto* training = std::get_if<StartTraining>(&effects_[i])) {
      training_ = training->assignment.round;
      last_work_evaluation_ = false;
    }
    if (const auto* encoding = std::get_if<StartEncoding>(&effects_[i])) encoding_ = encoding->assignment.round;
  }
}

void MachineScript::Welcome(Incarnation incarnation, Version version, const std::string& run_id) {
  Say(Welcomed{.session = session_,
               .identity = {.run_id = run_id, .incarnation = incarnation},
               .version = version,
               .heartbeat = absl::Seconds(2)});
}

void MachineScript::WelcomeHeld(Incarnation incarnation, Version version, bool send, const std::string& reason) {
  Say(Welcomed{.session = session_,
               .identity = {.run_id = "run-1", .incarnation = incarnation},
               .version = version,
               .heartbeat = absl::Seconds(2),
               .send_held = send,
               .held_reason = reason});
}

void MachineScript::Join(Version version) {
  Welcome(1, version);
  Say(Prepared{});
  EndPull(version, "digest");
}

void MachineScript::Start(Version version, std::uint32_t evaluation_parts) {
  Join(version);
  Assign(IntervalOf(version, evaluation_parts));
}

void MachineScript::Assign(const Assignment& assignment) {
  Say(Assigned{.session = session_, .assignment = assignment});
}

void MachineScript::CloseRound(Round round) {
  Say(RoundClosed{.session = session_, .round = round, .version = round + 1});
}

void MachineScript::EndSession(const absl::Status& status) { Say(SessionEnded{.session = session_, .status = status}); }

void MachineScript::EndPull(Version version, const std::string& digest) { EndPull(PullForm::kFull, version, digest); }

void MachineScript::EndPull(PullForm form, Version version, const std::string& digest) {
  Say(PullEnded{.ticket = pull_,
                .status = absl::OkStatus(),
                .form = form,
                .confirmed = !digest.empty(),
                .version = version,
                .digest = digest});
}

void MachineScript::EndProbe(bool same, Version version, const std::string& digest) {
  Say(PullEnded{.ticket = pull_,
                .status = absl::OkStatus(),
                .probe = true,
                .form = same ? PullForm::kNothing : PullForm::kLive,
                .confirmed = same,
                .version = version,
                .digest = digest});
}

void MachineScript::FailPull(const absl::Status& status) { Say(PullEnded{.ticket = pull_, .status = status}); }

void MachineScript::EndEvaluation() {
  Say(EvaluationEnded{.round = evaluating_,
                      .status = absl::OkStatus(),
                      .part = {.version = evaluating_, .loss_sum = 12.5, .tokens = 5}});
}

void MachineScript::EndTraining() {
  Say(TrainingEnded{.round = training_, .status = absl::OkStatus()});
  if (encoding_) EndEncoding();
}

void MachineScript::EndEncoding() {
  AUTOLOCO_CHECK(encoding_.has_value());
  const Round round = *encoding_;
  encoding_.reset();
  Say(DeltaEncoded{.round = round, .status = absl::OkStatus(), .digest = "payload"});
}

void MachineScript::EndWork(const absl::Status& status) {
  if (last_work_evaluation_) {
    Say(EvaluationEnded{.round = evaluating_, .status = status, .part = {}});
  } else {
    Say(TrainingEnded{.round = training_, .status = status});
  }
}

void MachineScript::AnswerPush(PushOutcome outcome, const std::string& reason) {
  Say(PushEnded{.ticket = push_, .status = absl::OkStatus(), .outcome = outcome, .reason = reason});
}

void MachineScript::FailPush(const absl::Status& status) {
  Say(PushEnded{.ticket = push_, .status = status, .outcome = PushOutcome::kAccepted, .reason = ""});
}

int MachineScript::Noted(NoteKind kind) const {
  int count = 0;
  for (const Note& note : All<Note>()) count += note.kind == kind ? 1 : 0;
  return count;
}

}  // namespace autoloco::worker
