// A process of the simulation: it can be killed, started again, stopped (SIGSTOP) and continued. What was meant for a
// life that is over does not reach the next one; what reaches a stopped process waits until it goes on.
#ifndef AUTOLOCO_TESTS_SIM_PROCESS_H_
#define AUTOLOCO_TESTS_SIM_PROCESS_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/time/time.h"
#include "tests/sim/world.h"

namespace autoloco::sim {

class Process {
 public:
  explicit Process(World* world) : world_(world) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool running() const { return running_; }
  bool paused() const { return paused_; }

  void Pause() { paused_ = running_; }
  void Continue() {
    paused_ = false;
    OnContinued();
    // What waited comes first; an action may stop or kill the process again.
    while (running_ && !paused_ && !held_.empty()) {
      World::Action action = std::move(held_.front());
      held_.pop_front();
      action();
    }
  }

 protected:
  void Begin() {
    ++life_;
    running_ = true;
    paused_ = false;
    held_.clear();
  }
  void End() {
    ++life_;
    running_ = false;
    paused_ = false;
    held_.clear();
  }
  // In this life, after `delay`, once the process is not stopped.
  void Run(absl::Duration delay, World::Action action) {
    world_->After(delay, [this, life = life_, action = std::move(action)] {
      if (life == life_) Enter(action);
    });
  }
  void RunAt(absl::Time time, World::Action action) { Run(time - world_->now(), std::move(action)); }
  // Now, unless the process is stopped: then when it goes on. REQUIRES: running().
  void Enter(World::Action action) {
    if (paused_) {
      held_.push_back(std::move(action));
    } else {
      action();
    }
  }
  virtual void OnContinued() {}
  std::uint64_t life() const { return life_; }
  World* world() const { return world_; }

 private:
  World* const world_;
  std::uint64_t life_ = 0;
  bool running_ = false;
  bool paused_ = false;
  std::deque<World::Action> held_;
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_PROCESS_H_
