#include "worker/client/pull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/protocol.h"
#include "tests/unit/worker/client/scripted_service.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kLayoutHash = 42;

class PullTest : public ::testing::Test {
 protected:
  PullTest() : values_(200000), base_(values_.size(), -1.0f) {
    const RandomStream random(1, 1);
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(random.Normal(i));
    payload_ = EncodeVector(values_, Codec::kFp32, 1);
    header_.set_version(6);
    header_.set_params_digest(Digest128(std::span<const float>(values_)));
    header_.set_payload_bytes(payload_.size());
    header_.set_layout_hash(kLayoutHash);
    service_.on_pull = [this](grpc::ServerContext*, const v1::PullRequest& request,
                              grpc::ServerWriter<v1::PullReply>* writer) {
      request_ = request;
      return Serve(writer);
    };
  }

  grpc::Status Serve(grpc::ServerWriter<v1::PullReply>* writer) {
    v1::PullReply reply;
    *reply.mutable_header() = header_;
    writer->Write(reply);
    for (std::size_t offset = 0; offset < payload_.size(); offset += kChunkBytes) {
      reply.mutable_chunk()->set_offset(offset + shift_);
      reply.mutable_chunk()->set_data(payload_.substr(offset, kChunkBytes));
      if (!writer->Write(reply)) break;
    }
    return grpc::Status::OK;
  }
  PullJob Job() {
    return {.ticket = 3,
            .identity = {.run_id = "run-1", .incarnation = 2},
            .version = 6,
            .held_digest = "",
            .probe = false,
            .layout_hash = kLayoutHash,
            .base = base_};
  }
  PullEnded Run(const PullJob& job) {
    Transfer transfer(absl::Seconds(60));
    return RunPull(service_.NewStub().get(), "w", job, &transfer);
  }
  bool Untouched() const {
    return std::all_of(base_.begin(), base_.end(), [](float value) { return value == -1.0f; });
  }

  std::vector<float> values_;
  std::vector<float> base_;
  std::string payload_;
  v1::PullHeader header_;
  v1::PullRequest request_;
  std::size_t shift_ = 0;
  ScriptedService service_;
};

TEST_F(PullTest, WritesTheParametersAndSaysWhatTheyAre) {
  ASSERT_GT(payload_.size(), kChunkBytes);
  const PullEnded ended = Run(Job());
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.ticket, 3u);
  EXPECT_EQ(ended.version, 6u);
  EXPECT_EQ(ended.digest, header_.params_digest());
  EXPECT_FALSE(ended.differs);
  EXPECT_EQ(base_, values_);
  EXPECT_EQ(request_.identity().worker(), "w");
  EXPECT_EQ(request_.version(), 6u);
  EXPECT_FALSE(request_.current());
}

TEST_F(PullTest, AsksForTheCurrentVersion) {
  PullJob job = Job();
  job.version.reset();
  ASSERT_TRUE(Run(job).status.ok());
  EXPECT_TRUE(request_.current());
}

TEST_F(PullTest, EqualParametersAreNotTransferred) {
  PullJob job = Job();
  job.held_digest = header_.params_digest();
  for (const bool probe : {false, true}) {
    job.probe = probe;
    const PullEnded ended = Run(job);
    ASSERT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_FALSE(ended.differs);
    EXPECT_EQ(ended.version, 6u);
    EXPECT_TRUE(Untouched());
  }
}

TEST_F(PullTest, AProbeThatFindsOthersWritesNothing) {
  PullJob job = Job();
  job.held_digest = "another";
  job.probe = true;
  const PullEnded ended = Run(job);
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_TRUE(ended.differs);
  EXPECT_TRUE(Untouched());
}

TEST_F(PullTest, AnotherLayoutIsRefused) {
  header_.set_layout_hash(43);
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Untouched());
}

TEST_F(PullTest, AnAnnouncedSizeIsBoundedBeforeMemoryIsTaken) {
  header_.set_payload_bytes(std::uint64_t{1} << 60);
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
  header_.set_payload_bytes(0);
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, MoreOrLessThanAnnouncedIsDataLoss) {
  header_.set_payload_bytes(payload_.size() - 1);
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
  header_.set_payload_bytes(payload_.size() + 1);
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(Untouched());
}

TEST_F(PullTest, ChunksOutOfPlaceAreDataLoss) {
  shift_ = 1;
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, AFlippedByteIsFound) {
  payload_[payload_.size() / 2] = static_cast<char>(payload_[payload_.size() / 2] ^ 1);
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, AnotherDigestIsFound) {
  header_.set_params_digest(std::string(32, '0'));
  EXPECT_EQ(Run(Job()).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, TheServersErrorIsPassedOn) {
  service_.on_pull = [](grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*) {
    return grpc::Status(grpc::StatusCode::ABORTED, "version 6 is gone");
  };
  EXPECT_EQ(Run(Job()).status, absl::AbortedError("version 6 is gone"));
}

TEST_F(PullTest, AStalledTransferIsGivenUp) {
  service_.on_pull = [this](grpc::ServerContext* context, const v1::PullRequest&,
                            grpc::ServerWriter<v1::PullReply>* writer) {
    v1::PullReply reply;
    *reply.mutable_header() = header_;
    writer->Write(reply);
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  Transfer transfer(absl::Milliseconds(20));
  const PullEnded ended = RunPull(service_.NewStub().get(), "w", Job(), &transfer);
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PullTest, ACancelledTransferEnds) {
  Transfer transfer(absl::Seconds(60));
  service_.on_pull = [&transfer](grpc::ServerContext* context, const v1::PullRequest&,
                                 grpc::ServerWriter<v1::PullReply>*) {
    transfer.Cancel();
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(RunPull(service_.NewStub().get(), "w", Job(), &transfer).status.code(), absl::StatusCode::kCancelled);
  Transfer before(absl::Seconds(60));
  before.Cancel();
  EXPECT_EQ(RunPull(service_.NewStub().get(), "w", Job(), &before).status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace autoloco::worker
