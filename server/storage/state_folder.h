// The folder that a server keeps its run in: one master at a time, one run id for ever.
//
//   LOCK           held with flock(2) while a server runs
//   run_id         one line, drawn at the first start
//   starts         how often a server was started on it
//   state.sqlite   see state_database.h
//   spool/         see spool.h
//   checkpoints/   see checkpoint_store.h
#ifndef AUTOLOCO_SERVER_STORAGE_STATE_FOLDER_H_
#define AUTOLOCO_SERVER_STORAGE_STATE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"

namespace autoloco::server {

inline constexpr char kSpoolFolder[] = "spool";
inline constexpr char kCheckpointsFolder[] = "checkpoints";

// Holds the lock for as long as it lives. Movable. Immutable; thread-safe.
class StateFolder {
 public:
  // Makes `path` and its parents where they are missing, locks it, and reads the run id or, at the first start, draws
  // one: `run_name` and 8 random hexadecimal digits, "quickstart-1b9f03aa". FAILED_PRECONDITION "state folder X is
  // already in use by pid N", or when there is no run id beside what a run has left: nothing is changed then. DATA_LOSS
  // when run_id or starts hold something else; errors of the file system as FileError. REQUIRES:
  // IsValidWorkerName(run_name).
  static absl::StatusOr<StateFolder> Open(const std::string& path, absl::string_view run_name);

  const std::string& path() const { return path_; }
  const std::string& run_id() const { return run_id_; }
  // Starts on this folder, this one included: no two of them have the same number, whatever was killed when.
  std::uint64_t start_number() const { return start_number_; }
  std::string database_path() const;
  std::string spool_path() const;
  // Exists.
  const std::string& checkpoints_path() const { return checkpoints_path_; }
  // Whether there is a folder that looks like a checkpoint, valid or not.
  absl::StatusOr<bool> HasCheckpoints() const;

 private:
  StateFolder(FileLock lock, std::string path, std::string run_id, std::uint64_t start_number,
              std::string checkpoints_path);

  FileLock lock_;
  std::string path_;
  std::string run_id_;
  std::uint64_t start_number_;
  std::string checkpoints_path_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_STATE_FOLDER_H_
