#include "tests/e2e/storm_run.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "server/ctl/admin_client.h"

namespace autoloco::test {
namespace {

constexpr int kIntervalSteps = 4;
constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr absl::Duration kPrintPause = absl::Seconds(5);
constexpr absl::Duration kStartLimit = absl::Seconds(120);   // until the first round is open
constexpr absl::Duration kSettleLimit = absl::Seconds(120);  // until the run goes on after the last kill
constexpr absl::Duration kStopLimit = absl::Seconds(60);
constexpr absl::Duration kVerifyLimit = absl::Minutes(5);
constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr double kKeptSeconds = 10;  // a restart without a delta counts when it lasted this long

Instant Now() { return MonotonicClock()->Now(); }

std::string Tail(Process* process) {
  const std::string log = process->Log();
  return log.substr(log.size() - std::min<std::size_t>(log.size(), 2000));
}

}  // namespace

Storm::Storm(const StormOptions& options) : options_(options) {
  const std::string data = folder_.File("data");
  std::filesystem::create_directory(data);
  for (const char* name : {"LICENSE", "README.md"}) {
    std::filesystem::copy_file(absl::StrCat(AUTOLOCO_SOURCE_DIR, "/", name), absl::StrCat(data, "/", name));
  }
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    Worker worker;
    worker.name = absl::StrFormat("w%02d", i);
    workers_.push_back(std::move(worker));
  }
}

// A model of one million parameters in intervals of four steps, for ever.
std::vector<std::string> Storm::ServerArguments() const {
  return {ProgramPath("autoloco-server"),
          "--state-dir",
          folder_.File("state"),
          "--listen",
          address_.empty() ? "127.0.0.1:0" : address_,
          "--metrics-listen=",
          "--layers=5",
          "--mlp-hidden=336",
          "--batch-size=2",
          "--evaluation.windows=0",
          "--warmup-steps=2",
          "--heartbeat-seconds=0.5",
          "--total-inner-steps=1000000000",
          "--policy=fixed",
          absl::StrCat("--interval.steps=", kIntervalSteps),
          absl::StrCat("--start-workers=", options_.workers),
          absl::StrCat("--min-workers=", std::max<std::uint32_t>(options_.workers / 2, 1))};
}

absl::Status Storm::StartServer() {
  AUTOLOCO_ASSIGN_OR_RETURN(server_, Process::Start(ServerArguments()));
  server_lines_read_ = 0;
  server_start_at_.reset();
  return absl::OkStatus();
}

absl::Status Storm::StartWorker(Worker* worker) {
  worker->start_at.reset();
  AUTOLOCO_ASSIGN_OR_RETURN(
      worker->process, Process::Start({ProgramPath("../tests/autoloco-fake-worker"), "--server", address_, "--name",
                                       worker->name, "--data", folder_.File("data")},
                                      {absl::StrCat("FAKE_WORKER_STEP_MS=", options_.step_ms)}));
  return absl::OkStatus();
}

absl::Status Storm::StartFirst() {
  AUTOLOCO_RETURN_IF_ERROR(StartServer());
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string line, server_->WaitForLog(" serving ", kStartLimit));
  address_ = LogValue(line, "listen");
  for (Worker& worker : workers_) AUTOLOCO_RETURN_IF_ERROR(StartWorker(&worker));
  return server_->WaitForLog(" reason=opened ", kStartLimit).status();
}

absl::StatusOr<StormResults> Storm::Run() {
  AUTOLOCO_RETURN_IF_ERROR(StartFirst());
  began_ = Now();
  next_kill_ = began_ + options_.kill_pause;
  next_print_ = began_;
  const Instant end = began_ + absl::Minutes(options_.minutes);
  AUTOLOCO_RETURN_IF_ERROR(RunUntil(end, /*killing=*/true, std::nullopt));
  const std::uint64_t committed = rounds_.committed();
  AUTOLOCO_RETURN_IF_ERROR(RunUntil(end + kSettleLimit, /*killing=*/false, committed + 2));
  if (rounds_.committed() < committed + 2) results_.faults.push_back("after the last kill the run did not go on");
  AUTOLOCO_RETURN_IF_ERROR(TakeRounds());
  StopServer();
  results_.rounds = rounds_.committed();
  results_.rounds_opened = rounds_.opened();
  CheckLedger();
  PrintProgress();
  return results_;
}

