// The round commit in plain loops over whole vectors: slow, easy to read, kept for ever. What the fused pass must equal
// bit for bit; never used by the server.
#ifndef AUTOLOCO_SERVER_KERNELS_COMMIT_REFERENCE_H_
#define AUTOLOCO_SERVER_KERNELS_COMMIT_REFERENCE_H_

#include "absl/status/statusor.h"
#include "server/kernels/commit.h"

namespace autoloco::server {

// As Commit, on one thread; errors as ApplyOuterStepReference. The statistics add up in another order than the pass's
// and agree to rounding. REQUIRES: inputs.broadcast.
absl::StatusOr<CommitResult> CommitReference(const CommitInputs& inputs, const CommitBuffers& buffers);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_COMMIT_REFERENCE_H_
