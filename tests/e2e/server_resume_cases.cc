// One push over several streams, and pushes that break and go on, against a real server: what arrived is not sent
// again, and the delta is the same. Streams that stand still or trickle are cut and harm nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/byte_ranges.h"
#include "common/base/clock.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status.h"
#include "tests/e2e/server_fixture.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

// One stream of a push, on a connection of its own.
class OpenStream {
 public:
  OpenStream(const std::string& address, const v1::PushHeader& header) : client_(address) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
    writer_ = client_.bulk()->Push(&context_, &reply_);
    v1::PushRequest message;
    *message.mutable_header() = header;
    writer_->Write(message);
  }
  ~OpenStream() {
    if (finished_) return;
    context_.TryCancel();
    End().IgnoreError();
  }

  void Send(std::uint64_t offset, const std::string& bytes) {
    v1::PushRequest message;
    message.mutable_chunk()->set_offset(offset);
    message.mutable_chunk()->set_data(bytes);
    writer_->Write(message);
  }
  void HalfClose() { writer_->WritesDone(); }
  // As a connection that breaks.
  void Break() { context_.TryCancel(); }
  // Waits for the server's word.
  absl::Status End() {
    finished_ = true;
    return FromGrpcStatus(writer_->Finish());
  }
  const v1::PushReply& reply() const { return reply_; }

 private:
  ProtocolClient client_;
  grpc::ClientContext context_;
  v1::PushReply reply_;
  std::unique_ptr<grpc::ClientWriter<v1::PushRequest>> writer_;
  bool finished_ = false;
};

class ResumeTest : public ServerFixture {
 protected:
  void SetUp() override {
    StartServer({"--server.stall-timeout-seconds", "3"});
    if (HasFatalFailure()) return;
    JoinBoth();
    payload_ = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
    ASSERT_GT(payload_.size(), kChunkBytes);
  }

  v1::PushHeader Header(std::uint64_t first, std::uint64_t count) const {
    v1::PushHeader header = b_->Header(assignment_b_, payload_);
    header.set_first_byte(first);
    header.set_byte_count(count);
    return header;
  }
  v1::PushStatusReply AskStatus(const v1::Identity& identity) {
    v1::PushStatusRequest request;
    *request.mutable_identity() = identity;
    absl::StatusOr<v1::PushStatusReply> reply = b_->client().PushStatus(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : v1::PushStatusReply();
  }
  // Asks until the first chunk, and no more, has arrived.
  void AwaitFirstChunk() {
    const Instant limit = MonotonicClock()->Now() + kCallTimeout;
    while (MonotonicClock()->Now() < limit) {
      const v1::PushStatusReply reply = AskStatus(b_->identity());
      EXPECT_FALSE(reply.known());
      if (reply.missing_size() != 1 || reply.missing(0).first_byte() != kChunkBytes) continue;
      EXPECT_EQ(reply.missing(0).byte_count(), payload_.size() - kChunkBytes);
      return;
    }
    FAIL() << "the first chunk has not arrived";
  }
  std::uint64_t BytesUp() { return a_->client().GetStatus()->bytes_up(); }

  std::string payload_;
};

TEST_F(ResumeTest, ABrokenPushGoesOnWithWhatIsMissing) {
  {
    OpenStream broken(server_.address, Header(0, 0));
    broken.Send(0, payload_.substr(0, kChunkBytes));
    AwaitFirstChunk();
    broken.Break();
    EXPECT_EQ(broken.End().code(), absl::StatusCode::kCancelled);
  }
  AwaitFirstChunk();  // it is kept
  OpenStream rest(server_.address, Header(kChunkBytes, 0));
  rest.Send(0, payload_.substr(kChunkBytes));
  rest.HalfClose();
  ASSERT_TRUE(rest.End().ok());
  EXPECT_EQ(rest.reply().outcome(), v1::PUSH_OUTCOME_ACCEPTED);
  EXPECT_FALSE(rest.reply().replayed());
  EXPECT_EQ(BytesUp(), payload_.size());
  EXPECT_TRUE(AskStatus(b_->identity()).known());
}

TEST_F(ResumeTest, AllOfItAgainIsFineToo) {
  OpenStream hanging(server_.address, Header(0, 0));
  hanging.Send(0, payload_.substr(0, kChunkBytes));
  AwaitFirstChunk();
  const absl::StatusOr<v1::PushReply> reply = b_->client().Push(MakePush(Header(0, 0), payload_));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_ACCEPTED);
  ASSERT_TRUE(hanging.End().ok()) << "it hears the same answer";
  EXPECT_EQ(hanging.reply().outcome(), v1::PUSH_OUTCOME_ACCEPTED);
}

