// The training side of the worker: one thread that owns the trainer, the data and the base parameters, and does one job
// after another. What comes of a job arrives as an event.
//
// Where the coding of deltas loses something, that is carried to the next delta (error feedback): what is sent is delta
// + residual, and what is left of it becomes the residual if the delta counts. Until that is known both are kept.
#ifndef AUTOLOCO_WORKER_RUNTIME_ENGINE_H_
#define AUTOLOCO_WORKER_RUNTIME_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/flat_buffer.h"
#include "common/base/mutex.h"
#include "common/base/parallel.h"
#include "common/tensor/layout.h"
#include "worker/core/types.h"
#include "worker/data/dataset.h"
#include "worker/runtime/base_buffer.h"
#include "worker/runtime/interval_runner.h"
#include "worker/runtime/ports.h"
#include "worker/runtime/progress_board.h"
#include "worker/runtime/run_settings.h"
#include "worker/runtime/trainer_factory.h"
#include "worker/runtime/worker_state.h"

namespace autoloco::worker {

struct EngineOptions {
  std::string data;  // text file, or folder of them
  DeviceOptions device;
  // Where deltas and the optimizer's state are saved, borrowed for the engine's life; null: nowhere.
  WorkerState* state = nullptr;
  std::shared_ptr<const EncodedDelta> saved = nullptr;  // the delta that was there: it waits as if just encoded
};

// Methods are called by the run loop's thread; jobs run on the engine's own. One job at a time: the caller waits for
// the event of one job before it gives the next.
class Engine {
 public:
  // The pointers are borrowed for the engine's life.
  Engine(EngineOptions options, TrainerFactory* factory, const Clock* clock, ProgressBoard* board, EventSink* sink);
  // Cancels the job under way and waits for its end.
  ~Engine();

  // Builds the model, opens the data and loads the optimizer's state if one was saved in run `run_id`; posts Prepared.
  // Called once.
  void StartPrepare(const RunSettings& settings, const std::string& run_id);
  // Posts EvaluationEnded.
  void StartEvaluation(const Assignment& assignment);
  // Posts TrainingEnded; when it is OK, the delta waits to be encoded.
  void StartTraining(const Assignment& assignment);
  // Posts DeltaEncoded; when it is OK, delta() has the delta of the interval trained last, and it is saved as one of
  // `owner` with what this worker carries to the next interval. `previous_counts`: so does the delta encoded before.
  // One that could not be saved is sent all the same. INVALID_ARGUMENT: it is not finite, with the first tensor that is
  // not. REQUIRES: the last training was of `assignment` and OK, and has not been encoded; the base is still the one
  // that it started from.
  void StartEncoding(const Assignment& assignment, const Identity& owner, bool previous_counts);
  // The job under way ends before its next step.
  void Cancel() { stop_.cancel = true; }
  // The same; a training gives what it has when that is at least so many steps.
  void EndTrainingEarly(std::uint32_t steps_min) { stop_.end_with_steps = steps_min; }
  // No job is under way.
  bool idle() const { return !busy_; }

  // The base parameters. REQUIRES: Prepared was OK. Written by a pull while no job runs; BaseChanged says so
  // afterwards.
  BaseBuffer* base() { return &base_; }
  void BaseChanged() { loaded_ = false; }
  // REQUIRES: StartPrepare was called.
  const RunSettings& settings() const { return settings_; }
  // REQUIRES: Prepared was OK.
  const Layout& layout() const { return layout_; }
  std::uint64_t data_samples() const { return dataset_->sample_count(); }
  std::uint64_t data_hash() const { return dataset_->fingerprint(); }

  // The last encoded delta, until DropDelta of its round; null: none.
  std::shared_ptr<const EncodedDelta> delta() const;
  void DropDelta(Round round);

 private:
  void Prepare(const std::string& run_id);
  void Evaluate(const Assignment& assignment);
  void Train(const Assignment& assignment);
  void Encode(const Assignment& assignment, const Identity& owner, bool previous_counts);
  absl::Status PrepareOrFail();
  absl::Status AllocateBuffers();
  absl::Status RestoreState(const std::string& run_id);
  absl::Status SaveState(const HeldDelta& held, const EncodedDelta& delta);
  absl::Status LoadBase();
  absl::Status TrainOrFail(const Assignment& assignment);
  absl::StatusOr<std::string> EncodeDelta(CodingReport* report);
  EngineTools Tools();
  // The job has ended: says so after the engine counts as idle.
  void End(Event event);

  const EngineOptions options_;
  TrainerFactory* const factory_;
  const Clock* const clock_;
  ProgressBoard* const board_;
  EventSink* const sink_;

  // Set before or by Prepare, constant afterwards.
  RunSettings settings_;
  Layout layout_;
  std::unique_ptr<Dataset> dataset_;

  BaseBuffer base_;

  // The engine's thread's.
  std::unique_ptr<Trainer> trainer_;
  FlatBuffer trained_;                       // parameters after the interval
  IntervalReport report_;                    // of it
  FlatBuffer residual_;                      // that the delta encoded last has carried; empty: the coding loses nothing
  FlatBuffer next_residual_;                 // what that delta has left
  FlatBuffer first_moment_, second_moment_;  // on their way to the disk; empty where nothing is saved

  std::atomic<bool> loaded_{false};  // the trainer holds the base
  StopSignal stop_;
  std::atomic<bool> busy_{false};

  mutable Mutex mutex_;
  std::shared_ptr<const EncodedDelta> delta_ ABSL_GUARDED_BY(mutex_);

  WorkPool pool_{1};  // last: its thread ends first
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_ENGINE_H_
