#include "server/telemetry/prometheus_telemetry.h"

#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/wall_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/http_get.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ManualClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  Instant now = absl::UnixEpoch() + absl::Hours(100);
};

class PrometheusTelemetryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.listen = "127.0.0.1:0";
    options_.build_version = "1.2.3";
    options_.build_commit = "abcdef0";
    options_.run_id = "run-01234567";
    options_.model = "tiny";
    options_.codec = "fp32";
    options_.broadcast_codec = "quantized";
    options_.outer_learning_rate = 0.7;
    options_.outer_momentum = 0.9;
    options_.clock = &clock_;
    Create();
  }
  void Create() {
    telemetry_.reset();
    auto telemetry = PrometheusTelemetry::Create(options_);
    ASSERT_TRUE(telemetry.ok()) << telemetry.status();
    telemetry_ = *std::move(telemetry);
  }

  std::string Scrape() { return HttpGet(telemetry_->port(), "/metrics"); }

  // The value of `series` as the scrape spells it; "absent" where there is none.
  static std::string ValueOf(const std::string& scrape, const std::string& series) {
    const std::size_t at = scrape.find("\n" + series + " ");
    if (at == std::string::npos) return "absent";
    const std::size_t start = at + series.size() + 2;
    return scrape.substr(start, scrape.find('\n', start) - start);
  }
  std::string Value(const std::string& series) { return ValueOf(Scrape(), series); }

  static WorkerStatus Worker(const std::string& name, WorkerState state, std::uint64_t tokens) {
    WorkerStatus worker;
    worker.worker = {name, 1};
    worker.state = state;
    worker.tokens = tokens;
    worker.base_version = 4;
    worker.steps_target = 25;
    worker.loss = 2.5;
    return worker;
  }

  ManualClock clock_;
  TelemetryOptions options_;
  std::unique_ptr<PrometheusTelemetry> telemetry_;
};

TEST_F(PrometheusTelemetryTest, SaysWhatItIs) {
  const std::string scrape = Scrape();
  EXPECT_THAT(scrape, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_EQ(ValueOf(scrape, "autoloco_build_info{commit=\"abcdef0\",version=\"1.2.3\"}"), "1");
  EXPECT_EQ(
      ValueOf(scrape,
              "autoloco_run_info{broadcast_codec=\"quantized\",codec=\"fp32\",model=\"tiny\",run_id=\"run-01234567\"}"),
      "1");
  EXPECT_THAT(ValueOf(scrape, "autoloco_outer_learning_rate"), StartsWith("0.7"));
  EXPECT_THAT(scrape, HasSubstr("# TYPE autoloco_rounds_total counter\n"));
}

TEST_F(PrometheusTelemetryTest, CountersStartAtZero) {
  const std::string scrape = Scrape();
  for (const char* series :
       {"autoloco_rounds_total{outcome=\"committed\"}", "autoloco_rounds_total{outcome=\"aborted\"}",
        "autoloco_pushes_total{outcome=\"non_finite\"}", "autoloco_pushes_total{outcome=\"layout\"}",
        "autoloco_pushes_total{outcome=\"checksum\"}", "autoloco_wire_bytes_total{direction=\"push\"}",
        "autoloco_raw_bytes_total{direction=\"pull\"}", "autoloco_checkpoint_failures_total",
        "autoloco_decisions_total{kind=\"membership\",reason=\"lease_expired\"}",
        "autoloco_decisions_total{kind=\"interval\",reason=\"spike\"}",
        "autoloco_decisions_total{kind=\"close\",reason=\"left_out\"}",
        "autoloco_decisions_total{kind=\"run\",reason=\"checkpoint_failed\"}"}) {
    EXPECT_EQ(ValueOf(scrape, series), "0") << series;
  }
  EXPECT_EQ(ValueOf(scrape, "autoloco_eval_loss"), "absent");
}

TEST_F(PrometheusTelemetryTest, TheLedgerIsAsTheRunHasIt) {
  RunStatus status;
  status.ledger = {100, 40, 1, 2, 3, 4};  // a restarted server goes on with what its run has counted
  status.ledger_outstanding = 50;
  telemetry_->OnStatus(status);
  status.ledger.applied += 50;
  status.ledger_outstanding = 0;
  telemetry_->OnStatus(status);
  const std::string scrape = Scrape();
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_tokens_total{fate=\"leased\"}"), "100");
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_tokens_total{fate=\"applied\"}"), "90");
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_tokens_total{fate=\"late\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_tokens_total{fate=\"rejected\"}"), "2");
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_tokens_total{fate=\"lost\"}"), "3");
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_tokens_total{fate=\"unused\"}"), "4");
  EXPECT_EQ(ValueOf(scrape, "autoloco_ledger_outstanding_tokens"), "0");
}

