#include "server/runtime/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/memory_record_store.h"
#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

// The real loop, core and commit thread on a real clock; calls are made by hand.
class EventLoopTest : public ::testing::Test {
 protected:
  void SetUp() override { loop_.Start(); }

  CoreConfig Config() const {
    CoreConfig config;
    config.run_id = "run";
    config.protocol_version = 1;
    config.layout = layout_;
    config.interval.total_inner_steps = 10;
    config.interval.steps = 5;
    config.batch_size = 1;
    config.lease = absl::Seconds(60);
    config.join_timeout = absl::Hours(1);
    config.max_payload_bytes = 10000;
    return config;
  }
  // As the gRPC server does before the loop is stopped.
  void Stop() {
    inbox_.Post(CloseCalls{});
    loop_.Stop();
  }
  ServerStatus Status() {
    FakeStatusCall call;
    inbox_.Post(StatusParked{&call});
    return call.Wait();
  }

  const Clock* const clock_ = MonotonicClock();
  const Layout layout_ = *Layout::Make({{"t", {10}}});
  Inbox inbox_{clock_};
  ParameterStore parameters_ = *ParameterStore::Allocate(layout_);
  FakeCheckpointStore checkpoints_;
  FakeTelemetry telemetry_;
  WorkPool pool_{1};
  CommitRunner commits_{{clock_, &parameters_, &checkpoints_, &telemetry_, &pool_, &inbox_}};
  RoundMachine core_{Config(), CoreState(), clock_->Now()};
  MemoryRecordStore records_{&inbox_};
  EventLoop loop_{
      {clock_, &inbox_, &core_, &commits_, &records_, &pool_, &telemetry_, &layout_},
      {.codec = Codec::kFp32, .limits = {}, .push_bytes_in_flight_max = 10000, .checkpoint = "/checkpoints/old"},
      {"params", "view", {parameters_.Encode(0, "params", 1, &pool_)}, nullptr}};
};

TEST_F(EventLoopTest, StatusKnowsMoreThanTheCore) {
  const ServerStatus status = Status();
  EXPECT_EQ(status.run.phase, RunPhase::kWaiting);
  EXPECT_EQ(status.params_digest, "params");
  EXPECT_EQ(status.view_digest, "view");
  EXPECT_EQ(status.parameters, 10);
  EXPECT_EQ(status.checkpoint, "/checkpoints/old");
  EXPECT_EQ(status.bytes_up, 0);
  EXPECT_GE(status.uptime, absl::ZeroDuration());
  Stop();
}

TEST_F(EventLoopTest, AHelloIsWelcomedAndCountsAsAlive) {
  FakeSessionCall session;
  const Ticket ticket = inbox_.NextTicket();
  inbox_.Post(SessionOpened{ticket, &session});
  inbox_.Post(SessionRead{ticket, HelloReceived{ticket, {"", {"w", 0}}, 1}});
  const ServerStatus status = Status();
  EXPECT_EQ(status.run.alive, 1);
  inbox_.Post(SessionWritten{ticket, true});
  Stop();
  ASSERT_FALSE(session.sent.empty());
  EXPECT_TRUE(std::holds_alternative<SendWelcome>(session.sent[0]));
  EXPECT_EQ(session.ended->code(), absl::StatusCode::kUnavailable);
}

TEST_F(EventLoopTest, AShutdownEndsTheRunAndTheLoopGoesOnServing) {
  inbox_.Post(ShutdownAsked{"SIGTERM"});
  const RunFinished finished = loop_.WaitForFinish();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(Status().parameters, 10);
  Stop();
}

// The last thing that happens is told too, though no input follows that would wake the loop again.
TEST_F(EventLoopTest, TelemetryIsToldTheLastStatusOfAQuietRun) {
  Status();  // told at once; what follows right after it is told later
  inbox_.Post(ShutdownAsked{"SIGTERM"});
  loop_.WaitForFinish();
  EXPECT_TRUE(telemetry_.WaitForPhase(RunPhase::kDraining));
  Stop();
}

TEST_F(EventLoopTest, TheStatusSaysThatNothingCanBeStored) {
  const absl::Status full = absl::ResourceExhaustedError("the disk is full");
  inbox_.Post(StorageTrouble{StorageTask::kRoom, full});
  EXPECT_EQ(Status().run.reason, "no room for deltas: the disk is full");
  inbox_.Post(StorageTrouble{StorageTask::kRecords, full});
  EXPECT_EQ(Status().run.reason, "nothing can be stored: the disk is full");
  inbox_.Post(StorageTrouble{StorageTask::kRecords, absl::OkStatus()});
  EXPECT_EQ(Status().run.reason, "no room for deltas: the disk is full");
  inbox_.Post(StorageTrouble{StorageTask::kRoom, absl::OkStatus()});
  EXPECT_THAT(Status().run.reason, ::testing::HasSubstr("waiting for"));
  Stop();
}

TEST_F(EventLoopTest, TheRunEndsWhereStorageGaveUp) {
  inbox_.Post(StorageGaveUp{StorageTask::kRecords, absl::ResourceExhaustedError("the disk is full")});
  const RunFinished finished = loop_.WaitForFinish();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.reason, "nothing can be stored: the disk is full");
  Stop();
}

}  // namespace
}  // namespace autoloco::server
