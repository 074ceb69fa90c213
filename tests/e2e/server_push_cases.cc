// Pushes that are wrong, against a real server: each is refused with its reason, and the run goes on as if it had never
// come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/codec/delta_codec.h"
#include "tests/e2e/server_fixture.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

class PushTest : public ServerFixture {
 protected:
  void SetUp() override {
    StartServer();
    if (HasFatalFailure()) return;
    JoinBoth();
    payload_ = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
  }

  std::vector<v1::PushRequest> Messages() const { return MakePush(b_->Header(assignment_b_, payload_), payload_); }
  absl::Status PushError(const std::vector<v1::PushRequest>& messages) { return b_->client().Push(messages).status(); }

  std::string payload_;
};

TEST_F(PushTest, NanIsNamedWithItsTensor) {
  std::vector<float> delta = SomeDelta(0.01F);
  const TensorEntry& tensor = layout_.tensors()[3];
  delta[tensor.offset + 7] = std::numeric_limits<float>::quiet_NaN();
  const absl::StatusOr<v1::PushReply> reply = b_->PushDelta(assignment_b_, delta);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_NON_FINITE);
  EXPECT_THAT(reply->reason(), HasSubstr(tensor.spec.name + "[7]"));
  ExpectUnharmed();
}

TEST_F(PushTest, TruncatedIsDataLoss) {
  std::vector<v1::PushRequest> messages = Messages();
  messages.pop_back();
  const absl::Status status = PushError(messages);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(payload_.size())));
  ExpectUnharmed();
}

TEST_F(PushTest, OverlongIsOutOfRange) {
  std::vector<v1::PushRequest> messages = Messages();
  v1::Chunk* extra = messages.emplace_back().mutable_chunk();
  extra->set_offset(payload_.size());
  extra->set_data("more");
  const absl::Status status = PushError(messages);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(payload_.size())));
  ExpectUnharmed();
}

TEST_F(PushTest, GapBetweenChunksIsOutOfRange) {
  std::vector<v1::PushRequest> messages = Messages();
  messages.erase(messages.begin() + 1);
  EXPECT_EQ(PushError(messages).code(), absl::StatusCode::kOutOfRange);
  ExpectUnharmed();
}

TEST_F(PushTest, FlippedByteOnTheWayIsDataLoss) {
  std::vector<v1::PushRequest> messages = Messages();
  std::string* data = messages[1].mutable_chunk()->mutable_data();
  (*data)[data->size() / 2] ^= 0x10;
  const absl::Status status = PushError(messages);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("digest"));
  ExpectUnharmed();
}

TEST_F(PushTest, FlippedByteBeforeTheDigestIsFoundByTheBlock) {
  payload_[payload_.size() - 100] ^= 0x10;
  const absl::Status status = PushError(Messages());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("block 1"));
  ExpectUnharmed();
}

TEST_F(PushTest, AnnouncedSizeBeyondTheModelIsRefusedAtTheHeader) {
  v1::PushHeader header = b_->Header(assignment_b_, payload_);
  header.set_payload_bytes(std::uint64_t{1} << 50);
  const absl::Status status = PushError(MakePush(header, payload_));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  ExpectUnharmed();
}

TEST_F(PushTest, OtherLayoutIsRefused) {
  v1::PushHeader header = b_->Header(assignment_b_, payload_);
  header.set_layout_hash(layout_.hash() + 1);
  EXPECT_EQ(PushError(MakePush(header, payload_)).code(), absl::StatusCode::kFailedPrecondition);
  ExpectUnharmed();
}

TEST_F(PushTest, MalformedHeadersAreInvalid) {
  v1::PushHeader header = b_->Header(assignment_b_, payload_);
  header.mutable_identity()->set_worker("no spaces allowed");
  EXPECT_EQ(PushError(MakePush(header, payload_)).code(), absl::StatusCode::kInvalidArgument);
  header = b_->Header(assignment_b_, payload_);
  header.set_payload_digest("nonsense");
  EXPECT_EQ(PushError(MakePush(header, payload_)).code(), absl::StatusCode::kInvalidArgument);
  std::vector<v1::PushRequest> headless = Messages();
  headless.erase(headless.begin());
  EXPECT_EQ(PushError(headless).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PushError({}).code(), absl::StatusCode::kInvalidArgument);
  ExpectUnharmed();
}

TEST_F(PushTest, OversizedChunkLeavesTheConnectionUsable) {
  for (const std::size_t chunk_bytes : {std::size_t{1} << 20, std::size_t{8} << 20}) {
    std::vector<v1::PushRequest> messages = Messages();
    messages[1].mutable_chunk()->set_data(std::string(chunk_bytes + 1, 'x'));
    const absl::Status status = PushError(messages);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
  // The same connection as before.
  const absl::StatusOr<PulledParameters> pulled = b_->client().Pull(b_->identity(), layout_.value_count());
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  ExpectUnharmed();
}

TEST_F(PushTest, TheSameDeltaAgainGetsTheRecordedOutcome) {
  const std::vector<v1::PushRequest> messages = Messages();
  const absl::StatusOr<v1::PushReply> first = b_->client().Push(messages);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->outcome(), v1::PUSH_OUTCOME_ACCEPTED);
  EXPECT_FALSE(first->replayed());
  const absl::StatusOr<v1::PushReply> second = b_->client().Push(messages);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->outcome(), v1::PUSH_OUTCOME_ACCEPTED);
  EXPECT_TRUE(second->replayed());

  v1::PushStatusRequest request;
  *request.mutable_identity() = b_->identity();
  const absl::StatusOr<v1::PushStatusReply> asked = b_->client().PushStatus(request);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_TRUE(asked->known());
  EXPECT_EQ(asked->reply().outcome(), v1::PUSH_OUTCOME_ACCEPTED);

  // The same key with another delta is no repetition.
  payload_ = EncodeVector(SomeDelta(0.005F), Codec::kFp32, 1);
  const absl::Status conflict = PushError(Messages());
  EXPECT_EQ(conflict.code(), absl::StatusCode::kAlreadyExists) << conflict;
  const absl::StatusOr<v1::Status> status = a_->client().GetStatus();
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->contributed(), 1);
  EXPECT_EQ(status->bytes_up(), EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1).size());
}

TEST_F(PushTest, AnOlderIncarnationIsFencedOut) {
  const absl::StatusOr<std::unique_ptr<RawWorker>> successor = RawWorker::Join(server_.address, "b", layout_);
  ASSERT_TRUE(successor.ok()) << successor.status();
  EXPECT_GT((*successor)->identity().incarnation(), b_->identity().incarnation());
  const absl::Status status = PushError(Messages());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("incarnation"));
}

class StallTest : public ServerFixture {
 protected:
  void SetUp() override {
    StartServer({"--server.stall-timeout-seconds", "1"});
    if (!HasFatalFailure()) JoinBoth();
  }
};

TEST_F(StallTest, APushThatDoesNotMoveIsCut) {
  const std::string payload = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
  const std::vector<v1::PushRequest> messages = MakePush(b_->Header(assignment_b_, payload), payload);
  // Header only, header and one chunk, nothing at all: then silence.
  for (std::size_t sent = 0; sent < 3; ++sent) {
    grpc::ClientContext context;
    v1::PushReply reply;
    const auto writer = b_->client().bulk()->Push(&context, &reply);
    for (std::size_t i = 0; i < sent; ++i) writer->Write(messages[i]);
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << sent << ": " << status.error_message();
  }
  ExpectUnharmed();
}

}  // namespace
}  // namespace autoloco::test