TEST_F(PrometheusTelemetryTest, CountsARound) {
  RunStatus status;
  status.workers = {Worker("w1", WorkerState::kTraining, 0)};
  telemetry_->OnStatus(status);
  RoundCommitted round;
  round.round = 3;
  round.applied = 2;
  round.expected = 3;
  round.duration = absl::Seconds(20);
  round.wait = absl::Milliseconds(50);
  round.stats.mean_delta_norm = 1.5;
  round.stats.momentum_norm = 2.5;
  round.stats.parameter_norm = 30;
  round.stats.delta_norm_by_worker = {{"w1", 1.25}, {"never_seen", 7}};
  round.record.ratio = 0.75;
  round.record.statistics.agreement = 0.25;
  round.record.statistics.noise_steps = 60;
  telemetry_->OnRoundCommitted(round);
  telemetry_->OnCommit(absl::Seconds(2), absl::Milliseconds(250),
                       {.values = 1000, .bytes = 250, .squared_signal = 8, .squared_error = 2});
  const std::string scrape = Scrape();
  EXPECT_EQ(ValueOf(scrape, "autoloco_rounds_total{outcome=\"committed\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_round_participants"), "2");
  EXPECT_EQ(ValueOf(scrape, "autoloco_round_expected"), "3");
  EXPECT_EQ(ValueOf(scrape, "autoloco_round_seconds_sum"), "20");
  EXPECT_EQ(ValueOf(scrape, "autoloco_round_seconds_bucket{le=\"10\"}"), "0");
  EXPECT_EQ(ValueOf(scrape, "autoloco_round_seconds_bucket{le=\"30\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_round_wait_seconds_count"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_commit_seconds_sum"), "2");
  EXPECT_EQ(ValueOf(scrape, "autoloco_broadcast_bytes_per_value"), "0.25");
  EXPECT_EQ(ValueOf(scrape, "autoloco_broadcast_error_ratio"), "0.25");
  EXPECT_EQ(ValueOf(scrape, "autoloco_commit_norm"), "1.5");
  EXPECT_EQ(ValueOf(scrape, "autoloco_momentum_norm"), "2.5");
  EXPECT_EQ(ValueOf(scrape, "autoloco_parameter_norm"), "30");
  EXPECT_EQ(ValueOf(scrape, "autoloco_delta_norm{worker=\"w1\"}"), "1.25");
  EXPECT_EQ(ValueOf(scrape, "autoloco_outer_r"), "0.75");
  EXPECT_EQ(ValueOf(scrape, "autoloco_agreement"), "0.25");
  EXPECT_EQ(ValueOf(scrape, "autoloco_noise_steps"), "60");
  EXPECT_THAT(scrape, Not(HasSubstr("never_seen")));
  round.record.statistics = {};  // a single worker: the last known values stay
  telemetry_->OnRoundCommitted(round);
  EXPECT_EQ(Value("autoloco_agreement"), "0.25");
}

TEST_F(PrometheusTelemetryTest, ABroadcastWithoutChangeHasLostNothing) {
  telemetry_->OnCommit(absl::Seconds(1), absl::ZeroDuration(), {.values = 1000, .bytes = 24});
  EXPECT_EQ(Value("autoloco_broadcast_error_ratio"), "0");
}

TEST_F(PrometheusTelemetryTest, CountsDecisionsPushesTransfersAndCalls) {
  telemetry_->OnDecision({DecisionKind::kRound, Reason::kAborted, 2, {}, "everybody left"});
  telemetry_->OnDecision({DecisionKind::kAdmission, Reason::kStale, 2, {"w1", 3}, ""});
  telemetry_->OnDecision({DecisionKind::kMembership, Reason::kViewMismatch, 2, {"w1", 3}, "it holds other values"});
  telemetry_->OnPushAnswered("replayed");
  telemetry_->OnPushAnswered("no such \"outcome\"\n");
  telemetry_->OnTransfer(Direction::kPush, 1000, 4000, absl::Seconds(1));
  telemetry_->OnTransfer(Direction::kPush, 500, 2000, absl::Seconds(2));
  telemetry_->OnCallStarted("autoloco.v1.Admin", "GetStatus");
  telemetry_->OnCallHandled("autoloco.v1.Admin", "GetStatus", "OK", absl::Milliseconds(1));
  const std::string scrape = Scrape();
  EXPECT_EQ(ValueOf(scrape, "autoloco_rounds_total{outcome=\"aborted\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_decisions_total{kind=\"round\",reason=\"aborted\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_decisions_total{kind=\"admission\",reason=\"stale\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_view_mismatches_total"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_pushes_total{outcome=\"replayed\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_pushes_total{outcome=\"other\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_wire_bytes_total{direction=\"push\"}"), "1500");
  EXPECT_EQ(ValueOf(scrape, "autoloco_raw_bytes_total{direction=\"push\"}"), "6000");
  EXPECT_EQ(ValueOf(scrape, "autoloco_transfer_seconds_count{direction=\"push\"}"), "2");
  EXPECT_EQ(ValueOf(scrape, "autoloco_wire_bytes_total{direction=\"pull\"}"), "0");
  EXPECT_EQ(ValueOf(scrape, "grpc_server_started_total{grpc_method=\"GetStatus\",grpc_service=\"autoloco.v1.Admin\"}"),
            "1");
  EXPECT_EQ(ValueOf(scrape,
                    "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"GetStatus\","
                    "grpc_service=\"autoloco.v1.Admin\"}"),
            "1");
}

TEST_F(PrometheusTelemetryTest, ShowsCheckpointsAndEvaluations) {
  telemetry_->OnCheckpoint(absl::ResourceExhaustedError("cannot write x: No space left on device"), absl::Seconds(1));
  EXPECT_EQ(Value("autoloco_checkpoint_failures_total"), "1");
  EXPECT_EQ(Value("autoloco_checkpoint_last_success_timestamp_seconds"), "absent");
  telemetry_->OnCheckpoint(StoredCheckpoint{"/x/step-1", 12345}, absl::Seconds(1));
  telemetry_->OnEvaluation({4, 100, 2.25, 1000});
  const std::string scrape = Scrape();
  EXPECT_EQ(ValueOf(scrape, "autoloco_checkpoint_bytes"), "12345");
  EXPECT_EQ(ValueOf(scrape, "autoloco_eval_loss"), "2.25");
  const double at = std::stod(ValueOf(scrape, "autoloco_checkpoint_last_success_timestamp_seconds"));
  EXPECT_NEAR(at, static_cast<double>(absl::ToUnixSeconds(WallTimeNow())), 100);
  telemetry_->OnEvaluation({5, 125, std::numeric_limits<double>::quiet_NaN(), 1000});
  EXPECT_EQ(Value("autoloco_eval_loss"), "Nan");
}

TEST_F(PrometheusTelemetryTest, ShowsWorkers) {
  RunStatus status;
  status.version = 4;
  status.interval_steps = 25;
  status.workers = {Worker("w1", WorkerState::kTraining, 1000), Worker("w2", WorkerState::kLeft, 0)};
  status.workers[0].last_seen = clock_.now - absl::Seconds(30);
  telemetry_->OnStatus(status);
  status.workers[0].tokens = 1500;
  telemetry_->OnStatus(status);
  const std::string scrape = Scrape();
  EXPECT_EQ(ValueOf(scrape, "autoloco_version"), "4");
  EXPECT_EQ(ValueOf(scrape, "autoloco_interval_steps"), "25");
  EXPECT_EQ(ValueOf(scrape, "autoloco_workers{state=\"training\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_workers{state=\"left\"}"), "1");
  EXPECT_EQ(ValueOf(scrape, "autoloco_workers{state=\"pushing\"}"), "0");
  EXPECT_EQ(ValueOf(scrape, "autoloco_tokens_total{worker=\"w1\"}"), "1500");
  EXPECT_EQ(ValueOf(scrape, "autoloco_train_loss{worker=\"w1\"}"), "2.5");
  EXPECT_EQ(ValueOf(scrape, "autoloco_worker_base_version{worker=\"w1\"}"), "4");
  EXPECT_EQ(ValueOf(scrape, "autoloco_worker_inner_steps_target{worker=\"w1\"}"), "25");
  const double seen = std::stod(ValueOf(scrape, "autoloco_worker_last_seen_timestamp_seconds{worker=\"w1\"}"));
  EXPECT_NEAR(seen, static_cast<double>(absl::ToUnixSeconds(WallTimeNow())) - 30, 20);
}

TEST_F(PrometheusTelemetryTest, WorkersBeyondTheLimitShareACounter) {
  options_.worker_series_max = 2;
  Create();
  RunStatus status;
  for (const char* name : {"a", "b", "c", "d"}) status.workers.push_back(Worker(name, WorkerState::kTraining, 10));
  telemetry_->OnStatus(status);
  const std::string scrape = Scrape();
  EXPECT_EQ(ValueOf(scrape, "autoloco_tokens_total{worker=\"b\"}"), "10");
  EXPECT_EQ(ValueOf(scrape, "autoloco_tokens_total{worker=\"_other\"}"), "20");
  EXPECT_EQ(ValueOf(scrape, "autoloco_train_loss{worker=\"_other\"}"), "absent");
  EXPECT_THAT(scrape, Not(HasSubstr("worker=\"c\"")));
}

TEST_F(PrometheusTelemetryTest, SeriesGoAnHourAfterTheWorker) {
  RunStatus status;
  status.workers = {Worker("w1", WorkerState::kTraining, 10)};
  telemetry_->OnStatus(status);
  RoundCommitted round;
  round.stats.delta_norm_by_worker = {{"w1", 1}};
  round.record.statistics.agreement = 0.5;
  round.record.statistics.noise_steps = 25;
  telemetry_->OnRoundCommitted(round);
  status.workers[0].state = WorkerState::kLeft;
  telemetry_->OnStatus(status);
  clock_.now += absl::Minutes(59);
  telemetry_->OnStatus(status);
  EXPECT_EQ(Value("autoloco_train_loss{worker=\"w1\"}"), "2.5");
  clock_.now += absl::Minutes(1);
  telemetry_->OnStatus(status);
  telemetry_->OnRoundCommitted(round);
  EXPECT_THAT(Scrape(), Not(HasSubstr("worker=\"w1\"")));
  // It comes back: the series begin anew.
  status.workers[0] = Worker("w1", WorkerState::kJoining, 5);
  telemetry_->OnStatus(status);
  EXPECT_EQ(Value("autoloco_tokens_total{worker=\"w1\"}"), "5");
}

TEST_F(PrometheusTelemetryTest, ScrapesRunBesideChanges) {
  std::thread scraper([this] {
    for (int round = 0; round < 20; ++round) EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK"));
  });
  RunStatus status;
  for (int round = 0; round < 200; ++round) {
    status.workers = {Worker(absl::StrCat("w", round % 7), WorkerState::kTraining, 10)};
    telemetry_->OnStatus(status);
    clock_.now += absl::Minutes(10);
    telemetry_->OnTransfer(Direction::kPull, 1, 1, absl::Seconds(1));
  }
  scraper.join();
  EXPECT_EQ(Value("autoloco_wire_bytes_total{direction=\"pull\"}"), "200");
}

TEST_F(PrometheusTelemetryTest, ShowsTheProcess) {
  const std::string scrape = Scrape();
  EXPECT_GT(std::stod(ValueOf(scrape, "process_resident_memory_bytes")), 1e6);
  EXPECT_GT(std::stod(ValueOf(scrape, "process_virtual_memory_bytes")), 1e6);
  EXPECT_GE(std::stod(ValueOf(scrape, "process_cpu_seconds_total")), 0);
  EXPECT_GE(std::stod(ValueOf(scrape, "process_open_fds")), 3);
  EXPECT_GE(std::stod(ValueOf(scrape, "process_max_fds")), 3);
  EXPECT_NEAR(std::stod(ValueOf(scrape, "process_start_time_seconds")),
              static_cast<double>(absl::ToUnixSeconds(WallTimeNow())), 600);
}

TEST_F(PrometheusTelemetryTest, ABusyPortIsNamed) {
  options_.listen = absl::StrCat("127.0.0.1:", telemetry_->port());
  const auto second = PrometheusTelemetry::Create(options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().message(),
            absl::StrCat("cannot serve metrics on ", options_.listen, ": Address already in use"));
}

TEST_F(PrometheusTelemetryTest, WrongAddressesAreNamed) {
  for (const char* address : {"7071", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
                              "[::1:5", "1.2.3.4.5:80", "127.0.0.1:80r"}) {
    options_.listen = address;
    const auto telemetry = PrometheusTelemetry::Create(options_);
    EXPECT_EQ(telemetry.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(telemetry.status().message()), HasSubstr(address));
  }
  options_.listen = "192.0.2.1:0";  // TEST-NET: nobody's
  const auto foreign = PrometheusTelemetry::Create(options_);
  EXPECT_EQ(foreign.status().message(), "cannot serve metrics on 192.0.2.1:0: Cannot assign requested address");
}

TEST_F(PrometheusTelemetryTest, HostNamesAreResolved) {
  options_.listen = "localhost:0";
  Create();
  EXPECT_THAT(Scrape(), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(PrometheusTelemetryTest, WorksWithoutAnEndpoint) {
  options_.listen = "";
  Create();
  EXPECT_EQ(telemetry_->port(), 0);
  telemetry_->OnCommit(absl::Seconds(1), absl::ZeroDuration(), {});
  telemetry_->OnStatus(RunStatus());
}

TEST_F(PrometheusTelemetryTest, AStorageTroubleIsLoggedOnceAMinuteAndItsEndOnce) {
  const absl::Status full = absl::ResourceExhaustedError("full");
  const auto logged = [this](StorageTask task, const absl::Status& status) {
    ::testing::internal::CaptureStderr();
    telemetry_->OnStorage(task, status, absl::ZeroDuration());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(logged(StorageTask::kRoom, full), HasSubstr("storage_failed task=room error=full"));
  EXPECT_EQ(logged(StorageTask::kRoom, full), "");
  EXPECT_EQ(logged(StorageTask::kRecords, absl::OkStatus()), "");  // the other task never failed
  EXPECT_THAT(logged(StorageTask::kRoom, absl::ResourceExhaustedError("gone")), HasSubstr("error=gone"));
  clock_.now += absl::Seconds(59);
  EXPECT_EQ(logged(StorageTask::kRoom, absl::ResourceExhaustedError("gone")), "");
  clock_.now += absl::Seconds(1);
  EXPECT_THAT(logged(StorageTask::kRoom, absl::ResourceExhaustedError("gone")), HasSubstr("error=gone"));
  EXPECT_THAT(logged(StorageTask::kRoom, absl::OkStatus()), HasSubstr("storage_works_again task=room"));
  // Room for one of two deltas, again and again: no line for each of them.
  EXPECT_EQ(logged(StorageTask::kRoom, absl::ResourceExhaustedError("gone")), "");
  EXPECT_EQ(logged(StorageTask::kRoom, absl::OkStatus()), "");
  EXPECT_EQ(Value("autoloco_storage_failures_total"), "6");
}

TEST_F(PrometheusTelemetryTest, PromtoolFindsNothingToSay) {
  if (std::system("command -v promtool > /dev/null 2>&1") != 0) GTEST_SKIP() << "promtool is not installed";
  RunStatus status;
  status.workers = {Worker("w1", WorkerState::kTraining, 10)};
  telemetry_->OnStatus(status);
  RoundCommitted round;
  round.stats.delta_norm_by_worker = {{"w1", 1}};
  round.record.statistics.agreement = 0.5;
  round.record.statistics.noise_steps = 25;
  telemetry_->OnRoundCommitted(round);
  telemetry_->OnCommit(absl::Seconds(1), absl::ZeroDuration(), {});
  telemetry_->OnTransfer(Direction::kPush, 1, 1, absl::Seconds(1));
  telemetry_->OnEvaluation({});
  telemetry_->OnCheckpoint(StoredCheckpoint{"x", 1}, absl::Seconds(1));
  telemetry_->OnStorage(StorageTask::kRecords, absl::OkStatus(), absl::Seconds(1));
  telemetry_->OnCallStarted("s", "m");
  telemetry_->OnCallHandled("s", "m", "OK", absl::Seconds(1));
  const std::string scrape = Scrape();
  for (const MetricSpec& spec : MetricCatalogue()) {
    EXPECT_THAT(scrape, HasSubstr(absl::StrCat("# TYPE ", spec.name, " ")));
  }
  const TempFolder temp;
  ASSERT_TRUE(WriteFileAtomically(temp.File("metrics"), scrape.substr(scrape.find("\r\n\r\n") + 4)).ok());
  const std::string command =
      absl::StrCat("promtool check metrics < ", temp.File("metrics"), " > ", temp.File("out"), " 2>&1");
  const int code = std::system(command.c_str());
  EXPECT_EQ(code, 0) << *ReadFile(temp.File("out"), 1 << 20);
}

}  // namespace
}  // namespace autoloco::server
