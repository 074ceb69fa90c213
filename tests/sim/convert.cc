#include "tests/sim/convert.h"

namespace autoloco::sim {

worker::Assignment ToWorkerAssignment(const server::Assignment& assignment) {
  return {.round = assignment.round,
          .inner_steps = assignment.inner_steps,
          .first_inner_step = assignment.first_inner_step,
          .first_sample = assignment.first_sample,
          .sample_count = assignment.sample_count,
          .evaluation_part = assignment.evaluation_part,
          .evaluation_parts = assignment.evaluation_parts};
}

server::IntervalReport ToServerReport(const worker::IntervalReport& report) {
  server::IntervalReport out;
  out.inner_steps = report.inner_steps;
  out.tokens = report.tokens;
  out.learning_rate_sum = report.learning_rate_sum;
  out.loss_mean = report.loss_mean;
  out.loss_first = report.loss_first;
  out.loss_last = report.loss_last;
  out.gradient_norm_mean = report.gradient_norm_mean;
  out.step_seconds_mean = report.step_seconds_mean;
  return out;
}

server::WorkerPhase ToServerPhase(worker::WorkerPhase phase) {
  switch (phase) {
    case worker::WorkerPhase::kJoining: return server::WorkerPhase::kJoining;
    case worker::WorkerPhase::kTraining: return server::WorkerPhase::kTraining;
    case worker::WorkerPhase::kPushing: return server::WorkerPhase::kPushing;
    case worker::WorkerPhase::kWaiting: return server::WorkerPhase::kWaiting;
    case worker::WorkerPhase::kPulling: return server::WorkerPhase::kPulling;
    case worker::WorkerPhase::kEvaluating: return server::WorkerPhase::kEvaluating;
  }
  return server::WorkerPhase::kJoining;
}

worker::PullForm ToWorkerForm(server::PullForm form) {
  switch (form) {
    case server::PullForm::kUnspecified:
    case server::PullForm::kNothing: return worker::PullForm::kNothing;
    case server::PullForm::kFull: return worker::PullForm::kFull;
    case server::PullForm::kBroadcast: return worker::PullForm::kBroadcast;
    case server::PullForm::kLive: return worker::PullForm::kLive;
  }
  return worker::PullForm::kNothing;
}

worker::PushOutcome ToWorkerOutcome(server::PushOutcome outcome) {
  switch (outcome) {
    case server::PushOutcome::kAccepted: return worker::PushOutcome::kAccepted;
    case server::PushOutcome::kLate: return worker::PushOutcome::kLate;
    case server::PushOutcome::kStale: return worker::PushOutcome::kStale;
    case server::PushOutcome::kNonFinite: return worker::PushOutcome::kNonFinite;
    case server::PushOutcome::kRoundAborted: return worker::PushOutcome::kRoundAborted;
    case server::PushOutcome::kNormOutlier: return worker::PushOutcome::kNormOutlier;
  }
  return worker::PushOutcome::kLate;
}

const char* MessageName(const ToServer& message) {
  constexpr const char* kNames[] = {"hello", "ready", "progress", "goodbye"};
  return kNames[message.index()];
}

const char* MessageName(const ToWorker& message) {
  constexpr const char* kNames[] = {"welcomed", "assigned", "round_closed", "aborted", "drained"};
  return kNames[message.index()];
}

}  // namespace autoloco::sim
