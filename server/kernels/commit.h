// The round commit, whole: from the deltas of a round, in one pass over the parameters, to the next version, what is
// sent of it, and its digests. outer_step.h has the arithmetic of the step.
//
// With a lossy broadcast the server keeps the view, which is what every worker holds. For every block, after the step:
//
//   what the view lacks   e = theta - view            fp32, rounded; it is the server's residual: nothing else is kept
//   broadcast             e encoded (common/codec)     what does not fit stays in theta - view for the next round
//   view                  view + decoded broadcast     fp32, rounded: the operation every worker does
//
// Workers start from the view, which is theta + e, where e is what quantizing the broadcast before has left. An interval
// pulls a part of e back, so that their deltas bring it home as if it were progress, and the momentum repeats it
// 1 / (1 - mu) times: rounding would enter the parameters by this door. Their common part of it, the echo, is taken out
// before the step, for each range of 4,096 values:
//
//   D = D - c e     c = min(max(sum of D e / sum of e^2, 0), 1), in fp64, rounded once; e = view - theta as before the step;
//                     0 for a last range of fewer than 64 values
//
// D without echo does not know e, so c is the least-squares estimate of the part pulled back. tests/bench/learning has
// what that is worth.
//
// With the lossless codec (fp32) the parameters are the view: no third vector, and what is sent is theta itself.
//
// A block is read, decoded, combined, stepped, coded and digested on one thread before the next one is touched; no
// buffer of the size of the model exists beside parameters, momentum and view. Everything the commit gives, to the last
// byte, depends on the order of the contributions and neither on threads nor on what arrived when.
// commit_reference.h is the same in plain loops.
#ifndef AUTOLOCO_SERVER_KERNELS_COMMIT_H_
#define AUTOLOCO_SERVER_KERNELS_COMMIT_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/parallel.h"
#include "common/codec/codec.h"
#include "server/kernels/outer_step.h"

namespace autoloco::server {

// Whoever reads the view while a commit is under way: every change of it goes through here.
class ViewGuard {
 public:
  virtual ~ViewGuard() = default;
  // Calls `change`, which gives block `block` of the view its next values, once. Called once a block, by any thread.
  virtual void Change(std::size_t block, absl::FunctionRef<void()> change) = 0;
};

// Whoever still needs the vectors as they were before the commit.
class BlockGuard {
 public:
  virtual ~BlockGuard() = default;
  // Returns when block `block` of all vectors may be changed. Called once a block, before anything of it changes, by
  // any thread; it may block.
  virtual void BeforeChange(std::size_t block) = 0;
};

// The vectors of the run, in layout order, changed in place. None overlaps another.
struct CommitBuffers {
  std::span<float> params;
  std::span<float> momentum;
  std::span<float> view;              // empty: the parameters are the view
  ViewGuard* view_guard = nullptr;    // null: nobody reads the view meanwhile
  BlockGuard* block_guard = nullptr;  // null: nobody needs the old values
};

struct CommitInputs {
  std::span<const Contribution> contributions;
  OuterCoefficients coefficients;
  // How the broadcast is coded; none: nothing is encoded and no digest is taken.
  std::optional<Coding> broadcast;
};

struct CommitResult {
  OuterStepStatistics statistics;
  // What is sent, by block: of the differences to the old view, or, where there is no view, of the parameters.
  std::vector<std::string> blocks;
  CodingReport coding;        // of the blocks
  std::string params_digest;  // Digest128
  std::string view_digest;    // the same one, where there is no view
};

// REQUIRES: buffers.momentum as long as buffers.params; buffers.view as long where inputs.broadcast is a lossy coding,
// and empty otherwise.
//
// Errors as ApplyOuterStep. A step that gives values that are not finite is no error: the statistics say so, and blocks
// and digests are then of no use.
absl::StatusOr<CommitResult> Commit(const CommitInputs& inputs, const CommitBuffers& buffers, WorkPool* pool);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_COMMIT_H_
