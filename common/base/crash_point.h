// Named places at which a test may kill this program the way kill -9 would: nothing is flushed, no destructor runs. A
// program that is not armed passes them at the price of one load.
#ifndef AUTOLOCO_COMMON_BASE_CRASH_POINT_H_
#define AUTOLOCO_COMMON_BASE_CRASH_POINT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace autoloco {

// Environment variable that main hands to ArmCrashPoint; for tests only.
inline constexpr absl::string_view kCrashPointVariable = "AUTOLOCO_CRASH_POINT";

// Arms the one place that `specification` names: "spool_after", or "spool_after:3" for the third time it is passed.
// Process-wide; call it once, before other threads start. INVALID_ARGUMENT: no name, or no count from 1.
absl::Status ArmCrashPoint(absl::string_view specification);

// Ends the process with SIGKILL where this place was armed and has now been passed often enough. Thread-safe.
void CrashPoint(absl::string_view name);
// The same for a place with kinds: its name is `name`_`kind`.
void CrashPoint(absl::string_view name, absl::string_view kind);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_CRASH_POINT_H_
