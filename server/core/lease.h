// A token lease: the training tokens of one assignment, and what became of them.
#ifndef AUTOLOCO_SERVER_CORE_LEASE_H_
#define AUTOLOCO_SERVER_CORE_LEASE_H_

#include <compare>
#include <cstdint>

#include "common/base/ids.h"
#include "server/core/types.h"

namespace autoloco::server {

struct LeaseKey {
  Round round = 0;
  std::uint64_t attempt = 0;  // RoundState::attempt
  WorkerId worker;
  auto operator<=>(const LeaseKey&) const = default;
};

enum class LeaseFate {
  kOutstanding,
  kApplied,   // the delta is part of the sum
  kLate,      // it came after its round had closed
  kRejected,  // it came and was found unfit
  kLost,      // it never came, or its round was aborted
};
// The name used in the state database and in labels, e.g. "applied".
const char* LeaseFateName(LeaseFate fate);

struct Lease {
  std::uint64_t leased = 0;   // tokens
  std::uint64_t trained = 0;  // of them, as reported; known once a delta came
  LeaseFate fate = LeaseFate::kOutstanding;
  bool operator==(const Lease&) const = default;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_LEASE_H_
