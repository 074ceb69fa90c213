// One commit on the parameters in memory: what the commit thread does with a round that closed, and what recovery and
// `autoloco verify` do again with one that was recorded.
#ifndef AUTOLOCO_SERVER_RUNTIME_APPLY_COMMIT_H_
#define AUTOLOCO_SERVER_RUNTIME_APPLY_COMMIT_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/codec/codec.h"
#include "server/core/commit_method.h"
#include "server/core/outer_schedule.h"
#include "server/core/types.h"
#include "server/runtime/encoded_payload.h"
#include "server/runtime/parameter_store.h"

namespace autoloco::server {

struct CommitDelta {
  std::span<const std::byte> payload;  // names its codec itself; borrowed for the call
  std::string worker;
  double weight = 0;
};

struct CommitWork {
  Round round = 0;
  std::span<const CommitDelta> deltas;
  OuterStep step = {};
  CommitMethod method = {};
  BlockGuard* guard = nullptr;  // of whoever still reads version `round`; null: nobody
};

struct CommitOutcome {
  std::string params_digest;  // of the next version
  std::string view_digest;    // of what every worker will hold as that version
  CommitStats stats;
  CodingReport coding;                            // of the payload
  std::shared_ptr<const EncodedPayload> payload;  // what is sent of it
};

// Turns the parameters, of version work.round, into the next version: the same work gives the same bits, whatever the
// number of threads. The parameters have a view of their own afterwards if the method's broadcasts are lossy, and none
// otherwise. After an error they are of no version and must not be used: INTERNAL or INVALID_ARGUMENT a delta cannot be
// decoded or the method is none, OUT_OF_RANGE the values are no longer finite, RESOURCE_EXHAUSTED no memory for a view.
absl::StatusOr<CommitOutcome> ApplyCommit(const CommitWork& work, ParameterStore* parameters, WorkPool* pool);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_APPLY_COMMIT_H_
