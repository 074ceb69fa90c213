#include "server/ctl/status_text.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Status SampleStatus() {
  v1::Status status;
  status.set_run_id("quickstart-0a1b2c3d");
  status.set_server_version("0.1.0");
  status.set_phase(v1::Status::PHASE_TRAINING);
  status.set_reason("round 12 is open");
  status.set_version(12);
  status.set_round(12);
  status.set_params_digest("00112233445566778899aabbccddeeff");
  status.set_inner_steps_done(300);
  status.set_inner_steps_total(600);
  status.set_interval_steps(25);
  status.set_interval_reason("learning_rate: reference 20 x schedule 1.25 x measured 1");
  status.set_alive(2);
  status.set_assigned(2);
  status.set_contributed(1);
  status.set_applied(2);
  status.set_rounds_committed(12);
  status.set_worker_inner_steps(600);
  status.set_parameters(787072);
  status.set_bytes_up(63123456);
  status.set_bytes_down(999);
  status.set_uptime_seconds(7384.4);
  status.set_quorum(2);
  status.set_deadline_seconds(4.25);
  status.set_deadline_reason("deadline: 12.500 s after the opening");
  status.set_checkpoint("/var/lib/autoloco/checkpoints/step-0000000250");
  v1::TokenLedger* ledger = status.mutable_ledger();
  ledger->set_leased(900);
  ledger->set_applied(700);
  ledger->set_late(20);
  ledger->set_rejected(30);
  ledger->set_lost(40);
  ledger->set_unused(10);
  ledger->set_outstanding(100);
  v1::EvaluationPoint* first = status.add_evaluations();
  first->set_loss(5.53125);
  v1::EvaluationPoint* last = status.add_evaluations();
  last->set_version(12);
  last->set_loss(2.10342);
  v1::WorkerStatus* worker = status.add_workers();
  worker->set_name("amsterdam-1");
  worker->set_incarnation(1);
  worker->set_state("training");
  worker->set_base_version(12);
  worker->set_steps_done(13);
  worker->set_steps_target(25);
  worker->set_loss(2.25);
  worker->set_tokens_per_second(20312.7);
  worker->set_compute_share(0.974);
  worker->set_share(0.5);
  worker->set_last_seen_seconds(0.34);
  worker = status.add_workers();
  worker->set_name("oslo");
  worker->set_incarnation(14);
  worker->set_state("left");
  worker->set_base_version(9);
  worker->set_steps_target(25);
  worker->set_loss(2.75);
  worker->set_last_seen_seconds(120);
  worker->set_reason("lease expired");
  return status;
}

TEST(StatusTableTest, ShowsTheWholeRun) {
  EXPECT_EQ(StatusTable(SampleStatus()),
            R"(run         quickstart-0a1b2c3d, server 0.1.0, up 2:03:04
phase       training: round 12 is open
progress    version 12, round 12, 12 committed, 0 aborted
inner steps 300 of 600 (50.0 %), interval 25, 600 of all workers
interval    learning_rate: reference 20 x schedule 1.25 x measured 1
workers     2 alive, 2 assigned, 1 contributed, 2 applied in the last commit
deadline    in 4.2 s: deadline: 12.500 s after the opening
tokens      900 leased: 700 applied, 20 late, 30 rejected, 40 lost, 10 unused, 100 out
loss        5.5312 -> 2.1034 nats a token, held out (version 0 -> 12)
bytes       63.1 MB up, 999 B down, 787072 parameters
digest      00112233445566778899aabbccddeeff
checkpoint  /var/lib/autoloco/checkpoints/step-0000000250

WORKER       LIFE  STATE     VERSION  STEPS    LOSS  TOKENS/S  COMPUTING  SHARE        HEARD  REASON
amsterdam-1     1  training       12  13/25  2.2500     20313       97 %  0.500    0.3 s ago
oslo           14  left            9   0/25  2.7500         0        0 %  0.000  120.0 s ago  lease expired
)");
}

TEST(StatusTableTest, ShowsARunThatHasNotBegun) {
  v1::Status status;
  status.set_phase(v1::Status::PHASE_WAITING);
  status.set_reason("waiting for 1 more of 2 workers");
  const std::string text = StatusTable(status);
  EXPECT_THAT(text, HasSubstr("phase       waiting: waiting for 1 more of 2 workers\n"));
  EXPECT_THAT(text, HasSubstr("inner steps 0 of 0 (0.0 %)"));
  EXPECT_THAT(text, HasSubstr("loss        none yet\n"));
  EXPECT_THAT(text, HasSubstr("checkpoint  none yet\n"));
  EXPECT_THAT(text, Not(HasSubstr("WORKER")));
}

TEST(StatusTableTest, SaysWhyThereIsNoDeadline) {
  v1::Status status;
  status.set_deadline_reason("none before 3 deltas are in");
  EXPECT_THAT(StatusTable(status), HasSubstr("deadline    none before 3 deltas are in\n"));
}

TEST(StatusTableTest, OneEvaluationIsNotAnArrow) {
  v1::Status status;
  status.add_evaluations()->set_loss(5.5);
  EXPECT_THAT(StatusTable(status), HasSubstr("loss        5.5000 nats a token, held out (version 0)\n"));
}

TEST(StatusTableTest, TextFromTheServerCannotMoveTheCursor) {
  v1::Status status;
  status.set_reason("evil\x1b[2J\nline");
  const std::string text = StatusTable(status);
  EXPECT_THAT(text, HasSubstr("evil?[2J?line\n"));
}

TEST(StatusTableTest, AnUnknownPhaseIsItsNumber) {
  v1::Status status;
  status.set_phase(static_cast<v1::Status::Phase>(77));
  EXPECT_THAT(StatusTable(status), HasSubstr("phase       phase 77\n"));
}

TEST(StatusJsonTest, HasEveryFieldUnderItsProtoName) {
  const auto text = StatusJson(v1::Status());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, Not(HasSubstr("\n")));
  const nlohmann::json json = nlohmann::json::parse(*text);
  for (int index = 0; index < v1::Status::descriptor()->field_count(); ++index) {
    if (v1::Status::descriptor()->field(index)->has_presence()) continue;  // there where it is set
    EXPECT_TRUE(json.contains(v1::Status::descriptor()->field(index)->name()))
        << v1::Status::descriptor()->field(index)->name();
  }
}

TEST(StatusJsonTest, KeepsValues) {
  v1::Status sample = SampleStatus();
  sample.mutable_workers(0)->set_loss(std::numeric_limits<double>::quiet_NaN());
  const auto text = StatusJson(sample);
  ASSERT_TRUE(text.ok()) << text.status();
  const nlohmann::json json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["phase"], "PHASE_TRAINING");
  EXPECT_EQ(json["inner_steps_done"], "300");
  EXPECT_EQ(json["alive"], 2);
  EXPECT_EQ(json["workers"][1]["name"], "oslo");
  EXPECT_EQ(json["workers"][0]["loss"], "NaN");
  EXPECT_EQ(json["evaluations"][1]["loss"], 2.10342);
}

TEST(StatusTableTest, TheViewIsNamedWhereItIsNotTheParameters) {
  v1::Status status = SampleStatus();
  status.set_view_digest(status.params_digest());
  EXPECT_THAT(StatusTable(status), Not(HasSubstr("view ")));
  status.set_view_digest("ffeeddccbbaa99887766554433221100");
  EXPECT_THAT(StatusTable(status),
              HasSubstr("view        ffeeddccbbaa99887766554433221100, what every worker holds\n"));
}

}  // namespace
}  // namespace autoloco::server
