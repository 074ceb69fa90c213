// Native types <-> protos. Beyond this folder nobody sees a proto.
#ifndef AUTOLOCO_WORKER_CLIENT_MESSAGES_H_
#define AUTOLOCO_WORKER_CLIENT_MESSAGES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoloco/v1/parameter_server.pb.h"
#include "worker/core/types.h"
#include "worker/runtime/ports.h"
#include "worker/runtime/run_settings.h"

namespace autoloco::worker {

v1::Identity ToProto(const Identity& identity, absl::string_view worker);
v1::WorkerMessage HelloMessage(const Identity& identity, absl::string_view worker,
                               const std::optional<HeldDelta>& held);
v1::WorkerMessage ReadyMessage(const ReadyReport& report, absl::string_view worker);
v1::WorkerMessage ProgressMessage(const ProgressReport& report, absl::string_view worker);
v1::WorkerMessage GoodbyeMessage(const Identity& identity, absl::string_view worker, const std::string& reason);
v1::PushHeader PushHeaderMessage(const PushJob& job, absl::string_view worker);

// FAILED_PRECONDITION naming the setting when the server's config is none that this worker can train under.
absl::StatusOr<RunSettings> ToRunSettings(const v1::RunConfig& run);
Assignment ToAssignment(const v1::Assignment& assignment);
v1::PullForm ToProto(PullForm form);
// None when the server says a form that this worker does not know.
std::optional<PullForm> ToPullForm(v1::PullForm form);
// INTERNAL when the server says an outcome that this worker does not know.
absl::StatusOr<PushOutcome> ToOutcome(v1::PushOutcome outcome);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_MESSAGES_H_
