#include "server/core/durable_outbox.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/check.h"

namespace autoloco::server {
namespace {

template <typename T, typename... Ones>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Ones> || ...);

// Nobody outside the server can tell that it happened, and nothing is lost with it.
bool GoesOutAtOnce(const Effect& effect) {
  return std::visit(
      []<typename T>(const T&) { return kIsOneOf<T, AdmitPush, StoreRecords, Decision, RoundCommitted, EvaluationReady>; },
      effect);
}

}  // namespace

void DurableOutbox::Add(std::vector<Record> records, std::vector<Effect> effects, std::vector<Effect>* out) {
  if (!records.empty()) out->push_back(StoreRecords{++sequence_, std::move(records)});
  for (Effect& effect : effects) {
    if (stored_ == sequence_ || GoesOutAtOnce(effect)) {
      out->push_back(std::move(effect));
    } else {
      held_.push_back({sequence_, std::move(effect)});
    }
  }
}

void DurableOutbox::Stored(std::uint64_t sequence, std::vector<Effect>* out) {
  AUTOLOCO_CHECK(sequence <= sequence_);
  if (sequence <= stored_) return;
  stored_ = sequence;
  for (; !held_.empty() && held_.front().sequence <= stored_; held_.pop_front()) {
    out->push_back(std::move(held_.front().effect));
  }
}

}  // namespace autoloco::server
