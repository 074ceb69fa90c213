#include "tests/e2e/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/tensor/decoder.h"
#include "common/tensor/model_folder.h"
#include "common/tensor/safetensors.h"
#include "gtest/gtest.h"
#include "server/ctl/admin_client.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_manifest.h"
#include "tests/support/http_get.h"

namespace autoloco::test {
namespace {

constexpr absl::Duration kPollPause = absl::Milliseconds(25);
constexpr absl::Duration kStatusTimeout = absl::Seconds(30);

}  // namespace

bool FullCases() { return std::getenv("AUTOLOCO_FULL_CASES") != nullptr; }

Ended RunProgram(const char* program, const Arguments& arguments) {
  const std::unique_ptr<Process> process = Process::Start(Concat({ProgramPath(program)}, arguments)).value();
  Ended ended;
  ended.exit_code = ExitCode(process.get());
  ended.output = process->Output();
  ended.log = process->Log();
  return ended;
}

Arguments SmallRun(int total_steps, int steps, int workers) {
  return {"--preset=nano",
          "--batch-size=2",
          "--windows=4",
          "--warmup-steps=2",
          "--heartbeat-seconds=0.2",
          absl::StrCat("--total-inner-steps=", total_steps),
          "--policy=fixed",
          absl::StrCat("--steps=", steps),
          absl::StrCat("--min-workers=", workers)};
}

Arguments Concat(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Layout NanoLayout() {
  return MakeDecoderLayout(
             {.vocab_size = 256, .width = 64, .layers = 2, .heads = 2, .kv_heads = 2, .mlp_hidden = 160, .context = 64})
      .value();
}

Cluster::Cluster() {
  std::filesystem::create_directory(data_dir());
  for (const char* name : {"LICENSE", "README.md"}) {
    std::filesystem::copy_file(absl::StrCat(AUTOLOCO_SOURCE_DIR, "/", name), absl::StrCat(data_dir(), "/", name));
  }
}

Arguments Cluster::ServerArguments(const Arguments& flags) const {
  Arguments arguments = {ProgramPath(kServer), "--state-dir", state_dir(), "--listen", listen_};
  const bool has_metrics = std::find(flags.begin(), flags.end(), "--metrics-listen") != flags.end();
  if (!has_metrics) arguments.push_back("--metrics-listen=");
  return Concat(std::move(arguments), flags);
}

void Cluster::StartServer(const Arguments& flags, const Arguments& environment) {
  server_ = Process::Start(ServerArguments(flags), environment).value();
  serving_ = server_->WaitForLog(" serving ", kPatience).value();
  address_ = LogValue(serving_, "listen");
  metrics_ = LogValue(serving_, "metrics");
  listen_ = address_;
}

std::unique_ptr<Process> Cluster::StartWorker(const WorkerSetup& setup) const {
  Arguments arguments = {
      ProgramPath(setup.program), "--server", setup.server.empty() ? address_ : setup.server, "--name", setup.name,
      "--reconnect-seconds-max",  "0.5"};
  const bool has_data = std::find(setup.flags.begin(), setup.flags.end(), "--data") != setup.flags.end();
  if (!has_data) arguments = Concat(std::move(arguments), {"--data", data_dir()});
  Arguments environment = setup.environment;
  if (setup.step_ms > 0) environment.push_back(absl::StrCat("FAKE_WORKER_STEP_MS=", setup.step_ms));
  return Process::Start(Concat(std::move(arguments), setup.flags), environment).value();
}

v1::Status Cluster::WaitFor(absl::string_view what, const std::function<bool(const v1::Status&)>& holds) const {
  const Instant deadline = MonotonicClock()->Now() + kPatience;
  const server::AdminClient client = server::AdminClient::Open(address_, /*insecure=*/false).value();
  v1::Status last;
  absl::Status error;
  while (MonotonicClock()->Now() < deadline) {
    const absl::StatusOr<v1::Status> status = client.GetStatus(kStatusTimeout);
    error = status.status();
    if (status.ok()) {
      last = *status;
      if (holds(last)) return last;
    }
    absl::SleepFor(kPollPause);  // between two questions; what ends the loop is the answer
  }
  ADD_FAILURE() << "no status with: " << what << "\nlast one: " << last.DebugString() << "\nlast error: " << error
                << "\nserver's log:\n"
                << server_->Log();
  return last;
}

v1::Status Cluster::WaitForVersion(std::uint64_t version) const {
  return WaitFor(absl::StrCat("version ", version), [version](const v1::Status& s) { return s.version() >= version; });
}

std::vector<std::string> Cluster::ServerLines(absl::string_view text) { return LinesOf(server_.get(), text); }

std::vector<std::string> LinesOf(Process* process, absl::string_view text) {
  const std::string log = process->Log();
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, text)) lines.emplace_back(line);
  }
  return lines;
}

v1::WorkerStatus FindWorker(const v1::Status& status, absl::string_view name) {
  for (const v1::WorkerStatus& worker : status.workers()) {
    if (worker.name() == name) return worker;
  }
  return {};
}

bool IsTraining(const v1::Status& status, absl::string_view name) {
  const v1::WorkerStatus worker = FindWorker(status, name);
  return status.phase() == v1::Status::PHASE_TRAINING && worker.state() == "training" && worker.steps_target() > 0;
}

int ExitCode(Process* process, absl::Duration timeout) {
  const absl::StatusOr<int> code = process->Wait(timeout);
  if (code.ok()) return *code;
  ADD_FAILURE() << code.status();
  return -1;
}

std::string ScrapeMetrics(const std::string& address) {
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) return "";
  const std::string answer = HttpGet(port, "/metrics");
  const std::size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos || !absl::StrContains(answer.substr(0, answer.find('\r')), " 200")) return "";
  return answer.substr(head + 4);
}

double MetricValue(const std::string& metrics, absl::string_view series) {
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StartsWith(line, absl::StrCat(series, " "))) continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(series.size() + 1), &value)) return value;
  }
  return -1;
}

std::string ScrapeMetricsUntil(const std::string& address, absl::string_view series, double value) {
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  std::string metrics = ScrapeMetrics(address);
  while (MetricValue(metrics, series) != value && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));
    metrics = ScrapeMetrics(address);
  }
  return metrics;
}

StoredModel NewestCheckpoint(const std::string& state_dir) {
  const std::vector<server::CheckpointFolder> found = server::ListCheckpoints(state_dir + "/checkpoints").value();
  if (found.empty()) return {};
  StoredModel newest;
  newest.path = found.front().path;
  const std::string manifest_path = absl::StrCat(newest.path, "/", server::kManifestFile);
  const server::CheckpointManifest manifest = server::ReadManifest(manifest_path).value();
  newest.inner_step = manifest.snapshot.inner_steps_done;
  newest.manifest_digest = manifest.params_digest;
  std::vector<float> values(manifest.layout.value_count());
  EXPECT_TRUE(LoadParameters(absl::StrCat(newest.path, "/", kModelParamsFile), manifest.layout, values).ok());
  newest.digest = Digest128(std::span<const float>(values));
  return newest;
}

}  // namespace autoloco::test
