// The Admin service, seen from the operator's terminal.
#ifndef AUTOLOCO_SERVER_CTL_ADMIN_CLIENT_H_
#define AUTOLOCO_SERVER_CTL_ADMIN_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoloco/v1/admin.pb.h"

namespace autoloco::server {

// Asks the server at `address` (host:port) for its status; blocks for `timeout` at most. The error is one line that
// names the address: UNAVAILABLE (nobody listens, or not in time: try again), else what the server answered.
absl::StatusOr<v1::Status> FetchStatus(const std::string& address, absl::Duration timeout);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_ADMIN_CLIENT_H_