absl::Status Storm::RunUntil(Instant end, bool killing, const std::optional<std::uint64_t>& until_committed) {
  while (Now() < end) {
    if (killing && Now() >= next_kill_) {
      next_kill_ += options_.kill_pause;
      Kill();
    }
    AUTOLOCO_RETURN_IF_ERROR(RestartDue());
    Observe();
    if (!results_.faults.empty()) return absl::OkStatus();
    if (until_committed.has_value() && rounds_.committed() >= *until_committed) return absl::OkStatus();
    absl::SleepFor(kTick);  // the storm goes by the clock
  }
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------- kills

void Storm::Kill() {
  const int victim = StormVictim(options_, kills_++);
  if (victim < 0) {
    KillServer();
  } else {
    KillWorker(&workers_[static_cast<std::size_t>(victim)]);
  }
}

void Storm::KillServer() {
  if (server_ == nullptr) return;
  server_->Signal(SIGKILL);
  const absl::StatusOr<int> code = server_->Wait(kStopLimit);
  if (!code.ok()) results_.faults.push_back("a killed server did not end");
  ReadServerLog();
  server_.reset();
  server_start_at_ = Now() + options_.restart_pause;
  ++results_.server_kills;
}

void Storm::KillWorker(Worker* worker) {
  if (worker->process == nullptr) return;
  if (worker->restarted.has_value()) {
    const double seconds = absl::ToDoubleSeconds(Now() - *worker->restarted);
    if (seconds >= kKeptSeconds) results_.restart_seconds.push_back(seconds);
    worker->restarted.reset();
  }
  worker->process.reset();  // SIGKILL
  worker->start_at = Now() + options_.restart_pause;
  ++results_.worker_kills;
}

absl::Status Storm::RestartDue() {
  if (server_start_at_.has_value() && Now() >= *server_start_at_) AUTOLOCO_RETURN_IF_ERROR(StartServer());
  for (Worker& worker : workers_) {
    if (!worker.start_at.has_value() || Now() < *worker.start_at) continue;
    AUTOLOCO_RETURN_IF_ERROR(StartWorker(&worker));
    worker.restarted = Now();
  }
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------- measurements

void Storm::Observe() {
  ReadServerLog();
  NoteContributions();
  NoteUnexpectedEnds();
  if (server_ != nullptr) {
    const std::uint64_t bytes = ResidentBytes(server_->pid());
    if (bytes > 0) results_.memory.push_back({absl::ToDoubleSeconds(Now() - began_), bytes});
  }
  if (Now() < next_print_) return;
  next_print_ += kPrintPause;
  PrintProgress();
}

void Storm::ReadServerLog() {
  if (server_ == nullptr || server_->log_lines() == server_lines_read_) return;
  const std::vector<std::string> lines = absl::StrSplit(server_->Log(), '\n');
  const std::size_t whole = lines.size() - 1;  // behind the last newline: a line that is not whole yet
  for (; server_lines_read_ < whole; ++server_lines_read_) rounds_.Read(lines[server_lines_read_]);
}

void Storm::NoteContributions() {
  for (Worker& worker : workers_) {
    if (!worker.restarted.has_value() || worker.process == nullptr) continue;
    if (!worker.process->WaitForLog("reason=accepted", absl::ZeroDuration()).ok()) continue;
    results_.restart_seconds.push_back(absl::ToDoubleSeconds(Now() - *worker.restarted));
    worker.restarted.reset();
  }
}

void Storm::NoteUnexpectedEnds() {
  for (Worker& worker : workers_) {
    if (worker.process == nullptr || !worker.process->Wait(absl::ZeroDuration()).ok()) continue;
    results_.faults.push_back(absl::StrCat("worker ", worker.name, " ended by itself:\n", Tail(worker.process.get())));
    return;
  }
  if (server_ != nullptr && server_->Wait(absl::ZeroDuration()).ok()) {
    results_.faults.push_back(absl::StrCat("the server ended by itself:\n", Tail(server_.get())));
  }
}

void Storm::PrintProgress() {
  std::printf(
      "%6.1f s  rounds %llu of %llu opened  kills %llu workers, %llu server  restarts %zu, median %.2f s  %.1f MB\n",
      absl::ToDoubleSeconds(Now() - began_), static_cast<unsigned long long>(rounds_.committed()),
      static_cast<unsigned long long>(rounds_.opened()), static_cast<unsigned long long>(results_.worker_kills),
      static_cast<unsigned long long>(results_.server_kills), results_.restart_seconds.size(),
      MedianOf(results_.restart_seconds),
      results_.memory.empty() ? 0.0 : static_cast<double>(results_.memory.back().bytes) / 1e6);
  std::fflush(stdout);
}

// What the server itself says of its committed rounds, over all its lives.
absl::Status Storm::TakeRounds() {
  if (server_ == nullptr) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(const server::AdminClient client, server::AdminClient::Open(address_, /*insecure=*/false));
  const absl::StatusOr<v1::Rounds> rounds = client.GetRounds(kCallTimeout);
  if (!rounds.ok()) {
    results_.faults.push_back(absl::StrCat("the server does not tell its rounds: ", rounds.status().ToString()));
    return absl::OkStatus();
  }
  for (const v1::RoundRecord& round : rounds->rounds()) {
    if (round.assigned() == 0) continue;
    results_.shares.push_back(std::min(1.0, static_cast<double>(round.contributors()) / round.assigned()));
  }
  return absl::OkStatus();
}

void Storm::StopServer() {
  if (server_ == nullptr) return;
  server_->Signal(SIGTERM);
  const absl::StatusOr<int> code = server_->Wait(kStopLimit);
  if (!code.ok() || *code != 0) {
    results_.faults.push_back(absl::StrCat("the server did not stop in order:\n", Tail(server_.get())));
  }
  ReadServerLog();
}

void Storm::CheckLedger() {
  const absl::StatusOr<std::unique_ptr<Process>> verify =
      Process::Start({ProgramPath("autoloco"), "verify", folder_.File("state")});
  if (!verify.ok()) return;
  const absl::StatusOr<int> code = (*verify)->Wait(kVerifyLimit);
  results_.ledger_balanced = code.ok() && *code == 0;
  if (!results_.ledger_balanced) std::printf("%s%s", (*verify)->Output().c_str(), (*verify)->Log().c_str());
}

}  // namespace autoloco::test
