// The decision that closes a round: which deltas, with which weights, and the outer step they make. It is recorded
// before anything changes, and the same order of work runs again after a restart.
#ifndef AUTOLOCO_SERVER_CORE_START_COMMIT_H_
#define AUTOLOCO_SERVER_CORE_START_COMMIT_H_

#include <vector>

#include "common/base/ids.h"
#include "server/core/commit_method.h"
#include "server/core/outer_schedule.h"
#include "server/core/types.h"

namespace autoloco::server {

// Effect: turn the deltas into version round + 1. One at a time, answered by CommitDone. What is sent of the new
// version must be there before CommitDone is posted.
struct StartCommit {
  struct Contribution {
    PushKey push;
    double weight = 0;  // of the raw delta (combination.h); 1 / n for each of n that did equal work
    bool operator==(const Contribution&) const = default;
  };
  Round round = 0;
  OuterStep step;
  CommitMethod method;
  std::vector<Contribution> contributions;  // in name order: the order of the sum
  bool operator==(const StartCommit&) const = default;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_START_COMMIT_H_
