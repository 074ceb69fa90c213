// The outcomes of the pushes that were answered, so that the same push gets the same answer.
#ifndef AUTOLOCO_SERVER_CORE_PUSH_REGISTER_H_
#define AUTOLOCO_SERVER_CORE_PUSH_REGISTER_H_

#include <map>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "server/core/types.h"

namespace autoloco::server {

struct RecordedPush {
  std::string payload_digest;
  PushOutcome outcome = PushOutcome::kAccepted;
  std::string reason;
  bool operator==(const RecordedPush&) const = default;
};

// Not thread-safe; the core's own. Holds the last kRoundsKept rounds: an older push is stale whatever became of it.
class PushRegister {
 public:
  static constexpr Round kRoundsKept = 16;

  const RecordedPush* Find(const PushKey& key) const {
    const auto it = pushes_.find(key);
    return it == pushes_.end() ? nullptr : &it->second;
  }
  // What was recorded under `key` before, if anything, gives way.
  void Record(const PushKey& key, RecordedPush push) { pushes_.insert_or_assign(key, std::move(push)); }
  // Called when `round` was aborted: it opens again under the same number, and nothing of it has counted.
  void Forget(Round round) { pushes_.erase(pushes_.lower_bound(First(round)), pushes_.lower_bound(First(round + 1))); }
  // Called when `round` has closed.
  void Trim(Round round) {
    if (round < kRoundsKept) return;
    pushes_.erase(pushes_.begin(), pushes_.lower_bound(First(round - kRoundsKept + 1)));
  }

  const std::map<PushKey, RecordedPush, PushKeyOrder>& all() const { return pushes_; }
  bool operator==(const PushRegister&) const = default;

 private:
  static PushKey First(Round round) { return {{"", 0}, round, 0}; }

  std::map<PushKey, RecordedPush, PushKeyOrder> pushes_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_PUSH_REGISTER_H_
