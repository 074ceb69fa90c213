// The Admin service, seen from the operator's terminal.
#ifndef AUTOLOCO_SERVER_CTL_ADMIN_CLIENT_H_
#define AUTOLOCO_SERVER_CTL_ADMIN_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoloco/v1/admin.grpc.pb.h"

namespace autoloco::server {

// Every call blocks for `timeout` at most. Its error is one line that names the address: UNAVAILABLE (nobody listens,
// or not in time: try again), UNIMPLEMENTED (it is no autoloco-server), else what the server answered. Thread-safe.
class AdminClient {
 public:
  // `address`: host:port. Does not connect yet. INVALID_ARGUMENT: not host:port; FAILED_PRECONDITION: it is not on
  // loopback and `insecure` is false.
  static absl::StatusOr<AdminClient> Open(const std::string& address, bool insecure);

  absl::StatusOr<v1::Status> GetStatus(absl::Duration timeout) const;
  // Every committed round, asked for in as many calls as it takes; `timeout` holds for each.
  absl::StatusOr<v1::Rounds> GetRounds(absl::Duration timeout) const;
  // Ends the life of `worker` and keeps its name out, or lets it in again.
  absl::Status Evict(const std::string& worker, bool readmit, absl::Duration timeout) const;

 private:
  AdminClient(std::string address, std::unique_ptr<v1::Admin::Stub> stub);

  std::string address_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_ADMIN_CLIENT_H_
