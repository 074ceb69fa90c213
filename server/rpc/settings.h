// From the loaded configuration to the settings of the server's parts.
#ifndef AUTOLOCO_SERVER_RPC_SETTINGS_H_
#define AUTOLOCO_SERVER_RPC_SETTINGS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "autoloco/v1/run_config.pb.h"
#include "common/rpc/channel.h"
#include "common/tensor/layout.h"
#include "server/core/commit_method.h"
#include "server/core/config.h"
#include "server/runtime/event_loop.h"

namespace autoloco::server {

// REQUIRES of all: every setting of `config` is set, as LoadServerConfig leaves it.

IntervalConfig ToIntervalConfig(const v1::RunConfig& run);
OuterSettings ToOuterSettings(const v1::RunConfig& run);
//
// `start_number`: of this start of the run's server, from 1 (StateFolder). Every start gives out incarnations from a
// range of its own, so that a worker of an earlier one can never pass for one of this.
CoreConfig ToCoreConfig(const v1::ServerConfig& config, const std::string& run_id, std::uint64_t start_number,
                        const Layout& layout);
CommitMethod ToCommitMethod(const v1::RunConfig& run);
EventLoop::Settings ToLoopSettings(const v1::ServerConfig& config, const std::string& checkpoint);
ListenOptions ToListenOptions(const v1::ServerOptions& options);

// Versions whose encoded form is kept for pulls: of whole versions the newest one, else server.broadcasts_kept.
std::size_t PayloadsKept(const v1::ServerConfig& config);

// Threads of the commit; one a core where the setting is 0.
std::size_t ThreadCount(const v1::ServerOptions& options);

// INVALID_ARGUMENT when not even one push of this run fits into server.max_push_bytes_in_flight.
absl::Status CheckPushFits(const CoreConfig& core, const v1::ServerOptions& options);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_SETTINGS_H_
