#include "tests/bench/round/product_run.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/config/load.h"
#include "server/ctl/admin_client.h"
#include "tests/bench/round/model_shape.h"
#include "tests/support/gate.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace autoloco::bench {
namespace {

using test::GateKeeper;
using test::GateSpan;
using test::Process;

constexpr absl::Duration kStartLimit = absl::Minutes(10);  // until the parameters are with every worker
constexpr absl::Duration kRoundLimit = absl::Minutes(5);
constexpr absl::Duration kCallTimeout = absl::Seconds(60);
constexpr absl::Duration kLook = absl::Seconds(1);  // between two looks whether everybody lives
constexpr absl::Duration kSettlePause = absl::Milliseconds(5);

// Rounds of a single inner step, for ever; everybody is waited for; no evaluation, no checkpoint.
std::vector<std::string> RunFlags(const RoundCase& size) {
  std::vector<std::string> flags = ShapeFlags(ShapeOfSize(size.params));
  for (const char* flag :
       {"--preset=custom", "--batch-size=1", "--evaluation.windows=0", "--warmup-steps=0", "--schedule=constant",
        "--inner.learning-rate=0.01", "--total-inner-steps=1000000000", "--policy=fixed", "--interval.steps=1",
        "--quorum-share=1", "--match-speed=false", "--lease-seconds=120", "--checkpoint-every-rounds=0"}) {
    flags.emplace_back(flag);
  }
  flags.push_back(absl::StrCat("--start-workers=", size.workers));
  flags.push_back(absl::StrCat("--min-workers=", size.workers));
  return flags;
}

std::string CodingInWords(v1::CodecConfig::Delta coding, double step) {
  constexpr std::size_t kPrefix = sizeof("DELTA_") - 1;
  const std::string name = absl::AsciiStrToLower(v1::CodecConfig::Delta_Name(coding).substr(kPrefix));
  return coding == v1::CodecConfig::DELTA_QUANTIZED ? absl::StrFormat("%s %g", name, step) : name;
}

std::string Tail(Process* process) {
  const std::string log = process->Log();
  return log.substr(log.size() - std::min<std::size_t>(log.size(), 2000));
}

// Payload bytes so far.
struct Traffic {
  std::uint64_t up = 0;
  std::uint64_t down = 0;

  bool operator==(const Traffic&) const = default;
};

double CpuSeconds(pid_t pid) {
  clockid_t clock = 0;
  timespec used = {};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// The processes of a run. Between two calls all workers stand at the gate with the parameters of the next round, and
// the server has nothing to do.
class ProductRun {
 public:
  absl::Status Start(const RoundCase& size, const std::vector<std::string>& server_flags);
  // One round: from the first worker's encoding to the last one's check of the next parameters.
  absl::StatusOr<double> TimeRound();
  absl::StatusOr<Traffic> ReadTraffic() const;
  double ServerCpuSeconds() const { return CpuSeconds(server_->pid()); }
  std::uint64_t ServerPeakRssBytes() const { return test::PeakResidentBytes(server_->pid()); }

 private:
  absl::Status StartWorker(std::uint32_t index);
  absl::Status AdmitWorkers();
  bool SomebodyEnded();
  // Waits until everybody stands at the gate.
  absl::StatusOr<std::vector<GateSpan>> Gather(absl::Duration limit);
  // `status`, and what a process said that has ended.
  absl::Status Explain(const absl::Status& status);

  const TempFolder folder_;
  std::unique_ptr<GateKeeper> keeper_;
  std::unique_ptr<Process> server_;
  std::string address_;
  std::vector<std::unique_ptr<Process>> workers_;  // destroyed before the server
};

absl::Status ProductRun::Start(const RoundCase& size, const std::vector<std::string>& server_flags) {
  std::string text;
  while (text.size() < 65536) text += "What is trained on is of no importance: the trainer gives noise.\n";
  AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(folder_.File("text"), text));
  AUTOLOCO_ASSIGN_OR_RETURN(keeper_, GateKeeper::Listen(folder_.File("gate")));
  std::vector<std::string> arguments = {test::ProgramPath("autoloco-server"), "--state-dir", folder_.File("state"),
                                        "--listen=127.0.0.1:0", "--metrics-listen="};
  for (const std::string& flag : RunFlags(size)) arguments.push_back(flag);
  for (const std::string& flag : server_flags) arguments.push_back(flag);
  AUTOLOCO_ASSIGN_OR_RETURN(server_, Process::Start(arguments));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string line, server_->WaitForLog(" serving ", kStartLimit));
  address_ = test::LogValue(line, "listen");
  for (std::uint32_t i = 0; i < size.workers; ++i) AUTOLOCO_RETURN_IF_ERROR(StartWorker(i));
  AUTOLOCO_RETURN_IF_ERROR(AdmitWorkers());
  return Gather(kStartLimit).status();
}

absl::Status ProductRun::StartWorker(std::uint32_t index) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      std::unique_ptr<Process> worker,
      Process::Start({test::ProgramPath("../tests/autoloco-fake-worker"), "--server", address_, "--name",
                      absl::StrFormat("w%02d", index), "--data", folder_.File("text")},
                     {absl::StrCat("FAKE_WORKER_NOISE=", index + 1), "FAKE_WORKER_GATE=" + folder_.File("gate")}));
  workers_.push_back(std::move(worker));
  return absl::OkStatus();
}

