// A pull over several streams: each takes its blocks, all of one version, and what broke is asked for again, and only
// that.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/codec/delta_codec.h"
#include "tests/support/fill_base.h"
#include "tests/unit/worker/client/scripted_service.h"
#include "worker/client/pull.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kBlocks = 12;
constexpr std::uint64_t kValues = kBlocks * kBlockValues - 100;

// A server that sends a version whole: 6, or 7 to those who come later, which is the same in all but name. Fast blocks:
// long runs of equal values.
class PullStreamsTest : public ::testing::Test {
 protected:
  PullStreamsTest() : base_(BaseBuffer::Allocate(kValues).value()), values_(kValues) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(i / 1000);
    for (std::uint64_t index = 0; index < kBlocks; ++index) blocks_.push_back(CodedBlock(values_, index));
    service_.on_pull = [this](grpc::ServerContext*, const v1::PullRequest& request,
                              grpc::ServerWriter<v1::PullReply>* writer) { return Answer(request, writer); };
  }

  grpc::Status Answer(const v1::PullRequest& request, grpc::ServerWriter<v1::PullReply>* writer) {
    const v1::PullPart& part = request.part();
    const std::uint64_t first = part.first_block();
    const bool asks_anew = part.form() == v1::PULL_FORM_UNSPECIFIED;
    const bool comes_later = asks_anew && later_block_ == first;
    {
      MutexLock lock(&mutex_);
      parts_.push_back(part);
      while (comes_later && !first_answered_) answered_.Wait(&mutex_);
    }
    if (refusal_ && !asks_anew) return *refusal_;
    const grpc::Status status = Send(part, asks_anew ? (comes_later ? 7 : 6) : part.version(), writer);
    MutexLock lock(&mutex_);
    first_answered_ = true;
    answered_.NotifyAll();
    return status;
  }

  grpc::Status Send(const v1::PullPart& part, Version version, grpc::ServerWriter<v1::PullReply>* writer) {
    const std::uint64_t first = part.first_block();
    const std::uint64_t end = part.block_count() == 0 ? kBlocks : first + part.block_count();
    v1::PullReply reply;
    v1::PullHeader& header = *reply.mutable_header();
    const bool nothing = version == held_version_;
    header.set_form(nothing ? v1::PULL_FORM_NOTHING : v1::PULL_FORM_FULL);
    header.set_version(version);
    header.set_view_digest(Digest128(std::span<const float>(values_)));
    header.set_codec(v1::CodecConfig::DELTA_FP32);
    header.set_first_block(first);
    header.set_block_count(end - first);
    std::string payload;
    for (std::uint64_t i = first; i < end; ++i) payload += blocks_[i];
    header.set_payload_bytes(payload.size());
    writer->Write(reply);
    if (nothing) return grpc::Status::OK;
    std::uint64_t offset = 0;
    for (std::uint64_t i = first; i < end; ++i) {
      if (i == broken_block_) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut");
      reply.mutable_chunk()->set_offset(offset);
      reply.mutable_chunk()->set_data(blocks_[i]);
      offset += blocks_[i].size();
      writer->Write(reply);
    }
    return grpc::Status::OK;
  }

  PullEnded Run(std::size_t connections) {
    {
      MutexLock lock(&mutex_);
      first_answered_ = false;
    }
    Transfer transfer(absl::Seconds(60));
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (std::size_t i = 0; i < connections; ++i) channels.push_back(service_.NewChannel());
    return RunPull(channels, "w", {.ticket = 3, .identity = {}, .base = &base_}, &transfer);
  }
  // What was asked for by form and version, after another one had come.
  std::vector<v1::PullPart> AskedAgain() {
    MutexLock lock(&mutex_);
    std::vector<v1::PullPart> again;
    for (const v1::PullPart& part : parts_) {
      if (part.form() != v1::PULL_FORM_UNSPECIFIED) again.push_back(part);
    }
    return again;
  }
  // What was asked for: first block and number of blocks, sorted.
  std::vector<ByteRange> Asked() {
    MutexLock lock(&mutex_);
    std::vector<ByteRange> asked;
    for (const v1::PullPart& part : parts_) asked.push_back({part.first_block(), part.block_count()});
    std::ranges::sort(asked, {}, &ByteRange::first);
    parts_.clear();
    return asked;
  }
  void ExpectHolds(Version version = 6) {
    EXPECT_EQ(base_.held().version, version);
    EXPECT_TRUE(std::ranges::equal(base_.values(), values_));
  }

  BaseBuffer base_;
  std::vector<float> values_;
  std::vector<std::string> blocks_;
  std::uint64_t broken_block_ = kBlocks;      // at which a stream breaks
  std::optional<grpc::Status> refusal_;       // of parts of a known form
  std::optional<Version> held_version_;       // by the worker, as the server believes
  std::optional<std::uint64_t> later_block_;  // the stream that begins here asks when version 7 has been made
  Mutex mutex_;
  CondVar answered_;
  bool first_answered_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::PullPart> parts_ ABSL_GUARDED_BY(mutex_);
  ScriptedService service_;
};

