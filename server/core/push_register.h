// The outcomes of the pushes that were answered, so that the same push gets the same answer.
#ifndef AUTOLOCO_SERVER_CORE_PUSH_REGISTER_H_
#define AUTOLOCO_SERVER_CORE_PUSH_REGISTER_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/ids.h"
#include "server/core/types.h"

namespace autoloco::server {

struct RecordedPush {
  std::string payload_digest;
  PushOutcome outcome = PushOutcome::kAccepted;
  std::string reason;
};

// Not thread-safe; the core's own. Holds the last kRoundsKept rounds: an older push is stale whatever became of it.
class PushRegister {
 public:
  static constexpr Round kRoundsKept = 16;

  const RecordedPush* Find(const PushKey& key) const {
    const auto it = pushes_.find(Key(key));
    return it == pushes_.end() ? nullptr : &it->second;
  }
  // REQUIRES: nothing is recorded under `key` yet.
  void Record(const PushKey& key, RecordedPush push) { pushes_.emplace(Key(key), std::move(push)); }
  // Called when `round` was aborted: it opens again under the same number, and nothing of it has counted.
  void Forget(Round round) {
    pushes_.erase(pushes_.lower_bound({round, "", 0, 0}), pushes_.lower_bound({round + 1, "", 0, 0}));
  }
  // Called when `round` has closed.
  void Trim(Round round) {
    if (round < kRoundsKept) return;
    pushes_.erase(pushes_.begin(), pushes_.lower_bound({round - kRoundsKept + 1, "", 0, 0}));
  }

 private:
  using Order = std::tuple<Round, std::string, Incarnation, std::uint32_t>;
  static Order Key(const PushKey& key) { return {key.round, key.worker.name, key.worker.incarnation, key.fragment}; }

  std::map<Order, RecordedPush> pushes_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_PUSH_REGISTER_H_
