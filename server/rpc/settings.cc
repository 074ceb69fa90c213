#include "server/rpc/settings.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"
#include "server/rpc/convert.h"

namespace autoloco::server {
namespace {

constexpr std::uint32_t kStreamsPerConnectionMax = 64;
constexpr std::size_t kCallsPerWorkerMax = 8;  // session, push, pull and a few that the worker has given up already
constexpr std::size_t kOtherCallsMax = 256;

}  // namespace

CoreConfig ToCoreConfig(const v1::ServerConfig& config, const std::string& run_id, const Layout& layout) {
  const v1::RunConfig& run = config.run();
  CoreConfig core;
  core.run_id = run_id;
  core.protocol_version = kProtocolVersion;
  core.layout = layout;
  core.total_inner_steps = run.total_inner_steps();
  core.interval_steps = run.interval().steps();
  core.batch_size = run.inner().batch_size();
  core.shared_data = run.data().sharing() == v1::DataConfig::SHARING_SHARED;
  core.evaluate = run.evaluation().windows() > 0;
  core.strict = run.rounds().strict();
  core.min_workers = run.rounds().min_workers();
  core.start_workers = run.rounds().start_workers();
  core.max_workers = config.server().max_workers();
  core.lease = absl::Seconds(run.rounds().lease_seconds());
  core.disconnect_grace = absl::Seconds(run.rounds().disconnect_grace_seconds());
  core.join_timeout = absl::Seconds(run.rounds().join_timeout_seconds());
  core.finish_timeout = absl::Seconds(run.rounds().finish_timeout_seconds());
  core.checkpoint_every_rounds = config.server().checkpoint_every_rounds();
  core.max_payload_bytes = MaxPayloadBytes(layout.value_count(), ToCodec(run.codec().delta()));
  return core;
}

CommitRunner::Settings ToCommitSettings(const v1::RunConfig& run) {
  CommitRunner::Settings settings;
  settings.outer = {run.outer().learning_rate(), run.outer().momentum(), run.outer().nesterov()};
  settings.codec = ToCodec(run.codec().delta());
  settings.zstd_level = run.codec().zstd_level();
  return settings;
}

EventLoop::Settings ToLoopSettings(const v1::ServerConfig& config, const std::string& checkpoint) {
  EventLoop::Settings settings;
  settings.codec = ToCodec(config.run().codec().delta());
  settings.limits.calls_max = config.server().max_workers() * kCallsPerWorkerMax + kOtherCallsMax;
  settings.limits.stall_timeout = absl::Seconds(config.server().stall_timeout_seconds());
  settings.push_bytes_in_flight_max = config.server().max_push_bytes_in_flight();
  settings.chunk_bytes_max = config.server().max_chunk_bytes();
  settings.checkpoint = checkpoint;
  return settings;
}

ListenOptions ToListenOptions(const v1::ServerOptions& options) {
  ListenOptions listen;
  listen.listen = options.listen();
  listen.keepalive = absl::Seconds(options.keepalive_seconds());
  listen.max_chunk_bytes = options.max_chunk_bytes();
  listen.max_streams = kStreamsPerConnectionMax;
  listen.insecure = options.insecure();
  return listen;
}

std::size_t ThreadCount(const v1::ServerOptions& options) {
  if (options.threads() > 0) return options.threads();
  return std::max(1u, std::thread::hardware_concurrency());
}

absl::Status CheckPushFits(const CoreConfig& core, const v1::ServerOptions& options) {
  if (core.max_payload_bytes <= options.max_push_bytes_in_flight()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("server.max_push_bytes_in_flight: want at least ",
                                                 core.max_payload_bytes, ", the size of one push of this model, got ",
                                                 options.max_push_bytes_in_flight()));
}

}  // namespace autoloco::server