absl::Status ProductRun::AdmitWorkers() {
  const Instant deadline = MonotonicClock()->Now() + kStartLimit;
  while (true) {
    const absl::Status status = keeper_->Admit(workers_.size(), kLook);
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (MonotonicClock()->Now() > deadline || SomebodyEnded()) return Explain(status);
  }
}

absl::StatusOr<std::vector<GateSpan>> ProductRun::Gather(absl::Duration limit) {
  absl::StatusOr<std::vector<GateSpan>> spans = keeper_->Gather(limit);
  if (!spans.ok()) return Explain(spans.status());
  return spans;
}

absl::StatusOr<double> ProductRun::TimeRound() {
  AUTOLOCO_RETURN_IF_ERROR(keeper_->Open());               // "train"
  AUTOLOCO_RETURN_IF_ERROR(Gather(kRoundLimit).status());  // everybody has something to send
  AUTOLOCO_RETURN_IF_ERROR(keeper_->Open());
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<GateSpan> spans, Gather(kRoundLimit));
  Instant first = absl::InfiniteFuture();
  Instant last = absl::InfinitePast();
  for (const GateSpan& span : spans) {
    first = std::min(first, span.since);
    last = std::max(last, span.until);
  }
  return absl::ToDoubleSeconds(last - first);
}

// A transfer counts when the server sees its end, which may be a moment after its worker does.
absl::StatusOr<Traffic> ProductRun::ReadTraffic() const {
  AUTOLOCO_ASSIGN_OR_RETURN(const server::AdminClient admin, server::AdminClient::Open(address_, /*insecure=*/false));
  std::optional<Traffic> before;
  while (true) {
    AUTOLOCO_ASSIGN_OR_RETURN(const v1::Status status, admin.GetStatus(kCallTimeout));
    const Traffic now{.up = status.bytes_up(), .down = status.bytes_down()};
    if (before == now) return now;
    before = now;
    absl::SleepFor(kSettlePause);
  }
}

bool ProductRun::SomebodyEnded() {
  bool ended = server_->Wait(absl::ZeroDuration()).ok();
  for (const std::unique_ptr<Process>& worker : workers_) ended |= worker->Wait(absl::ZeroDuration()).ok();
  return ended;
}

absl::Status ProductRun::Explain(const absl::Status& status) {
  std::string text(status.message());
  if (server_->Wait(absl::ZeroDuration()).ok()) absl::StrAppend(&text, "\nthe server ended:\n", Tail(server_.get()));
  for (const std::unique_ptr<Process>& worker : workers_) {
    if (!worker->Wait(kLook).ok()) continue;
    absl::StrAppend(&text, "\na worker ended:\n", Tail(worker.get()));
    break;
  }
  return absl::Status(status.code(), text);
}

}  // namespace

absl::StatusOr<std::string> CodecInWords(const std::vector<std::string>& server_flags) {
  std::vector<std::string> arguments = {"--state-dir=unused"};
  arguments.insert(arguments.end(), server_flags.begin(), server_flags.end());
  v1::ServerConfig config;
  const Outcome outcome = LoadServerConfig(arguments, {}, &config);
  if (outcome.exits) return absl::InvalidArgumentError(absl::StripAsciiWhitespace(outcome.err));
  const v1::CodecConfig& codec = config.run().codec();
  return absl::StrCat("delta ", CodingInWords(codec.delta(), codec.step()), ", broadcast ",
                      CodingInWords(codec.broadcast(), codec.broadcast_step()));
}

absl::StatusOr<Measurement> RunProduct(const RoundCase& size, std::uint32_t rounds,
                                       const std::vector<std::string>& server_flags) {
  ProductRun run;
  AUTOLOCO_RETURN_IF_ERROR(run.Start(size, server_flags));
  AUTOLOCO_RETURN_IF_ERROR(run.TimeRound().status());
  AUTOLOCO_ASSIGN_OR_RETURN(const Traffic traffic_before, run.ReadTraffic());
  const double cpu_before = run.ServerCpuSeconds();
  std::vector<double> seconds;
  for (std::uint32_t round = 1; round < rounds; ++round) {
    AUTOLOCO_ASSIGN_OR_RETURN(const double round_seconds, run.TimeRound());
    seconds.push_back(round_seconds);
  }
  const double counted = rounds - 1;
  Measurement measurement;
  measurement.server_cpu_seconds = (run.ServerCpuSeconds() - cpu_before) / counted;
  measurement.server_peak_rss_bytes = static_cast<double>(run.ServerPeakRssBytes());
  AUTOLOCO_ASSIGN_OR_RETURN(const Traffic traffic, run.ReadTraffic());
  measurement.round_seconds = Median(seconds);
  measurement.bytes_up = static_cast<double>(traffic.up - traffic_before.up) / (counted * size.workers);
  measurement.bytes_down = static_cast<double>(traffic.down - traffic_before.down) / (counted * size.workers);
  return measurement;
}

}  // namespace autoloco::bench
