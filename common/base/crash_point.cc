#include "common/base/crash_point.h"

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/log.h"

namespace autoloco {
namespace {

struct Armed {
  std::string name;
  std::atomic<std::uint64_t> passes_left{1};
};

std::atomic<Armed*> armed{nullptr};

void Pass(Armed* place) {
  if (place->passes_left.fetch_sub(1) != 1) return;
  Log(LogLevel::kWarning, "crash_point").Add("name", place->name);
  raise(SIGKILL);
}

}  // namespace

absl::Status ArmCrashPoint(absl::string_view specification) {
  const std::vector<std::string> parts = absl::StrSplit(specification, ':');
  std::uint64_t passes = 1;
  const bool counted = parts.size() == 1 || (parts.size() == 2 && absl::SimpleAtoi(parts[1], &passes) && passes > 0);
  if (!counted || parts[0].empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCrashPointVariable, ": want NAME or NAME:COUNT with a count from 1, got '", specification, "'"));
  }
  static Armed place;
  place.name = parts[0];
  place.passes_left = passes;
  armed.store(&place);
  return absl::OkStatus();
}

void CrashPoint(absl::string_view name) {
  Armed* const place = armed.load(std::memory_order_acquire);
  if (place != nullptr && place->name == name) Pass(place);
}

void CrashPoint(absl::string_view name, absl::string_view kind) {
  if (armed.load(std::memory_order_acquire) != nullptr) CrashPoint(absl::StrCat(name, "_", kind));
}

}  // namespace autoloco
