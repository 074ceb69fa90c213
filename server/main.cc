// autoloco-server: reads the configuration, puts the parts together, serves until the run is over. Exit codes: 0 done
// or shut down, 2 wrong configuration or an address or folder in use or out of reach, 75 too few workers, 1 anything
// else.
#include <malloc.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/convert.h"
#include "common/config/environment.h"
#include "common/config/load.h"
#include "common/rpc/grpc_log.h"
#include "server/build_commit.h"
#include "server/core/round_machine.h"
#include "server/initial_state.h"
#include "server/rpc/server.h"
#include "server/rpc/settings.h"
#include "server/runtime/event_loop.h"
#include "server/stop_signal.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/record_store.h"
#include "server/telemetry/prometheus_telemetry.h"

namespace autoloco::server {
namespace {

// For the goodbyes of the workers after a completed run.
constexpr absl::Duration kFarewell = absl::Seconds(2);

// Memory that one of glibc's arenas has freed serves no thread of another, and there would be eight a core: chunks of
// pushes and blocks of pulls, which pass from thread to thread, then leave holes: 90 MB with 32 workers.
constexpr int kArenasMax = 2;

// `listen` with the port that was really bound.
std::string BoundAddress(const std::string& listen, int port) {
  if (port == 0) return "";
  return absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

// PRESET_TINY -> "tiny"
std::string Label(const std::string& enumerator) {
  return absl::AsciiStrToLower(enumerator.substr(enumerator.find('_') + 1));
}

absl::StatusOr<std::unique_ptr<PrometheusTelemetry>> StartTelemetry(const v1::ServerConfig& config,
                                                                    const std::string& run_id) {
  TelemetryOptions options;
  options.listen = config.server().metrics_listen();
  options.build_version = AUTOLOCO_VERSION;
  options.build_commit = kBuildCommit;
  options.run_id = run_id;
  options.model = Label(v1::ModelConfig::Preset_Name(config.run().model().preset()));
  options.codec = Label(v1::CodecConfig::Delta_Name(config.run().codec().delta()));
  options.broadcast_codec = Label(v1::CodecConfig::Delta_Name(config.run().codec().broadcast()));
  options.outer_learning_rate = config.run().outer().learning_rate();
  options.outer_momentum = config.run().outer().momentum();
  return PrometheusTelemetry::Create(options);
}

// What workers can be sent before the first commit.
EventLoop::Initial WhatIsThere(const v1::ServerConfig& config, const Recovered& recovered, ParameterStore* parameters,
                               WorkPool* pool) {
  EventLoop::Initial initial{recovered.params_digest, recovered.state.view_digest, recovered.broadcasts,
                             parameters->view()};
  if (initial.view == nullptr) {
    initial.payloads = {parameters->Encode(recovered.state.run.version, recovered.params_digest,
                                           config.run().codec().zstd_level(), pool)};
  }
  return initial;
}

// Serves the run to its end; the exit code. An error: the server could not start.
absl::StatusOr<int> Serve(const v1::ServerConfig& config) {
  const v1::ServerOptions& options = config.server();
  AUTOLOCO_ASSIGN_OR_RETURN(const StateFolder state, StateFolder::Open(options.state_dir(), config.run().name()));
  const DecoderShape shape = ToDecoderShape(config.run().model());
  AUTOLOCO_ASSIGN_OR_RETURN(const Layout layout, MakeDecoderLayout(shape));
  CoreConfig core_config = ToCoreConfig(config, state.run_id(), state.start_number(), layout);
  AUTOLOCO_RETURN_IF_ERROR(CheckPushFits(core_config, options));
  AUTOLOCO_ASSIGN_OR_RETURN(ParameterStore parameters, ParameterStore::Allocate(layout));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<StateDatabase> database,
                            StateDatabase::Open(state.database_path(), Database::Mode::kReadWrite));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<Spool> spool, Spool::Open(state.spool_path()));

