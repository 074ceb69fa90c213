// The settings that the worker's machine acts on, as plain numbers; WorkerOptions of run_config.proto says what each
// one means.
#ifndef AUTOLOCO_WORKER_CORE_CONFIG_H_
#define AUTOLOCO_WORKER_CORE_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "worker/core/types.h"

namespace autoloco::worker {

struct MachineConfig {
  std::string run_id = "";  // join only this run; empty: the server's
  absl::Duration connect_timeout = absl::Seconds(600);
  absl::Duration reconnect_max = absl::Seconds(10);
  absl::Duration control_timeout = absl::Seconds(10);
  absl::Duration leave = absl::Seconds(8);
  std::uint64_t jitter_seed = 0;  // spreads the pauses of different workers
  // What this worker kept on disk before it was started again; the shell has the bytes.
  std::optional<HeldDelta> saved = std::nullopt;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_CONFIG_H_
