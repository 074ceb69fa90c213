// Rules that span several settings. Types, ranges and patterns of single settings are checked while they are read.
#ifndef AUTOLOCO_COMMON_CONFIG_VALIDATE_H_
#define AUTOLOCO_COMMON_CONFIG_VALIDATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "autoloco/v1/run_config.pb.h"

namespace autoloco {

struct Problem {
  std::string key;      // the setting to look at first: "run.rounds.heartbeat_seconds"
  std::string message;  // "expected ..., found ..."
};

struct Validation {
  std::vector<Problem> errors;    // the config cannot be used
  std::vector<Problem> warnings;  // it can, but it is hardly what was meant
};

// REQUIRES: every setting is set.
Validation ValidateServerConfig(const v1::ServerConfig& config);
Validation ValidateWorkerConfig(const v1::WorkerConfig& config);

// For a RunConfig that came over the network: every setting set and in its range, and the rules of the run kept.
// INVALID_ARGUMENT "outer.learning_rate: expected ..., found ...".
absl::Status ValidateReceivedRun(const v1::RunConfig& run);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_VALIDATE_H_
