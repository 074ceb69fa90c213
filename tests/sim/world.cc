#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

namespace autoloco::sim {

void World::At(absl::Time time, Action action) {
  heap_.push_back({std::max(time, now_), order_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

bool World::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  const Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.time;
  ++actions_;
  entry.action();
  return true;
}

}  // namespace autoloco::sim
