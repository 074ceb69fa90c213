// What a worker keeps on disk so that being started again costs it nothing: its last delta under its key, the position
// in the data behind it, the state of the inner optimizer after it, and what coding has lost before and with it. One
// file, so that they are always of one moment.
//
//   LOCK                  held with flock(2) while a worker runs on the folder
//   interval.safetensors  exp_avg, exp_avg_sq (the optimizer's moments, flat in layout order); residual, next_residual
//                         (before the delta and after it; empty where coding loses nothing); delta (the payload's
//                         bytes, filled up to whole fp32 words with zeros); the rest in __metadata__
//
// The file is replaced in one step before its delta is sent. Every part has a digest. A file that is damaged, of
// another version or of another worker is named in the log and ignored: the worker then starts as if it had none.
#ifndef AUTOLOCO_WORKER_RUNTIME_WORKER_STATE_H_
#define AUTOLOCO_WORKER_RUNTIME_WORKER_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/file.h"
#include "worker/core/types.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// A delta as it was saved.
struct SavedDelta {
  HeldDelta held;
  std::shared_ptr<const EncodedDelta> encoded;
};

// What a worker carries from interval to interval, borrowed: all spans in layout order.
struct CarriedState {
  std::span<const float> first_moment;  // of the optimizer
  std::span<const float> second_moment;
  std::uint64_t steps = 0;                    // behind them
  std::span<const float> residual = {};       // that the delta carried; empty: its coding loses nothing
  std::span<const float> next_residual = {};  // that it left; as long
};
// Where it is read to; residuals are empty where none are wanted.
struct CarriedBuffers {
  std::span<float> first_moment;
  std::span<float> second_moment;
  std::span<float> residual = {};
  std::span<float> next_residual = {};
};

// Holds the lock for as long as it lives. Movable. Not thread-safe: one thread at a time.
class WorkerState {
 public:
  // Makes `folder` and its parents where they are missing and locks it. FAILED_PRECONDITION "state folder X is already
  // in use by pid N"; errors of the file system as FileError.
  static absl::StatusOr<WorkerState> Open(const std::string& folder, const std::string& worker);

  // The delta saved last; none when nothing (readable) is saved, which the log then says.
  std::optional<SavedDelta> LoadDelta() const;

  // Fills the buffers with what was saved last in run `run_id` and returns the number of steps behind the moments.
  // Where none was saved the residuals become zero. NOT_FOUND: nothing is saved, or in another run. INVALID_ARGUMENT,
  // DATA_LOSS: the file does not fit or is damaged; the buffers are undefined then.
  absl::StatusOr<std::uint64_t> Load(const std::string& run_id, std::uint64_t layout_hash,
                                     const CarriedBuffers& buffers) const;

  // Replaces what was saved; when OK is returned it is durable. Errors of the file system as FileError: what was saved
  // before is still there.
  absl::Status Save(const HeldDelta& held, const EncodedDelta& encoded, const CarriedState& state) const;

 private:
  WorkerState(FileLock lock, std::string path, std::string worker);

  FileLock lock_;
  std::string path_;    // of the file
  std::string worker_;  // name
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_WORKER_STATE_H_