  // Destroyed from the last to the first: whoever posts goes before whom it posts to.
  const Clock* const clock = MonotonicClock();
  Inbox inbox(clock);
  WorkPool pool(ThreadCount(options));
  AUTOLOCO_ASSIGN_OR_RETURN(const Recovered initial,
                            LoadInitialState(config, {&state, database.get(), spool.get(), &parameters, &pool,
                                                      !core_config.method.broadcast.lossless(), PayloadsKept(config)}));
  core_config.began_anew = initial.new_run;
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<FolderCheckpointStore> checkpoints,
                            FolderCheckpointStore::Open(&state, shape, options.checkpoint_keep()));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<PrometheusTelemetry> telemetry,
                            StartTelemetry(config, state.run_id()));
  CommitRunner commits({clock, &parameters, checkpoints.get(), telemetry.get(), &pool, &inbox});
  DurableRecordStore records({clock, database.get(), spool.get(), telemetry.get(), &inbox},
                             {.retry_for = absl::Seconds(options.storage_retry_seconds())});
  const Version version = initial.state.run.version;
  core_config.first_broadcast = version + 1 - initial.broadcasts.size();
  RoundMachine core(core_config, initial.state, clock->Now());
  EventLoop loop({clock, &inbox, &core, &commits, &records, &pool, telemetry.get(), &layout},
                 ToLoopSettings(config, initial.checkpoint), WhatIsThere(config, initial, &parameters, &pool));
  for (const KeptPayload& kept : initial.payloads) loop.TakeOver(kept);
  OpenCalls open_calls(clock);
  const RpcContext context{clock, &inbox, telemetry.get(), state.run_id(), config.run(), &open_calls};
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> rpc, RpcServer::Start(ToListenOptions(options), &context));
  loop.Start();
  StopSignal stop(&inbox);
  const ShutdownSignals signals(&stop);
  Log(LogLevel::kInfo, "serving")
      .Add("listen", BoundAddress(options.listen(), rpc->port()))
      .Add("metrics", BoundAddress(options.metrics_listen(), telemetry->port()))
      .Add("run_id", state.run_id())
      .Add("build_commit", kBuildCommit)
      .Add("parameters", layout.value_count())
      .Add("version", version)
      .Add("checkpoint", initial.checkpoint)
      .Add("params_digest", initial.params_digest)
      .Add("view_digest", initial.state.view_digest);

  const RunFinished finished = loop.WaitForFinish();
  Log(LogLevel::kInfo, "run_finished").Add("exit_code", finished.exit_code).Add("reason", finished.reason);
  if (finished.exit_code == 0 && !options.exit_when_done()) {
    stop.Wait();
  } else if (finished.completed) {
    open_calls.WaitUntilNone(kFarewell);
  }
  rpc->Shutdown(absl::Seconds(options.drain_seconds()));
  loop.Stop();
  Log(LogLevel::kInfo, "stopped").Add("exit_code", finished.exit_code);
  return finished.exit_code;
}

// For tests: the place at which this process is to kill itself.
absl::Status ArmFromEnvironment() {
  for (const std::string& variable : ProcessEnvironment()) {
    absl::string_view place = variable;
    if (absl::ConsumePrefix(&place, absl::StrCat(kCrashPointVariable, "="))) return ArmCrashPoint(place);
  }
  return absl::OkStatus();
}

bool IsOperatorsMistake(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace
}  // namespace autoloco::server

int main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, autoloco::server::kArenasMax);  // before there are threads
  autoloco::v1::ServerConfig config;
  const autoloco::Outcome outcome =
      autoloco::LoadServerConfig(autoloco::ProgramArguments(argc, argv), autoloco::ProcessEnvironment(), &config);
  autoloco::Write(outcome);
  if (outcome.exits) return outcome.exit_code;
  autoloco::ConfigureLog(autoloco::ToLogLevel(config.server().log_level()),
                         autoloco::ToLogFormat(config.server().log_format()));
  autoloco::RouteGrpcLog();
  const absl::Status armed = autoloco::server::ArmFromEnvironment();
  const absl::StatusOr<int> exit_code = armed.ok() ? autoloco::server::Serve(config) : absl::StatusOr<int>(armed);
  if (exit_code.ok()) return *exit_code;
  autoloco::Log(autoloco::LogLevel::kError, "start_failed").Add("reason", exit_code.status().message());
  return autoloco::server::IsOperatorsMistake(exit_code.status()) ? 2 : 1;
}
