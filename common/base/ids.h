// The numbers and names that stand for things, with one meaning each. Plain integers: they travel through protos,
// logs and databases; their names carry the type.
#ifndef AUTOLOCO_COMMON_BASE_IDS_H_
#define AUTOLOCO_COMMON_BASE_IDS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace autoloco {

using Version = std::uint64_t;      // of the global parameters; version r is what round r starts from
using Round = std::uint64_t;        // one outer step; round r turns version r into version r + 1
using Incarnation = std::uint64_t;  // one life of a worker, counted from 1; 0: none yet
using Ticket = std::uint64_t;       // a parked call or an open session of this server process; never reused

inline constexpr int kWorkerNameBytesMax = 64;

// Whether `name` matches [a-zA-Z0-9_.-]{1,64}: safe in logs, paths, labels and on one line.
inline bool IsValidWorkerName(absl::string_view name) {
  if (name.empty() || name.size() > kWorkerNameBytesMax) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (!letter && !digit && c != '_' && c != '.' && c != '-') return false;
  }
  return true;
}

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_IDS_H_
