// What can go wrong, how often it does in a scenario, and how often it did.
#ifndef AUTOLOCO_TESTS_SIM_FAULTS_H_
#define AUTOLOCO_TESTS_SIM_FAULTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/sim/world.h"

namespace autoloco::sim {

enum class Fault : std::size_t {
  // network
  kDelay,            // a message or transfer takes long
  kRequestLost,      // a call never reaches the server
  kReplyLost,        // the server acts, and its answer is lost
  kDuplicated,       // a call reaches the server twice
  kReordered,        // a call is held back and overtaken
  kStreamCut,        // a session breaks, and what is on its way in it is lost
  kTransferCut,      // a bulk transfer breaks after some byte
  kCorrupted,        // a byte of a bulk transfer is another one
  kPartition,        // nothing passes for a while
  kPartitionReset,   // the same, and all connections of the link break
  // processes
  kServerCrash,
  kServerCrashAtEffect,  // between two effects of one step
  kServerPause,
  kServerShutdown,       // SIGTERM
  kWorkerCrash,
  kWorkerCrashAtEffect,
  kWorkerPause,
  kWorkerLeave,          // SIGTERM; comes back later
  kWorkerZombie,         // stopped, replaced under its name, and continued
  kMachineLost,          // a crash that no connection tells of
  kLateStart,
  kClockSkew,
  kStraggler,            // an interval takes several times as long
  kNormOutlier,          // a worker trains a delta that is far too large
  kEviction,             // by the operator, who lets the worker in again later
  // disks
  kSlowSync,
  kFailedWrite,          // of a batch of records; tried again
  kLostSuffix,           // a crash lost records that were not durable yet
  kTornPayload,          // a crash left part of a payload file
  kTornCheckpoint,       // a crash left part of a checkpoint
  kFailedCheckpoint,
  kWorkerDiskLost,
  kWorkerDiskTorn,       // a crash while the worker saved its state
  kWorkerWriteFailed,
  kCount,
};
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(Fault::kCount);

// E.g. "reply_lost": the key in the JSON and the word in the trace.
const char* FaultName(Fault fault);

using FaultCounts = std::array<std::uint64_t, kFaultKinds>;

// The faults of one scenario. Those with a chance strike at every opportunity; the cluster makes the planned ones.
class Faults {
 public:
  explicit Faults(std::uint64_t seed) : dice_(seed, 101) {}

  // Whether the fault happens at this opportunity; counts it. Always false after Stop.
  bool Strikes(Fault fault) {
    const double chance = chances[static_cast<std::size_t>(fault)];
    if (!on_ || chance <= 0 || !dice_.Chance(chance)) return false;
    Count(fault);
    return true;
  }
  void Count(Fault fault) { ++counts_[static_cast<std::size_t>(fault)]; }
  void Stop() { on_ = false; }
  bool on() const { return on_; }
  const FaultCounts& counts() const { return counts_; }

  std::array<double, kFaultKinds> chances{};

 private:
  Dice dice_;
  bool on_ = true;
  FaultCounts counts_{};
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_FAULTS_H_
