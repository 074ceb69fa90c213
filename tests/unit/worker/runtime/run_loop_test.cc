#include "worker/runtime/run_loop.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/fake_trainer.h"
#include "tests/support/fill_base.h"
#include "tests/support/temp_folder.h"

namespace autoloco::worker {
namespace {

DecoderShape SmallShape() {
  return {.vocab_size = 256, .width = 16, .layers = 1, .heads = 2, .kv_heads = 2, .mlp_hidden = 32, .context = 8};
}

class FakeFactory final : public TrainerFactory {
 public:
  absl::StatusOr<std::unique_ptr<Trainer>> Make(const DecoderShape& shape, const AdamWConfig&,
                                                const DeviceOptions&) override {
    return std::make_unique<FakeTrainer>(MakeDecoderLayout(shape).value());
  }
};

// A server in one object: two rounds of three steps, each applied as it comes, then the end of the run. Answers from
// within the call, which is what the port allows at the worst.
class ScriptedServer final : public ServerConnection {
 public:
  explicit ScriptedServer(RunLoop* loop) : loop_(loop) {}

  void OpenSession(Ticket session, const Identity& identity, const std::optional<HeldDelta>&) override {
    hellos.push_back(identity);
    session_ = session;
    RunSettings settings;
    settings.shape = SmallShape();
    settings.batch_size = 2;
    settings.held_out_fraction = 0.1;
    settings.evaluation_windows = 4;
    settings.total_inner_steps = 6;
    settings.schedule = {
        .schedule = Schedule::kConstant, .learning_rate = 0.1, .warmup_steps = 0, .total_steps = 6, .final_ratio = 1};
    if (changed_settings_on_welcome && hellos.size() == 2) settings.batch_size = 3;
    loop_->PostWelcome({.session = session,
                        .identity = {.run_id = "run-1", .incarnation = 1},
                        .version = 0,
                        .heartbeat = absl::Hours(1)},
                       settings);
  }
  void CloseSession(Ticket session) override { End(session); }
  void SendReady(Ticket session, const ReadyReport& report) override {
    ready = report;
    if (changed_settings_on_welcome) {
      End(session);
    } else {
      Assign(0);
    }
  }
  void SendProgress(Ticket, const ProgressReport& report) override {
    if (report.evaluation) evaluations.push_back(*report.evaluation);
  }
  void SendGoodbye(Ticket session, const Identity&, const std::string& reason) override {
    goodbye = reason;
    End(session);
  }
  void StartPull(const PullJob& job) override {
    const std::vector<float> values(job.base->values().size(), 1.0f / static_cast<float>(1 + version));
    FillBase(values, version, job.base);
    loop_->Post(PullEnded{.ticket = job.ticket,
                          .status = absl::OkStatus(),
                          .form = PullForm::kFull,
                          .confirmed = true,
                          .version = version,
                          .digest = job.base->held().digest});
  }
  void CancelPull(Ticket) override {}
  void StartPush(const PushJob& job) override {
    pushed.push_back(job.delta);
    loop_->Post(
        PushEnded{.ticket = job.ticket, .status = absl::OkStatus(), .outcome = PushOutcome::kAccepted, .reason = ""});
    ++version;
    loop_->Post(RoundClosed{.session = session_, .round = version - 1, .version = version});
    if (version < 2) {
      Assign(version);
    } else {
      loop_->Post(Drained{.session = session_, .run_done = true, .reason = "the run is complete"});
    }
  }
  void AskPushStatus(Ticket, const Identity&, Round) override {}
  void CancelPush(Ticket) override {}

  bool changed_settings_on_welcome = false;  // the second time, after a broken session
  Version version = 0;
  std::vector<Identity> hellos;
  ReadyReport ready;
  std::vector<EvaluationPart> evaluations;
  std::vector<std::shared_ptr<const EncodedDelta>> pushed;
  std::string goodbye;

 private:
  void Assign(Round round) {
    loop_->Post(Assigned{.session = session_,
                         .assignment = {.round = round,
                                        .inner_steps = 3,
                                        .first_inner_step = 3 * round,
                                        .first_sample = 6 * round,
                                        .sample_count = 6,
                                        .evaluation_part = 0,
                                        .evaluation_parts = 1}});
  }
  void End(Ticket session) { loop_->Post(SessionEnded{.session = session, .status = absl::OkStatus()}); }

  RunLoop* const loop_;
  Ticket session_ = 0;
};

class RunLoopTest : public ::testing::Test {
 protected:
  RunLoopTest() {
    std::ofstream text(folder_.path() + "/text.txt");
    for (int i = 0; i < 400; ++i) text << "line " << i << " of the text\n";
  }
  int Run(const std::string& data) {
    Engine engine({.data = data, .device = {}}, &factory_, MonotonicClock(), &board_, &loop_);
    return loop_.Run(&engine, &server_);
  }
  TempFolder folder_;
  FakeFactory factory_;
  ProgressBoard board_{MonotonicClock()};
  RunLoop loop_{MachineConfig{}, "w", MonotonicClock(), &board_};
  ScriptedServer server_{&loop_};
};

TEST_F(RunLoopTest, AWholeRunOfTwoRounds) {
  EXPECT_EQ(Run(folder_.path() + "/text.txt"), kExitDone);
  EXPECT_EQ(server_.hellos.size(), 1u);
  EXPECT_EQ(server_.ready.layout.hash(), MakeDecoderLayout(SmallShape())->hash());
  EXPECT_GT(server_.ready.data_samples, 0u);
  ASSERT_EQ(server_.pushed.size(), 2u);
  EXPECT_EQ(server_.pushed[0]->round, 0u);
  EXPECT_EQ(server_.pushed[1]->round, 1u);
  EXPECT_NE(server_.pushed[0]->digest, server_.pushed[1]->digest);
  ASSERT_EQ(server_.evaluations.size(), 2u);
  EXPECT_EQ(server_.evaluations[1].version, 1u);
  EXPECT_LT(server_.evaluations[1].loss_sum, server_.evaluations[0].loss_sum);
  EXPECT_EQ(server_.goodbye, "the run is complete");
}

TEST_F(RunLoopTest, AWorkerWithoutDataSaysWhyAndExits2) {
  EXPECT_EQ(Run(folder_.path() + "/missing"), kExitRefused);
  EXPECT_NE(server_.goodbye.find("missing"), std::string::npos);
  EXPECT_TRUE(server_.pushed.empty());
}

TEST_F(RunLoopTest, SettingsThatChangeDuringTheRunStopTheWorker) {
  server_.changed_settings_on_welcome = true;
  EXPECT_EQ(Run(folder_.path() + "/text.txt"), kExitRefused);
  EXPECT_EQ(server_.hellos.size(), 2u);
}

TEST_F(RunLoopTest, AStopThatCameBeforeTheStartIsHeard) {
  loop_.Post(StopRequested{.reason = "stopped by SIGTERM"});
  EXPECT_EQ(Run(folder_.path() + "/text.txt"), kExitDone);
  EXPECT_TRUE(server_.pushed.empty());
}

}  // namespace
}  // namespace autoloco::worker
