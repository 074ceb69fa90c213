// What can be sent of the newest versions: the broadcasts that made them, or, where versions are sent whole, the newest
// one alone.
#ifndef AUTOLOCO_SERVER_RUNTIME_BROADCAST_LOG_H_
#define AUTOLOCO_SERVER_RUNTIME_BROADCAST_LOG_H_

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "common/base/ids.h"
#include "server/core/pull.h"
#include "server/runtime/encoded_payload.h"

namespace autoloco::server {

// One thread at a time.
class BroadcastLog {
 public:
  // REQUIRES: kept_max >= 1.
  explicit BroadcastLog(std::size_t kept_max) : kept_max_(kept_max) {}

  // The oldest ones give way; those being sent live on until they are.
  void Add(std::shared_ptr<const EncodedPayload> payload) {
    const Version version = payload->header().version;
    payloads_[version] = std::move(payload);
    while (payloads_.size() > kept_max_) payloads_.erase(payloads_.begin());
  }

  // Null: there is none of this form and version, or none any more.
  std::shared_ptr<const EncodedPayload> Find(PullForm form, Version version) const {
    const auto it = payloads_.find(version);
    return it != payloads_.end() && it->second->header().form == form ? it->second : nullptr;
  }

  bool empty() const { return payloads_.empty(); }
  // REQUIRES: not empty.
  Version oldest() const { return payloads_.begin()->first; }

 private:
  const std::size_t kept_max_;
  std::map<Version, std::shared_ptr<const EncodedPayload>> payloads_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_BROADCAST_LOG_H_
