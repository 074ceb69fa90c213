// Deadlines of gRPC calls on the monotonic clock: a change of the time of day moves none of them.
#ifndef AUTOLOCO_COMMON_RPC_DEADLINE_H_
#define AUTOLOCO_COMMON_RPC_DEADLINE_H_

#include <grpc/support/time.h>
#include <grpcpp/support/time.h>

#include "absl/time/time.h"

namespace autoloco {

inline gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(timeout), GPR_TIMESPAN));
}

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_DEADLINE_H_
