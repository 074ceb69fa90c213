#include "server/storage/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/crash_point.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;

constexpr char kIncoming[] = "incoming";

template <typename Number>
bool ParseDigits(absl::string_view text, Number* number) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) && absl::SimpleAtoi(text, number);
}

// "dc1#3-0" of round `round`.
std::optional<PushKey> ParseKey(Round round, absl::string_view name) {
  const std::size_t number = name.rfind('#');
  if (number == absl::string_view::npos) return std::nullopt;
  const std::size_t dash = name.find('-', number);
  if (dash == absl::string_view::npos) return std::nullopt;
  PushKey key;
  key.round = round;
  key.worker.name = std::string(name.substr(0, number));
  if (!IsValidWorkerName(key.worker.name) ||
      !ParseDigits(name.substr(number + 1, dash - number - 1), &key.worker.incarnation) ||
      !ParseDigits(name.substr(dash + 1), &key.fragment)) {
    return std::nullopt;
  }
  return key;
}

// The names in `folder`, for which `visit` is called with path and name.
template <typename Visitor>
absl::Status VisitFolder(const std::string& folder, Visitor visit) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    AUTOLOCO_RETURN_IF_ERROR(visit(it->path().string(), it->path().filename().string()));
  }
  return error ? FileError("list", folder, error.value()) : absl::OkStatus();
}

absl::Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return FileError("remove", path, errno);
  return absl::OkStatus();
}

}  // namespace

SpoolFile::~SpoolFile() {
  map_ = MemoryMap();
  // What was accepted has been used, or is for another process: its memory is for the payloads to come. What was not is
  // removed, and must not be written for that first.
  if (accepted()) posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor_);
  if (accepted()) return;
  const absl::Status removed = RemoveFile(path_);
  if (!removed.ok()) Log(LogLevel::kWarning, "payload_not_removed").Add("error", std::string(removed.message()));
}

absl::Status SpoolFile::Write(std::uint64_t offset, std::span<const std::byte> bytes) {
  return WriteAllAt(descriptor_, path_, offset, bytes);
}

void SpoolFile::StartWriting() {
  sync_file_range(descriptor_, 0, static_cast<off_t>(bytes().size()), SYNC_FILE_RANGE_WRITE);
}

absl::Status SpoolFile::Sync() {
  // The kernel tells of a page that it could not write once and then takes it for clean: all are written again.
  if (sync_failed_) AUTOLOCO_RETURN_IF_ERROR(Write(0, bytes()));
  sync_failed_ = fsync(descriptor_) != 0;
  if (sync_failed_) return FileError("fsync", path_, errno);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const std::string& folder) {
  const std::string incoming = absl::StrCat(folder, "/", kIncoming);
  AUTOLOCO_RETURN_IF_ERROR(MakeFolders(incoming));
  AUTOLOCO_RETURN_IF_ERROR(
      VisitFolder(incoming, [](const std::string& path, const std::string&) { return RemoveFile(path); }));
  AUTOLOCO_RETURN_IF_ERROR(SyncFolder(folder));
  return OpenForReading(folder);
}

std::unique_ptr<Spool> Spool::OpenForReading(const std::string& folder) {
  return std::unique_ptr<Spool>(new Spool(folder));
}

absl::StatusOr<std::unique_ptr<SpoolFile>> Spool::Create(std::uint64_t bytes) {
  AUTOLOCO_CHECK(bytes > 0);
  const std::string path = absl::StrCat(folder_, "/", kIncoming, "/", next_.fetch_add(1));
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return FileError("take room for a delta in", folder_, errno);
  const int full = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  // A limit on the size of files is as good as a full disk.
  absl::Status status;
  if (full != 0) status = FileError("take room for a delta in", folder_, full == EFBIG ? ENOSPC : full);
  absl::StatusOr<MemoryMap> map = status.ok() ? MemoryMap::Open(path) : status;
  if (map.ok()) return std::unique_ptr<SpoolFile>(new SpoolFile(path, descriptor, *std::move(map)));
  close(descriptor);
  unlink(path.c_str());
  return map.status();
}

absl::Status Spool::Accept(std::span<const Acceptance> files) {
  if (files.empty()) return absl::OkStatus();
  CrashPoint("spool_before");
  std::set<std::string> folders = {folder_};
  for (const Acceptance& acceptance : files) {
    AUTOLOCO_RETURN_IF_ERROR(Publish(acceptance));
    folders.insert(RoundFolder(acceptance.key.round));
  }
  for (const std::string& folder : folders) AUTOLOCO_RETURN_IF_ERROR(SyncFolder(folder));
  CrashPoint("spool_after");
  return absl::OkStatus();
}

absl::Status Spool::Publish(const Acceptance& acceptance) {
  SpoolFile& file = *acceptance.file;
  if (file.accepted()) return absl::OkStatus();  // by a call before, which failed later
  AUTOLOCO_RETURN_IF_ERROR(file.Sync());
  AUTOLOCO_RETURN_IF_ERROR(MakeFolders(RoundFolder(acceptance.key.round)));
  const std::string path = PathOf(acceptance.key);
  if (rename(file.path_.c_str(), path.c_str()) != 0)
    return FileError(absl::StrCat("rename ", file.path_, " to"), path, errno);
  file.path_.clear();
  return absl::OkStatus();
}

absl::StatusOr<MemoryMap> Spool::Read(const PushKey& key) const { return MemoryMap::Open(PathOf(key)); }

absl::StatusOr<std::vector<Spool::Entry>> Spool::List() const {
  std::vector<Entry> entries;
  const auto visit_round = [&entries](const std::string& folder, const std::string& name) {
    Round round = 0;
    std::error_code ignored;
    if (!ParseDigits(name, &round) || !fs::is_directory(folder, ignored)) return absl::OkStatus();
    return VisitFolder(folder, [&entries, round](const std::string& path, const std::string& file) {
      const std::optional<PushKey> key = ParseKey(round, file);
      std::error_code error;
      const std::uintmax_t bytes = fs::file_size(path, error);
      if (key && error) return FileError("stat", path, error.value());
      if (key) entries.push_back({*key, bytes});
      return absl::OkStatus();
    });
  };
  AUTOLOCO_RETURN_IF_ERROR(VisitFolder(folder_, visit_round));
  return entries;
}

absl::Status Spool::Drop(const PushKey& key) {
  AUTOLOCO_RETURN_IF_ERROR(RemoveFile(PathOf(key)));
  rmdir(RoundFolder(key.round).c_str());  // stays where it holds more
  return absl::OkStatus();
}

absl::Status Spool::DropBefore(Round round) {
  return VisitFolder(folder_, [round](const std::string& path, const std::string& name) {
    Round number = 0;
    if (!ParseDigits(name, &number) || number >= round) return absl::OkStatus();
    std::error_code error;
    fs::remove_all(path, error);
    return error ? FileError("remove", path, error.value()) : absl::OkStatus();
  });
}

std::string Spool::RoundFolder(Round round) const { return absl::StrFormat("%s/%010d", folder_, round); }

std::string Spool::PathOf(const PushKey& key) const {
  return absl::StrCat(RoundFolder(key.round), "/", key.worker.name, "#", key.worker.incarnation, "-", key.fragment);
}

}  // namespace autoloco::server
