#include "server/runtime/effect_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

using ::testing::ElementsAre;

const Instant kStart = absl::UnixEpoch();

class EffectRunnerTest : public ::testing::Test {
 protected:
  const Layout layout_ = *Layout::Make({{"t", {10}}});
  ManualClock clock_;
  Inbox inbox_{&clock_};
  ParameterStore parameters_ = *ParameterStore::Allocate(layout_);
  FakeCheckpointStore checkpoints_;
  FakeTelemetry telemetry_;
  WorkPool pool_{1};
  CommitRunner commits_{{&clock_, &parameters_, &checkpoints_, &telemetry_, &pool_, &inbox_}};
  FakeRecordStore records_;
  PayloadStore payloads_{1000, &records_};
  std::deque<Event> events_;
  CallTable calls_{{}, {&layout_, Codec::kFp32, &pool_, &inbox_, &payloads_, &telemetry_, &events_}, {&layout_}};
  EffectRunner runner_{&calls_, &payloads_, &commits_, &records_, &telemetry_};
};

TEST_F(EffectRunnerTest, PushesAreCountedUnderTheReasonOfTheCore) {
  runner_.Run({RefusePush{1, absl::FailedPreconditionError("layout"), Reason::kWrongLayout}}, kStart);
  runner_.Run({AnswerPush{2, PushOutcome::kAccepted, "", true}}, kStart);
  runner_.Run({AnswerPush{3, PushOutcome::kLate, "", false}}, kStart);
  runner_.Run({RefusePush{4, absl::AbortedError("a newer attempt")}}, kStart);
  EXPECT_THAT(telemetry_.lines(), ElementsAre("push layout", "push replayed", "push late", "push refused"));
}

TEST_F(EffectRunnerTest, PayloadsAreDroppedWhenTheirCommitIsDone) {
  const std::string bytes = EncodeVector(std::vector<float>(10, 1.0F), Codec::kFp32, 1);
  const PushKey key{{"w", 1}, 3, 0};
  const PushKey next{{"w", 1}, 4, 0};
  const auto payload = payloads_.Admit(7, {key, "digest", bytes.size()});
  ASSERT_TRUE(payload.ok());
  EXPECT_TRUE((*payload)->Put(0, bytes).ok());
  payloads_.Keep(7, key);
  ASSERT_TRUE(payloads_.Admit(8, {next, "digest", 10}).ok());
  payloads_.Keep(8, next);
  StartCommit commit;
  commit.round = 3;
  commit.contributions = {{key, 1.0}};
  runner_.Run({commit}, kStart);
  EXPECT_EQ(std::get<CommitFinished>(*inbox_.Take(std::nullopt)).event.round, 3);
  EXPECT_NE(payloads_.Find(key), nullptr);
  runner_.OnCommitFinished();
  EXPECT_EQ(payloads_.Find(key), nullptr);
  EXPECT_NE(payloads_.Find(next), nullptr) << "of the next round";
}

TEST_F(EffectRunnerTest, RecordsGoToTheirStoreWithThePayloadsTheyAccept) {
  const PushKey key{{"w", 1}, 3, 0};
  const std::shared_ptr<Payload> payload = *payloads_.Admit(7, {key, "d", 10});
  ASSERT_TRUE(payloads_.Admit(8, {{{"v", 1}, 2, 0}, "e", 10}).ok());
  const PushRecord accepted{key, {"d", PushOutcome::kAccepted, ""}, 10, 7};
  const PushRecord late{{{"v", 1}, 2, 0}, {"e", PushOutcome::kLate, ""}, 0, 0};
  runner_.Run({StoreRecords{5, {accepted, late}}, DropPayload{8}}, kStart);
  ASSERT_EQ(records_.batches.size(), 1u);
  EXPECT_EQ(records_.batches[0].sequence, 5u);
  EXPECT_EQ(records_.batches[0].records.size(), 2u);
  ASSERT_EQ(records_.batches[0].payloads.size(), 1u);
  EXPECT_EQ(records_.batches[0].payloads[0].key, key);
  EXPECT_EQ(records_.batches[0].payloads[0].payload, payload);
  EXPECT_EQ(payloads_.Find(key), payload);
  EXPECT_EQ(payloads_.size(), 1);
  runner_.Run({DropSpooled{key}, DropSpooledBefore{2}}, kStart);
  EXPECT_EQ(payloads_.size(), 0);
  EXPECT_EQ(records_.dropped, std::vector<PushKey>{key});
  EXPECT_EQ(records_.dropped_before, 2u);
}

TEST_F(EffectRunnerTest, RemembersTheEndOfTheRun) {
  EXPECT_FALSE(runner_.finished().has_value());
  runner_.Run({RunFinished{75, false, "too few workers"}}, kStart);
  EXPECT_EQ(runner_.finished()->exit_code, 75);
}

TEST_F(EffectRunnerTest, EffectsForWhatIsGoneAreIgnored) {
  runner_.Run({SendAbort{1, 0, ""}, CloseSession{1, absl::OkStatus()}, AdmitPush{2, 10}, DropPayload{2},
               AnswerPushStatus{}, RefusePull{3, absl::AbortedError("")}, ServePull{4}},
              kStart);
  EXPECT_EQ(calls_.size(), 0);
  EXPECT_EQ(payloads_.size(), 0);
}

}  // namespace
}  // namespace autoloco::server
