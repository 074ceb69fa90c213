// Pulls whose reader hardly reads, against a real server: they are cut and harm nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "tests/e2e/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kStallTimeout = absl::Seconds(3);

const std::string kStarted =
    R"(grpc_server_started_total{grpc_method="Pull",grpc_service="autoloco.v1.ParameterServer"} )";
const std::string kCut =
    R"(grpc_server_handled_total{grpc_code="CANCELLED",grpc_method="Pull",grpc_service="autoloco.v1.ParameterServer"} )";

// A pull of twelve MB: more than lies in the buffers between server and reader.
class SlowReaderTest : public ServerFixture {
 protected:
  SlowReaderTest()
      : ServerFixture({"--model.preset=custom", "--model.layers=4", "--model.width=256", "--model.heads=4",
                       "--model.kv-heads=4", "--model.mlp-hidden=704"}) {}
  void SetUp() override {
    StartServer({"--server.stall-timeout-seconds", absl::StrCat(absl::ToInt64Seconds(kStallTimeout))});
    if (!HasFatalFailure()) JoinBoth();
  }
  std::string Metrics() const {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server_.metrics.substr(server_.metrics.rfind(':') + 1), &port));
    return HttpGet(port, "/metrics");
  }
  void AwaitMetric(const std::string& line) {
    const Instant limit = MonotonicClock()->Now() + kCallTimeout;
    while (MonotonicClock()->Now() < limit) {
      if (absl::StrContains(Metrics(), line)) return;
      absl::SleepFor(absl::Milliseconds(20));
    }
    FAIL() << "want " << line << " in " << Metrics();
  }
  // Beside a pull of `b` that hardly moves, and is not cut yet.
  void ExpectOthersGoOn() {
    const std::vector<float> delta = SomeDelta(0.01F);
    const Instant begin = MonotonicClock()->Now();
    EXPECT_TRUE(a_->client().Pull(a_->identity(), layout_.value_count()).ok());
    const absl::StatusOr<v1::PushReply> reply = a_->PushDelta(assignment_a_, delta);
    EXPECT_LT(MonotonicClock()->Now() - begin, kStallTimeout) << "as long as the other one was let to go on";
    EXPECT_THAT(Metrics(), Not(HasSubstr(kCut))) << "they were to run side by side";
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_ACCEPTED) << reply->reason();
  }
};

// 1 kB/s: it moves, but not enough. Where TCP holds a write that the cut call has begun, the call ends with it: when
// nobody has taken its bytes for 10 s.
TEST_F(SlowReaderTest, ATricklingPullIsCutAndSlowsNobody) {
  const std::unique_ptr<Relay> relay = Relay::Start(server_.address).value();
  relay->SetRate(Direction::kToClient, 1000);
  absl::Status trickled;
  std::thread reader(
      [&] { trickled = ProtocolClient(relay->address()).Pull(b_->identity(), layout_.value_count()).status(); });
  AwaitMetric(kStarted + "3");  // two have joined
  ExpectOthersGoOn();
  AwaitMetric(kCut + "1");
  relay->SetRate(Direction::kToClient, 0);  // so that the reader hears of it
  reader.join();
  EXPECT_THAT(trickled.code(), AnyOf(absl::StatusCode::kCancelled, absl::StatusCode::kUnavailable)) << trickled;
  const absl::StatusOr<PulledParameters> again = b_->client().Pull(b_->identity(), layout_.value_count());
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST_F(SlowReaderTest, APullThatIsNotReadIsCutAndSlowsNobody) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  v1::PullRequest request;
  *request.mutable_identity() = b_->identity();
  const auto reader = b_->client().bulk()->Pull(&context, request);
  v1::PullReply reply;
  ASSERT_TRUE(reader->Read(&reply));
  EXPECT_TRUE(reply.has_header());
  ExpectOthersGoOn();
  AwaitMetric(kCut + "1");
  while (reader->Read(&reply)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace autoloco::test
