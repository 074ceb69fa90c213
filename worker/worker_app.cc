#include "worker/worker_app.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/base/shutdown.h"
#include "common/base/status_macros.h"
#include "common/config/convert.h"
#include "common/config/environment.h"
#include "common/config/load.h"
#include "worker/client/server_client.h"
#include "worker/core/config.h"
#include "worker/runtime/console.h"
#include "worker/runtime/engine.h"
#include "worker/runtime/run_loop.h"
#include "worker/runtime/worker_state.h"

namespace autoloco::worker {
namespace {

// The first signal asks the loop to leave, the second ends the process.
class StopOnSignal final : public ShutdownListener {
 public:
  explicit StopOnSignal(EventSink* sink) : sink_(sink) {}
  void OnShutdownSignal(int signal, int count) override {
    const std::string name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
    if (count > 1) {
      Log(LogLevel::kWarning, "exit").Add("reason", absl::StrCat("second ", name));
      _exit(128 + signal);
    }
    sink_->Post(StopRequested{.reason = absl::StrCat("stopped by ", name)});
  }

 private:
  EventSink* const sink_;
};

// The configured name, or the host's with every other character as a dash.
std::string WorkerName(const v1::WorkerOptions& options) {
  if (!options.name().empty()) return options.name();
  char host[256] = {};
  std::string name = gethostname(host, sizeof(host) - 1) == 0 ? host : "";
  name.resize(std::min<std::size_t>(name.size(), kWorkerNameBytesMax));
  for (char& c : name) {
    if (!IsValidWorkerName(absl::string_view(&c, 1))) c = '-';
  }
  return name.empty() ? "worker" : name;
}

MachineConfig ToMachineConfig(const v1::WorkerOptions& options, const std::string& name,
                              const std::optional<SavedDelta>& saved) {
  return {.run_id = options.run_id(),
          .connect_timeout = absl::Seconds(options.connect_timeout_seconds()),
          .reconnect_max = absl::Seconds(options.reconnect_seconds_max()),
          .control_timeout = absl::Seconds(options.control_timeout_seconds()),
          .leave = absl::Seconds(options.leave_seconds()),
          .jitter_seed = Hash64(std::as_bytes(std::span(name))),
          .saved = saved ? std::optional(saved->held) : std::nullopt};
}

ServerClientOptions ToClientOptions(const v1::WorkerOptions& options, const std::string& name) {
  return {.channel = {.target = options.server(),
                      .keepalive = absl::Seconds(options.keepalive_seconds()),
                      .reconnect_pause_max = absl::Seconds(options.reconnect_seconds_max()),
                      .insecure = options.insecure()},
          .worker = name,
          .control_timeout = absl::Seconds(options.control_timeout_seconds()),
          .stall_timeout = absl::Seconds(options.stall_timeout_seconds()),
          .streams = options.streams()};
}

// None where the options name no folder.
absl::StatusOr<std::optional<WorkerState>> OpenState(const v1::WorkerOptions& options, const std::string& name) {
  if (options.state_dir().empty()) return std::nullopt;
  AUTOLOCO_ASSIGN_OR_RETURN(WorkerState state, WorkerState::Open(options.state_dir(), name));
  return std::optional<WorkerState>(std::move(state));
}

int Refuse(const std::string& name, const absl::Status& status) {
  Log(LogLevel::kError, "finished")
      .Add("worker", name)
      .Add("exit_code", kExitRefused)
      .Add("reason", std::string(status.message()));
  return kExitRefused;
}

int RunWorker(const v1::WorkerOptions& options, TrainerFactory* factory) {
  const std::string name = WorkerName(options);
  Log(LogLevel::kInfo, "starting").Add("worker", name).Add("server", options.server()).Add("data", options.data());
  ProgressBoard board(MonotonicClock());
  absl::StatusOr<std::optional<WorkerState>> state = OpenState(options, name);
  if (!state.ok()) return Refuse(name, state.status());
  WorkerState* const folder = state->has_value() ? &**state : nullptr;
  const std::optional<SavedDelta> saved = folder != nullptr ? folder->LoadDelta() : std::nullopt;
  if (saved) {
    Log(LogLevel::kInfo, "saved_delta_found")
        .Add("worker", name)
        .Add("round", saved->held.assignment.round)
        .Add("incarnation", saved->held.owner.incarnation);
  }
  RunLoop loop(ToMachineConfig(options, name, saved), name, MonotonicClock(), &board);
  absl::StatusOr<std::unique_ptr<ServerClient>> client = ServerClient::Create(ToClientOptions(options, name), &loop);
  if (!client.ok()) return Refuse(name, client.status());
  StopOnSignal stop(&loop);
  const ShutdownSignals signals(&stop);
  Engine engine({.data = options.data(),
                 .device = {.device = options.device(), .threads = options.threads()},
                 .state = folder,
                 .saved = saved ? saved->encoded : nullptr},
                factory, MonotonicClock(), &board, &loop);
  int exit_code = 0;
  {
    const Console console({.terminal = StandardErrorIsTerminal(), .pause = absl::Seconds(options.console_seconds())},
                          &board);
    exit_code = loop.Run(&engine, client->get());
  }
  // A step that outlasts the grace cannot be interrupted; nothing of it is wanted.
  if (!engine.idle()) _exit(exit_code);
  client->reset();  // its last events go to the loop, while that is there
  return exit_code;
}

}  // namespace

int RunWorkerApp(int argc, char** argv, TrainerFactory* factory) {
  v1::WorkerConfig config;
  const Outcome outcome = LoadWorkerConfig(ProgramArguments(argc, argv), ProcessEnvironment(), &config);
  Write(outcome);
  if (outcome.exits) return outcome.exit_code;
  const v1::WorkerOptions& options = config.worker();
  ConfigureLog(ToLogLevel(options.log_level()), ToLogFormat(options.log_format()));
  return RunWorker(options, factory);
}

}  // namespace autoloco::worker