TEST_F(PullStreamsTest, EachTakesItsBlocks) {
  const PullEnded ended = Run(3);
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_TRUE(ended.confirmed);
  ExpectHolds();
  EXPECT_EQ(Asked(), (std::vector<ByteRange>{{0, 4}, {4, 4}, {8, 4}}));
}

TEST_F(PullStreamsTest, AFewBlocksTakeOneStream) {
  Run(1);
  EXPECT_EQ(Asked(), (std::vector<ByteRange>{{0, 0}}));
  base_ = BaseBuffer::Allocate(kValues).value();
  Run(9);
  EXPECT_EQ(Asked().size(), 3u) << "at least four blocks each";
}

TEST_F(PullStreamsTest, OnlyWhatIsMissingComesAgain) {
  broken_block_ = 5;
  EXPECT_EQ(Run(2).status, absl::UnavailableError("cut"));
  EXPECT_EQ(Asked().front(), (ByteRange{0, 6}));
  EXPECT_EQ(base_.unfinished()->first_block, 5u);
  broken_block_ = kBlocks;
  const std::vector<ByteRange> missing = base_.MissingBlocks();
  EXPECT_EQ(missing.front().first, 5u);
  const PullEnded ended = Run(1);
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_TRUE(ended.confirmed);
  ExpectHolds();
  EXPECT_EQ(TotalBytes(Asked()), TotalBytes(missing));
}

// As a rule the header that was sent first comes first; which one does is not promised.
TEST_F(PullStreamsTest, WhoIsToldOfAnotherVersionAsksForTheFirstOnes) {
  for (const std::uint64_t later : {0, 4, 8}) {
    base_ = BaseBuffer::Allocate(kValues).value();
    later_block_ = later;
    const PullEnded ended = Run(3);
    ASSERT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_TRUE(ended.confirmed);
    ExpectHolds(ended.version);
    const std::vector<v1::PullPart> again = AskedAgain();
    EXPECT_EQ(again.size(), ended.version == 6 ? 1u : 2u);
    for (const v1::PullPart& part : again) {
      EXPECT_EQ(part.form(), v1::PULL_FORM_FULL);
      EXPECT_EQ(part.version(), ended.version);
      EXPECT_EQ(part.block_count(), 4u);
      EXPECT_EQ(part.first_block() == later, ended.version == 6);
    }
    Asked();
  }
}

TEST_F(PullStreamsTest, WhoIsToldOfAnotherVersionThanTheOneHeldLetsItBe) {
  FillBase(values_, 6, &base_);
  held_version_ = 6;
  later_block_ = 4;
  const PullEnded ended = Run(3);
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_TRUE(ended.confirmed);
  EXPECT_EQ(ended.form, ended.version == 6 ? PullForm::kNothing : PullForm::kFull);
  ExpectHolds(ended.version);
  EXPECT_EQ(AskedAgain().size(), ended.version == 6 ? 0u : 2u);
}

TEST_F(PullStreamsTest, AVersionThatGoesMeanwhileIsBegunAnew) {
  later_block_ = 6;
  refusal_ = grpc::Status(grpc::StatusCode::ABORTED, "gone");
  EXPECT_EQ(Run(2).status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(base_.unfinished(), std::nullopt);
  EXPECT_EQ(base_.held().version, std::nullopt);
  refusal_.reset();
  later_block_.reset();
  EXPECT_TRUE(Run(2).confirmed);
  ExpectHolds();
}

}  // namespace
}  // namespace autoloco::worker