TEST_F(ResumeTest, StreamsCarryOnePushTogether) {
  const std::uint64_t third = payload_.size() / 3;
  OpenStream last(server_.address, Header(2 * third, 0));
  OpenStream middle(server_.address, Header(third, third));
  OpenStream first(server_.address, Header(0, third));
  last.Send(0, payload_.substr(2 * third));
  last.HalfClose();
  first.Send(0, payload_.substr(0, third));
  first.HalfClose();
  middle.Send(0, payload_.substr(third, third - 1));
  middle.Send(third - 1, payload_.substr(2 * third - 1, 1));
  middle.HalfClose();
  for (OpenStream* stream : {&last, &middle, &first}) {
    ASSERT_TRUE(stream->End().ok());
    EXPECT_EQ(stream->reply().outcome(), v1::PUSH_OUTCOME_ACCEPTED);
    EXPECT_FALSE(stream->reply().replayed());
  }
  EXPECT_EQ(a_->client().GetStatus()->contributed(), 1u);
}

TEST_F(ResumeTest, ARangeBeyondThePayloadIsInvalid) {
  for (const ByteRange& range : std::vector<ByteRange>{{payload_.size() + 1, 0}, {1, payload_.size()}}) {
    OpenStream stream(server_.address, Header(range.first, range.count));
    EXPECT_EQ(stream.End().code(), absl::StatusCode::kInvalidArgument);
  }
  ExpectUnharmed();
}

TEST_F(ResumeTest, ALieInOnePartIsTheWholePushs) {
  OpenStream first(server_.address, Header(0, kChunkBytes));
  OpenStream rest(server_.address, Header(kChunkBytes, 0));
  first.Send(0, payload_.substr(0, kChunkBytes));
  first.HalfClose();
  rest.Send(0, std::string(payload_.size() - kChunkBytes, 'x'));
  rest.HalfClose();
  EXPECT_EQ(first.End().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(rest.End().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(AskStatus(b_->identity()).missing_size(), 0) << "nothing of it is kept";
  ExpectUnharmed();
}

TEST_F(ResumeTest, AnotherDeltaUnderTheKeyTakesOver) {
  OpenStream old(server_.address, Header(0, 0));
  old.Send(0, payload_.substr(0, kChunkBytes));
  AwaitFirstChunk();
  payload_ = EncodeVector(SomeDelta(0.005F), Codec::kFp32, 1);
  const absl::StatusOr<v1::PushReply> reply = b_->client().Push(MakePush(Header(0, 0), payload_));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_ACCEPTED);
  EXPECT_EQ(old.End().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ResumeTest, AFencedLifeDoesNotGoOn) {
  {
    OpenStream broken(server_.address, Header(0, 0));
    broken.Send(0, payload_.substr(0, kChunkBytes));
    AwaitFirstChunk();
  }
  const absl::StatusOr<std::unique_ptr<RawWorker>> successor = RawWorker::Join(server_.address, "b", layout_);
  ASSERT_TRUE(successor.ok()) << successor.status();
  OpenStream rest(server_.address, Header(kChunkBytes, 0));
  rest.Send(0, payload_.substr(kChunkBytes));
  rest.HalfClose();
  const absl::Status status = rest.End();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("incarnation"));
}

TEST_F(ResumeTest, OneStreamThatStandsStillIsCutAndItsRangeCanBeBroughtAnew) {
  OpenStream silent(server_.address, Header(0, kChunkBytes));
  OpenStream rest(server_.address, Header(kChunkBytes, 0));
  rest.Send(0, payload_.substr(kChunkBytes));
  rest.HalfClose();
  EXPECT_EQ(silent.End().code(), absl::StatusCode::kDeadlineExceeded);
  OpenStream again(server_.address, Header(0, kChunkBytes));
  again.Send(0, payload_.substr(0, kChunkBytes));
  again.HalfClose();
  EXPECT_TRUE(again.End().ok());
  EXPECT_EQ(again.reply().outcome(), v1::PUSH_OUTCOME_ACCEPTED);
}

// 1 kB/s: it moves, but not enough.
TEST_F(ResumeTest, ATricklingStreamIsCutAndSlowsNobody) {
  const std::unique_ptr<Relay> relay = Relay::Start(server_.address).value();
  relay->SetRate(Direction::kToServer, 1000);
  OpenStream trickle(relay->address(), Header(0, 0));
  std::thread sender([&] { trickle.Send(0, payload_.substr(0, kChunkBytes)); });
  const Instant begin = MonotonicClock()->Now();
  const absl::StatusOr<v1::PushReply> reply = a_->PushDelta(assignment_a_, SomeDelta(0.01F));
  const absl::Duration beside = MonotonicClock()->Now() - begin;
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_ACCEPTED);
  EXPECT_LT(beside, absl::Seconds(3)) << "as long as the other one was let to trickle";
  sender.join();  // the server has ended it
  EXPECT_EQ(trickle.End().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GT(relay->counts().carried[static_cast<std::size_t>(Direction::kToServer)], 1000u);
}

}  // namespace
}  // namespace autoloco::test
