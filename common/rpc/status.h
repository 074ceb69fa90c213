// absl::Status <-> grpc::Status, and what a caller should do about each code. The only table of either.
#ifndef AUTOLOCO_COMMON_RPC_STATUS_H_
#define AUTOLOCO_COMMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace autoloco {

// Longest message that travels with a status; what is longer is cut.
inline constexpr std::size_t kStatusMessageBytesMax = 1024;

grpc::Status ToGrpcStatus(const absl::Status& status);
// A code that gRPC does not define becomes UNKNOWN.
absl::Status FromGrpcStatus(const grpc::Status& status);

// The upper-case name, as in the gRPC documents and metrics: "OK", "DATA_LOSS".
const char* StatusCodeName(absl::StatusCode code);

// What the caller of a failed call should do.
enum class Advice {
  kNone,     // it succeeded
  kRetry,    // the same call again, after a short pause
  kBackOff,  // the same call again, after a longer pause
  kMoveOn,   // this call is pointless now; go on with the next assignment
  kStop,     // no repetition helps
};
Advice AdviceFor(absl::StatusCode code);

// Whether the same call may be sent again: kRetry or kBackOff.
bool IsRetryable(absl::StatusCode code);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_STATUS_H_
