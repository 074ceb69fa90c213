// One commit on the parameters in memory: what the commit thread does with a round that closed, and what recovery and
// `autoloco verify` do again with one that was recorded.
#ifndef AUTOLOCO_SERVER_RUNTIME_APPLY_COMMIT_H_
#define AUTOLOCO_SERVER_RUNTIME_APPLY_COMMIT_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/parallel.h"
#include "server/core/outer_schedule.h"
#include "server/core/types.h"
#include "server/kernels/robust_mean.h"
#include "server/runtime/parameter_store.h"

namespace autoloco::server {

struct CommitDelta {
  std::span<const std::byte> payload;  // names its codec itself; borrowed for the call
  std::string worker;
  double weight = 0;
};

struct CommitOutcome {
  std::string params_digest;  // of the next version
  CommitStats stats;
};

// Turns the parameters into the next version: the same deltas, in the same order, give the same bits, whatever the
// number of threads. After an error the parameters are of no version and must not be used: INTERNAL or
// INVALID_ARGUMENT a delta cannot be decoded, OUT_OF_RANGE the values are no longer finite.
absl::StatusOr<CommitOutcome> ApplyCommit(std::span<const CommitDelta> deltas, const OuterStep& step,
                                          const CombineRule& combine, ParameterStore* parameters, WorkPool* pool);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_APPLY_COMMIT_H_
