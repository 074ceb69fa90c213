// The server's disk, which outlives its processes, and the storage thread, which does not. Records become durable in
// order, batch by batch, each after the payloads it names; a crash keeps a prefix of them and, of what was being
// written beside, anything.
#ifndef AUTOLOCO_TESTS_SIM_SERVER_DISK_H_
#define AUTOLOCO_TESTS_SIM_SERVER_DISK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/core/core_state.h"
#include "server/core/records.h"
#include "tests/sim/bugs.h"
#include "tests/sim/checkers.h"
#include "tests/sim/faults.h"
#include "tests/sim/model.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

namespace autoloco::sim {

struct StoredCheckpoint {
  Parameters parameters;
  std::string digest;  // of values and view
  bool whole = true;   // false: torn or damaged, which reading it finds
};

struct ServerDisk {
  server::CoreState state;          // the fold of `log`
  std::vector<server::Record> log;  // every durable record
  std::map<server::PushKey, std::string, server::PushKeyOrder> spool;
  std::map<Version, StoredCheckpoint> checkpoints;
  // One damaged checkpoint at a time is what the server must bear: true from a checkpoint until the next damage.
  bool may_damage = false;
  bool spool_whole = true;  // no delta of the run was dropped: it could be done again from its start
};

// What comes with a StoreRecords effect.
struct StorageBatch {
  std::uint64_t sequence = 0;
  std::vector<server::Record> records;
  std::vector<std::pair<server::PushKey, std::string>> payloads;
};

// One process's storage thread.
class StorageThread {
 public:
  struct Tools {
    World* world;
    Faults* faults;
    Trace* trace;
    Checkers* checkers;
    ServerDisk* disk;
    Bug bug;
  };
  // `stored` is called with each sequence up to which all is durable.
  StorageThread(const Tools& tools, std::uint64_t seed, std::function<void(std::uint64_t)> stored);
  ~StorageThread();
  StorageThread(const StorageThread&) = delete;
  StorageThread& operator=(const StorageThread&) = delete;

  void Store(StorageBatch batch);
  bool idle() const { return !writing_ && queue_.empty(); }
  // The process is gone: what was being written may be there or not, in part or whole.
  void Crash();

 private:
  void StartWriting();
  void WritePayloads();
  void CommitGroup();
  void Later(absl::Duration delay, void (StorageThread::*step)());
  void MakeDurable();
  void LeaveTorn(const StorageBatch& batch);

  const Tools tools_;
  Dice dice_;
  const std::function<void(std::uint64_t)> stored_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::deque<StorageBatch> queue_;
  std::vector<StorageBatch> group_;  // being written, oldest first
  bool writing_ = false;
  bool payloads_written_ = false;          // of the group
  std::vector<server::PushKey> unsynced_;  // for the planted bug
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_SERVER_DISK_H_
