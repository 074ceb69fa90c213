#include "server/storage/state_folder.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/state_database.h"

namespace autoloco::server {
namespace {

constexpr std::uint64_t kRunIdFileBytesMax = 256;
constexpr std::size_t kRunIdBytesMax = kWorkerNameBytesMax + 9;  // name, dash, 8 digits

// Letters, digits, '_', '.' and '-', like a worker's name but longer.
bool IsValidRunId(absl::string_view id) {
  return !id.empty() && id.size() <= kRunIdBytesMax && IsValidWorkerName(id.substr(0, kWorkerNameBytesMax)) &&
         (id.size() <= kWorkerNameBytesMax || IsValidWorkerName(id.substr(kWorkerNameBytesMax)));
}

// A folder without a run id must hold nothing of a run: it would go on under another name.
absl::Status CheckHoldsNoRun(const std::string& folder) {
  std::error_code ignored;
  const bool database = std::filesystem::exists(absl::StrCat(folder, "/", kStateDatabaseFile), ignored);
  const auto checkpoints = ListCheckpoints(absl::StrCat(folder, "/", kCheckpointsFolder));
  if (!checkpoints.ok() && !absl::IsNotFound(checkpoints.status())) return checkpoints.status();
  if (!database && (!checkpoints.ok() || checkpoints->empty())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("state folder ", folder, " holds a run (", database ? kStateDatabaseFile : kCheckpointsFolder,
                   ") and no run_id: put it back as one line in the file run_id (it stands in table run of ",
                   kStateDatabaseFile, " and in the manifest.json of every checkpoint), or take another folder"));
}

absl::StatusOr<std::string> ReadOrDrawRunId(const std::string& folder, absl::string_view run_name) {
  const std::string path = absl::StrCat(folder, "/run_id");
  const absl::StatusOr<std::string> text = ReadFile(path, kRunIdFileBytesMax);
  if (text.ok()) {
    const std::string id(absl::StripAsciiWhitespace(*text));
    if (!IsValidRunId(id)) return absl::DataLossError(absl::StrCat(path, ": holds no run id"));
    return id;
  }
  if (!absl::IsNotFound(text.status())) return text.status();
  AUTOLOCO_RETURN_IF_ERROR(CheckHoldsNoRun(folder));
  std::uint32_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) return FileError("draw a run id for", path, errno);
  const std::string id = absl::StrCat(run_name, "-", absl::Hex(number, absl::kZeroPad8));
  AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(id, "\n")));
  return id;
}

// Counts this start, durably, before anything is done under its number.
absl::StatusOr<std::uint64_t> CountStart(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/starts");
  const absl::StatusOr<std::string> text = ReadFile(path, kRunIdFileBytesMax);
  std::uint64_t former = 0;
  if (text.ok()) {
    if (!absl::SimpleAtoi(*text, &former)) return absl::DataLossError(absl::StrCat(path, ": holds no number"));
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(former + 1, "\n")));
  return former + 1;
}

}  // namespace

StateFolder::StateFolder(FileLock lock, std::string path, std::string run_id, std::uint64_t start_number,
                         std::string checkpoints_path)
    : lock_(std::move(lock)),
      path_(std::move(path)),
      run_id_(std::move(run_id)),
      start_number_(start_number),
      checkpoints_path_(std::move(checkpoints_path)) {}

absl::StatusOr<StateFolder> StateFolder::Open(const std::string& path, absl::string_view run_name) {
  AUTOLOCO_CHECK(IsValidWorkerName(run_name));
  AUTOLOCO_RETURN_IF_ERROR(MakeFolders(path));
  AUTOLOCO_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(path));
  AUTOLOCO_ASSIGN_OR_RETURN(std::string run_id, ReadOrDrawRunId(path, run_name));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::uint64_t start_number, CountStart(path));
  std::string checkpoints = absl::StrCat(path, "/", kCheckpointsFolder);
  AUTOLOCO_RETURN_IF_ERROR(MakeFolders(checkpoints));
  AUTOLOCO_RETURN_IF_ERROR(SyncFolder(path));
  return StateFolder(std::move(lock), path, std::move(run_id), start_number, std::move(checkpoints));
}

std::string StateFolder::database_path() const { return absl::StrCat(path_, "/", kStateDatabaseFile); }

std::string StateFolder::spool_path() const { return absl::StrCat(path_, "/", kSpoolFolder); }

absl::StatusOr<bool> StateFolder::HasCheckpoints() const {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found, ListCheckpoints(checkpoints_path_));
  return !found.empty();
}

}  // namespace autoloco::server
