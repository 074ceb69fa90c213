#include "worker/runtime/engine.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/decoder.h"
#include "common/tensor/difference.h"
#include "common/tensor/finite.h"

namespace autoloco::worker {
namespace {

void LogEncoded(Round round, const CodingReport& coding) {
  Log line(LogLevel::kInfo, "delta_encoded");
  line.Add("round", round).Add("bytes", coding.bytes).Add("bits_per_value", coding.bits_per_value());
  if (coding.squared_error > 0) line.Add("snr_db", coding.snr_db());
}

}  // namespace

Engine::Engine(EngineOptions options, TrainerFactory* factory, const Clock* clock, ProgressBoard* board,
               EventSink* sink)
    : options_(std::move(options)),
      factory_(factory),
      clock_(clock),
      board_(board),
      sink_(sink),
      delta_(options_.saved) {}

Engine::~Engine() { Cancel(); }

void Engine::StartPrepare(const RunSettings& settings, const std::string& run_id) {
  AUTOLOCO_CHECK(!busy_.exchange(true));
  settings_ = settings;
  pool_.Post([this, run_id] { Prepare(run_id); });
}

void Engine::StartEvaluation(const Assignment& assignment) {
  AUTOLOCO_CHECK(!busy_.exchange(true));
  stop_.Reset();
  pool_.Post([this, assignment] { Evaluate(assignment); });
}

void Engine::StartTraining(const Assignment& assignment) {
  AUTOLOCO_CHECK(!busy_.exchange(true));
  stop_.Reset();
  pool_.Post([this, assignment] { Train(assignment); });
}

void Engine::StartEncoding(const Assignment& assignment, const Identity& owner, bool previous_counts) {
  AUTOLOCO_CHECK(!busy_.exchange(true));
  pool_.Post([this, assignment, owner, previous_counts] { Encode(assignment, owner, previous_counts); });
}

std::shared_ptr<const EncodedDelta> Engine::delta() const {
  MutexLock lock(&mutex_);
  return delta_;
}

void Engine::DropDelta(Round round) {
  MutexLock lock(&mutex_);
  if (delta_ != nullptr && delta_->round == round) delta_.reset();
}

void Engine::End(Event event) {
  busy_ = false;
  sink_->Post(std::move(event));
}

EngineTools Engine::Tools() {
  return {.trainer = trainer_.get(),
          .dataset = dataset_.get(),
          .settings = &settings_,
          .clock = clock_,
          .board = board_,
          .stop = &stop_};
}

void Engine::Prepare(const std::string& run_id) {
  absl::Status status = PrepareOrFail();
  if (status.ok()) status = AllocateBuffers();
  if (status.ok() && options_.state != nullptr) status = RestoreState(run_id);
  End(Prepared{.status = std::move(status)});
}

absl::Status Engine::AllocateBuffers() {
  const std::uint64_t count = layout_.value_count();
  AUTOLOCO_ASSIGN_OR_RETURN(base_, BaseBuffer::Allocate(count));
  AUTOLOCO_ASSIGN_OR_RETURN(trained_, FlatBuffer::Allocate(count));
  if (!IsLossless(settings_.coding.codec)) {
    AUTOLOCO_ASSIGN_OR_RETURN(residual_, FlatBuffer::Allocate(count));
    AUTOLOCO_ASSIGN_OR_RETURN(next_residual_, FlatBuffer::Allocate(count));
  }
  if (options_.state != nullptr) {
    AUTOLOCO_ASSIGN_OR_RETURN(first_moment_, FlatBuffer::Allocate(count));
    AUTOLOCO_ASSIGN_OR_RETURN(second_moment_, FlatBuffer::Allocate(count));
  }
  return absl::OkStatus();
}

// A state that cannot be used costs some warm-up of the moments and what coding had lost, not the worker.
absl::Status Engine::RestoreState(const std::string& run_id) {
  const absl::StatusOr<std::uint64_t> steps = options_.state->Load(run_id, layout_.hash(),
                                                                   {.first_moment = first_moment_.values(),
                                                                    .second_moment = second_moment_.values(),
                                                                    .residual = residual_.values(),
                                                                    .next_residual = next_residual_.values()});
  if (steps.ok()) {
    AUTOLOCO_RETURN_IF_ERROR(trainer_->LoadOptimizerState(first_moment_.values(), second_moment_.values(), *steps));
    Log(LogLevel::kInfo, "optimizer_state_loaded").Add("steps", *steps);
    return absl::OkStatus();
  }
  std::ranges::fill(residual_.values(), 0.0F);
  std::ranges::fill(next_residual_.values(), 0.0F);
  Log(absl::IsNotFound(steps.status()) ? LogLevel::kInfo : LogLevel::kWarning, "optimizer_state_fresh")
      .Add("reason", std::string(steps.status().message()));
  return absl::OkStatus();
}

absl::Status Engine::PrepareOrFail() {
  AUTOLOCO_ASSIGN_OR_RETURN(dataset_, Dataset::Open({.path = options_.data,
                                                     .context = settings_.shape.context,
                                                     .held_out_fraction = settings_.held_out_fraction,
                                                     .seed = settings_.seed}));
  DeviceOptions device = options_.device;
  // Equal results on unequal machines need an equal number of threads.
  if (settings_.strict && device.threads == 0) device.threads = 1;
  AUTOLOCO_ASSIGN_OR_RETURN(trainer_, factory_->Make(settings_.shape, settings_.adamw, device));
  AUTOLOCO_ASSIGN_OR_RETURN(layout_, MakeDecoderLayout(settings_.shape));
  const std::string difference = FirstDifference(layout_, trainer_->layout());
  if (!difference.empty()) return absl::InternalError(absl::StrCat("layout of the trainer: ", difference));
  Log(LogLevel::kInfo, "prepared")
      .Add("parameters", layout_.value_count())
      .Add("samples", dataset_->sample_count())
      .Add("held_out_windows", dataset_->held_out_count())
      .Add("trainer", trainer_->Description());
  board_->Ready(settings_.total_inner_steps);
  return absl::OkStatus();
}

absl::Status Engine::LoadBase() {
  if (loaded_) return absl::OkStatus();
  AUTOLOCO_RETURN_IF_ERROR(trainer_->SetParameters(base_.values()));
  loaded_ = true;
  return absl::OkStatus();
}

void Engine::Evaluate(const Assignment& assignment) {
  EvaluationEnded ended{.round = assignment.round, .status = LoadBase(), .part = {}};
  if (ended.status.ok()) {
    absl::StatusOr<EvaluationPart> part = RunEvaluation(Tools(), assignment);
    ended.status = part.status();
    if (part.ok()) ended.part = *part;
  }
  End(std::move(ended));
}

void Engine::Train(const Assignment& assignment) {
  End(TrainingEnded{.round = assignment.round, .status = TrainOrFail(assignment)});
}

absl::Status Engine::TrainOrFail(const Assignment& assignment) {
  AUTOLOCO_RETURN_IF_ERROR(LoadBase());
  loaded_ = false;
  AUTOLOCO_ASSIGN_OR_RETURN(report_, RunInterval(Tools(), assignment));
  return trainer_->GetParameters(trained_.values());
}

void Engine::Encode(const Assignment& assignment, const Identity& owner, bool previous_counts) {
  DeltaEncoded ended{.round = assignment.round, .status = absl::OkStatus(), .digest = ""};
  if (previous_counts) std::swap(residual_, next_residual_);
  auto delta = std::make_shared<EncodedDelta>();
  CodingReport coding;
  absl::StatusOr<std::string> payload = EncodeDelta(&coding);
  ended.status = payload.status();
  if (payload.ok()) {
    delta->round = assignment.round;
    delta->layout_hash = layout_.hash();
    delta->codec = settings_.coding.codec;
    delta->payload = *std::move(payload);
    delta->digest = Digest128(std::as_bytes(std::span(delta->payload)));
    delta->report = report_;
    ended.digest = delta->digest;
    LogEncoded(assignment.round, coding);
    board_->DeltaEncoded(coding);
    const absl::Status saved = SaveState({.owner = owner, .assignment = assignment, .digest = ended.digest}, *delta);
    if (!saved.ok()) {
      Log(LogLevel::kWarning, "state_not_saved")
          .Add("round", assignment.round)
          .Add("reason", std::string(saved.message()));
    }
    MutexLock lock(&mutex_);
    delta_ = std::move(delta);
  }
  End(std::move(ended));
}

absl::StatusOr<std::string> Engine::EncodeDelta(CodingReport* report) {
  const std::span<const float> base = base_.values();
  const std::span<const float> trained = std::as_const(trained_).values();
  BlockEncoder encoder(settings_.coding);
  std::vector<float> differences(kBlockValues);  // of one block: stays in the cache from here to its bytes
  std::string payload;
  payload.reserve(MaxPayloadBytes(trained.size(), settings_.coding.codec));
  for (std::uint64_t index = 0; index < BlockCount(trained.size()); ++index) {
    const std::uint64_t begin = index * kBlockValues;
    const std::uint64_t count = BlockSize(trained.size(), index);
    const std::span<float> block(differences.data(), count);
    if (!Subtract(base.subspan(begin, count), trained.subspan(begin, count), block)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is not finite: ", CheckFinite(block, layout_, begin).message()));
    }
    const auto number = static_cast<std::uint32_t>(index);
    absl::StatusOr<CodingReport> coded = CodingReport();
    if (residual_.size() == 0) {
      coded = encoder.Encode(number, block, &payload);
    } else {
      coded = encoder.EncodeWithResidual(number, block, std::as_const(residual_).values().subspan(begin, count),
                                         next_residual_.values().subspan(begin, count), &payload);
    }
    AUTOLOCO_RETURN_IF_ERROR(coded.status());
    *report += *coded;
  }
  return payload;
}

absl::Status Engine::SaveState(const HeldDelta& held, const EncodedDelta& delta) {
  if (options_.state == nullptr) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(const std::uint64_t steps,
                            trainer_->SaveOptimizerState(first_moment_.values(), second_moment_.values()));
  return options_.state->Save(held, delta,
                              {.first_moment = first_moment_.values(),
                               .second_moment = second_moment_.values(),
                               .steps = steps,
                               .residual = residual_.values(),
                               .next_residual = next_residual_.values()});
}

}  // namespace autoloco::worker
