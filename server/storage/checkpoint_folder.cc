#include "server/storage/checkpoint_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = "step-";
constexpr absl::string_view kTemporaryPrefix = ".tmp-step-";

// The names of the folders in `folder`.
absl::StatusOr<std::vector<std::string>> FolderNames(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code type_error;
    if (it->is_directory(type_error)) names.push_back(it->path().filename().string());
  }
  if (error) return FileError("list", folder, error.value());
  return names;
}

bool ParseName(absl::string_view name, std::uint64_t* inner_step) {
  return absl::ConsumePrefix(&name, kPrefix) && std::all_of(name.begin(), name.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(name, inner_step);
}

}  // namespace

std::string CheckpointName(std::uint64_t inner_step) { return absl::StrFormat("step-%010d", inner_step); }

std::string TemporaryName(std::uint64_t inner_step) { return absl::StrFormat("%s%010d", kTemporaryPrefix, inner_step); }

absl::StatusOr<std::vector<CheckpointFolder>> ListCheckpoints(const std::string& folder) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<std::string> names, FolderNames(folder));
  std::vector<CheckpointFolder> found;
  for (const std::string& name : names) {
    std::uint64_t inner_step = 0;
    if (ParseName(name, &inner_step)) found.push_back({inner_step, absl::StrCat(folder, "/", name)});
  }
  std::sort(found.begin(), found.end(), [](const CheckpointFolder& a, const CheckpointFolder& b) {
    return a.inner_step != b.inner_step ? a.inner_step > b.inner_step : a.path > b.path;
  });
  return found;
}

absl::Status RemoveTemporaryFolders(const std::string& folder) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<std::string> names, FolderNames(folder));
  for (const std::string& name : names) {
    if (name.compare(0, kTemporaryPrefix.size(), kTemporaryPrefix.data(), kTemporaryPrefix.size()) != 0) continue;
    AUTOLOCO_RETURN_IF_ERROR(RemoveFolder(absl::StrCat(folder, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status RemoveFolder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return error ? FileError("remove", path, error.value()) : absl::OkStatus();
}

absl::Status RenameFolder(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return FileError(absl::StrCat("rename ", from, " to"), to, errno);
  return absl::OkStatus();
}

absl::Status PublishFolder(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::exists(to, error)) return RenameFolder(from, to);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return absl::OkStatus();
  if (errno != EINVAL && errno != ENOSYS) return FileError(absl::StrCat("swap ", from, " with"), to, errno);
  AUTOLOCO_RETURN_IF_ERROR(RemoveFolder(to));
  return RenameFolder(from, to);
}

}  // namespace autoloco::server
