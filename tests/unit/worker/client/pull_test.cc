#include "worker/client/pull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/protocol.h"
#include "tests/support/fill_base.h"
#include "tests/unit/worker/client/scripted_service.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kLayoutHash = 42;
constexpr std::uint64_t kValues = 200000;  // four blocks
constexpr std::uint64_t kBlocks = 4;
constexpr Coding kCoding = {.codec = Codec::kRms4, .step = 1.5};

std::vector<float> Random(std::uint64_t stream) {
  std::vector<float> values(kValues);
  const RandomStream random(1, stream);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.Normal(i));
  return values;
}

// A server with the views of the versions 5, 6 and 7 and the broadcasts that lead from one to the next. A test says
// what it answers with; what it sends can be damaged on its way.
class PullTest : public ::testing::Test {
 protected:
  PullTest() : base_(BaseBuffer::Allocate(kValues).value()) {
    views_[0] = Random(1);
    for (int step : {1, 2}) {
      views_[step] = views_[step - 1];
      const std::vector<float> change = Random(1 + static_cast<std::uint64_t>(step));
      BlockEncoder encoder(kCoding);
      for (std::uint64_t index = 0; index < kBlocks; ++index) {
        const std::uint64_t begin = index * kBlockValues;
        const std::uint64_t count = BlockSize(kValues, index);
        std::string block;
        EXPECT_TRUE(encoder
                        .EncodeAndAdd(static_cast<std::uint32_t>(index), std::span(change).subspan(begin, count),
                                      std::span(views_[step]).subspan(begin, count), &block)
                        .ok());
        broadcasts_[step].push_back(block);
      }
    }
    service_.on_pull = [this](grpc::ServerContext* context, const v1::PullRequest& request,
                              grpc::ServerWriter<v1::PullReply>* writer) {
      requests_.push_back(request);
      const auto answer = answer_;  // it may go on when the client has ended its call, and the test has set the next
      return answer(context, request, writer);
    };
  }

  const std::vector<float>& View(Version version) const { return views_[version - 5]; }
  std::string DigestOf(Version version) const { return Digest128(std::span<const float>(View(version))); }
  v1::PullHeader Header(v1::PullForm form, Version version) const {
    v1::PullHeader header;
    header.set_form(form);
    header.set_version(version);
    header.set_layout_hash(kLayoutHash);
    header.set_view_digest(form == v1::PULL_FORM_LIVE ? "" : DigestOf(version));
    header.set_codec(form == v1::PULL_FORM_BROADCAST ? v1::CodecConfig::DELTA_QUANTIZED : v1::CodecConfig::DELTA_FP32);
    return header;
  }
  // The blocks of a full transfer or a broadcast.
  std::vector<std::string> Blocks(v1::PullForm form, Version version) const {
    if (form == v1::PULL_FORM_BROADCAST) return broadcasts_[version - 5];
    std::vector<std::string> blocks;
    for (std::uint64_t index = 0; index < kBlocks; ++index) blocks.push_back(CodedBlock(View(version), index));
    return blocks;
  }

  // What one answer does wrong.
  struct Fault {
    std::function<void(v1::PullHeader*)> header = [](v1::PullHeader*) {};
    std::function<void(std::string*)> payload = [](std::string*) {};
    std::uint64_t shift = 0;                   // of the offsets
    std::uint64_t blocks_until_cut = kBlocks;  // and then the stream breaks
  };
  void AnswerWith(v1::PullForm form, Version version) { AnswerWith(form, version, Fault()); }
  void AnswerWith(v1::PullForm form, Version version, const Fault& fault) {
    answer_ = [this, form, version, fault](grpc::ServerContext*, const v1::PullRequest& request,
                                           grpc::ServerWriter<v1::PullReply>* writer) {
      const std::uint64_t first = request.part().first_block();
      const std::vector<std::string> blocks = Blocks(form, version);
      std::string payload;
      for (std::uint64_t i = first; i < kBlocks && form != v1::PULL_FORM_NOTHING; ++i) payload += blocks[i];
      v1::PullReply reply;
      *reply.mutable_header() = Header(form, version);
      reply.mutable_header()->set_payload_bytes(payload.size());
      reply.mutable_header()->set_first_block(first);
      reply.mutable_header()->set_block_count(kBlocks - first);
      fault.header(reply.mutable_header());
      writer->Write(reply);
      if (request.header_only()) return grpc::Status::OK;
      fault.payload(&payload);
      std::size_t end = payload.size();
      if (fault.blocks_until_cut < kBlocks) {
        end = blocks[fault.blocks_until_cut].size() / 2;
        for (std::uint64_t i = first; i < fault.blocks_until_cut; ++i) end += blocks[i].size();
      }
      for (std::size_t offset = 0; offset < end; offset += 100000) {
        reply.mutable_chunk()->set_offset(offset + fault.shift);
        reply.mutable_chunk()->set_data(payload.substr(offset, std::min<std::size_t>(100000, end - offset)));
        bytes_sent_ += reply.chunk().data().size();
        if (!writer->Write(reply)) break;
      }
      return end < payload.size() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the link broke") : grpc::Status::OK;
    };
  }
  // Live blocks: block i as of versions[i], in the order of `order`.
  void AnswerLive(std::vector<Version> versions, std::vector<std::uint64_t> order = {0, 1, 2, 3}) {
    answer_ = [this, versions, order](grpc::ServerContext*, const v1::PullRequest& request,
                                      grpc::ServerWriter<v1::PullReply>* writer) {
      v1::PullReply reply;
      *reply.mutable_header() = Header(v1::PULL_FORM_LIVE, versions[0]);
      reply.mutable_header()->set_first_block(request.part().first_block());
      writer->Write(reply);
      if (request.header_only()) return grpc::Status::OK;
      for (const std::uint64_t index : order) {
        if (index < request.part().first_block()) continue;
        v1::LiveBlock* block = reply.mutable_live_block();
        block->set_block(index);
        block->set_version(versions[index]);
        block->set_data(CodedBlock(View(versions[index]), index));
        if (!writer->Write(reply)) break;
      }
      return order.size() < kBlocks ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the link broke") : grpc::Status::OK;
    };
  }

  PullJob Job(bool probe = false) {
    return {.ticket = 3,
            .identity = {.run_id = "run-1", .incarnation = 2},
            .probe = probe,
            .layout_hash = kLayoutHash,
            .broadcast = kCoding.codec,
            .base = &base_};
  }
  PullEnded Run(const PullJob& job) {
    Transfer transfer(absl::Seconds(60));
    PullEnded ended = RunPull({service_.NewChannel()}, "w", job, &transfer);
    EXPECT_EQ(ended.ticket, 3u);
    EXPECT_EQ(ended.probe, job.probe);
    return ended;
  }
  PullEnded Run() { return Run(Job()); }
  void ExpectHolds(Version version) {
    EXPECT_EQ(base_.held(), (BaseBuffer::Held{.version = version, .digest = DigestOf(version), .mixed = false}));
    EXPECT_TRUE(std::ranges::equal(base_.values(), View(version)));
  }
  void Hold(Version version) { FillBase(View(version), version, &base_); }

  std::vector<float> views_[3];
  std::vector<std::string> broadcasts_[3];
  BaseBuffer base_;
  std::vector<v1::PullRequest> requests_;
  std::uint64_t bytes_sent_ = 0;
  std::function<grpc::Status(grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*)> answer_;
  ScriptedService service_;
};

// ------------------------------------------------------------------------------------------------ what comes

TEST_F(PullTest, AllOfAVersion) {
  AnswerWith(v1::PULL_FORM_FULL, 6);
  const PullEnded ended = Run();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.form, PullForm::kFull);
  EXPECT_TRUE(ended.confirmed);
  EXPECT_EQ(ended.version, 6u);
  EXPECT_EQ(ended.digest, DigestOf(6));
  ExpectHolds(6);
  EXPECT_EQ(requests_[0].identity().worker(), "w");
  EXPECT_EQ(requests_[0].held_digest(), "");
  EXPECT_FALSE(requests_[0].held_mixed());
  EXPECT_FALSE(requests_[0].header_only());
  EXPECT_FALSE(requests_[0].has_part());
}

TEST_F(PullTest, WhatIsHeldIsConfirmed) {
  Hold(6);
  AnswerWith(v1::PULL_FORM_NOTHING, 6);
  for (const bool probe : {false, true}) {
    const PullEnded ended = Run(Job(probe));
    ASSERT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_EQ(ended.form, PullForm::kNothing);
    EXPECT_TRUE(ended.confirmed);
    EXPECT_EQ(ended.version, 6u);
    EXPECT_EQ(ended.digest, DigestOf(6));
    EXPECT_EQ(requests_.back().held_version(), 6u);
    EXPECT_EQ(requests_.back().held_digest(), DigestOf(6));
    EXPECT_EQ(requests_.back().header_only(), probe);
  }
  EXPECT_EQ(bytes_sent_, 0u);
}

TEST_F(PullTest, ABroadcast) {
  Hold(5);
  AnswerWith(v1::PULL_FORM_BROADCAST, 6);
  const PullEnded ended = Run();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.form, PullForm::kBroadcast);
  EXPECT_TRUE(ended.confirmed);
  EXPECT_EQ(ended.digest, DigestOf(6));
  ExpectHolds(6);
}

TEST_F(PullTest, LiveBlocksOfOneVersionWaitToBeConfirmed) {
  AnswerLive({6, 6, 6, 6});
  const PullEnded ended = Run();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.form, PullForm::kLive);
  EXPECT_FALSE(ended.confirmed);
  EXPECT_EQ(ended.version, 6u);
  ExpectHolds(6);
  AnswerWith(v1::PULL_FORM_BROADCAST, 7);
  EXPECT_TRUE(Run().confirmed);
  EXPECT_EQ(requests_[1].held_digest(), DigestOf(6));
  ExpectHolds(7);
}

TEST_F(PullTest, LiveBlocksOfSeveralVersionsBecomeOne) {
  AnswerLive({5, 6, 7, 6});
  EXPECT_FALSE(Run().confirmed);
  AnswerWith(v1::PULL_FORM_BROADCAST, 6);
  const PullEnded mixed = Run();
  EXPECT_TRUE(mixed.status.ok()) << mixed.status;
  EXPECT_FALSE(mixed.confirmed);
  EXPECT_EQ(mixed.version, 6u);
  EXPECT_EQ(requests_[1].held_version(), 5u);
  EXPECT_TRUE(requests_[1].held_mixed());
  EXPECT_EQ(requests_[1].held_digest(), "");
  AnswerWith(v1::PULL_FORM_BROADCAST, 7);
  EXPECT_TRUE(Run().confirmed);
  EXPECT_TRUE(requests_[2].held_mixed());
  ExpectHolds(7);
}

TEST_F(PullTest, AProbeWritesNothing) {
  Hold(5);
  for (const v1::PullForm form : {v1::PULL_FORM_FULL, v1::PULL_FORM_BROADCAST, v1::PULL_FORM_LIVE}) {
    if (form == v1::PULL_FORM_LIVE) {
      AnswerLive({6, 6, 6, 6});
    } else {
      AnswerWith(form, 6);
    }
    const PullEnded ended = Run(Job(true));
    ASSERT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_FALSE(ended.confirmed);
    ExpectHolds(5);
  }
}

// ------------------------------------------------------------------------------------------------ cuts

TEST_F(PullTest, WhatWasCutGoesOnWithTheRest) {
  for (const v1::PullForm form : {v1::PULL_FORM_FULL, v1::PULL_FORM_BROADCAST}) {
    Hold(5);
    requests_.clear();
    AnswerWith(form, 6, {.blocks_until_cut = 2});
    EXPECT_EQ(Run().status.code(), absl::StatusCode::kUnavailable);
    bytes_sent_ = 0;
    AnswerWith(form, 6);
    const PullEnded ended = Run();
    ASSERT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_TRUE(ended.confirmed);
    ExpectHolds(6);
    EXPECT_EQ(requests_[1].part().form(), form);
    EXPECT_EQ(requests_[1].part().version(), 6u);
    EXPECT_EQ(requests_[1].part().first_block(), 2u);
    EXPECT_EQ(bytes_sent_, Blocks(form, 6)[2].size() + Blocks(form, 6)[3].size());
  }
}

TEST_F(PullTest, LiveBlocksThatWereCutGoOnWithTheRest) {
  AnswerLive({5, 5, 5, 5}, {0, 1});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kUnavailable);
  AnswerLive({6, 6, 6, 6});
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(requests_[1].part().form(), v1::PULL_FORM_LIVE);
  EXPECT_EQ(requests_[1].part().first_block(), 2u);
  EXPECT_EQ(base_.held(), (BaseBuffer::Held{.version = 5, .digest = "", .mixed = true}));
  AnswerWith(v1::PULL_FORM_BROADCAST, 6);
  EXPECT_TRUE(Run().confirmed);
  ExpectHolds(6);
}

TEST_F(PullTest, ARestThatIsGoneBeginsAnew) {
  for (const v1::PullForm form : {v1::PULL_FORM_FULL, v1::PULL_FORM_BROADCAST}) {
    Hold(5);
    requests_.clear();
    AnswerWith(form, 6, {.blocks_until_cut = 2});
    EXPECT_FALSE(Run().status.ok());
    answer_ = [](grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*) {
      return grpc::Status(grpc::StatusCode::ABORTED, "gone");
    };
    EXPECT_EQ(Run().status, absl::AbortedError("gone"));
    AnswerWith(form, 6);
    EXPECT_TRUE(Run().confirmed);
    EXPECT_FALSE(requests_[2].has_part());
    EXPECT_EQ(requests_[2].held_mixed(), form == v1::PULL_FORM_BROADCAST);
    ExpectHolds(6);
  }
}

TEST_F(PullTest, ARestThatIsAnotherTransfersIsRefused) {
  AnswerWith(v1::PULL_FORM_FULL, 6, {.blocks_until_cut = 2});
  EXPECT_FALSE(Run().status.ok());
  AnswerWith(v1::PULL_FORM_FULL, 7);
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
}

// ------------------------------------------------------------------------------------------------ what does not fit

TEST_F(PullTest, AnotherDigestIsToldToTheServer) {
  Hold(5);
  AnswerWith(v1::PULL_FORM_BROADCAST, 6,
             {.header = [](v1::PullHeader* header) { header->set_view_digest(std::string(32, '0')); }});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
  AnswerLive({7, 7, 7, 7});
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(requests_[1].held_version(), 6u);
  EXPECT_EQ(requests_[1].held_digest(), DigestOf(6));
  EXPECT_FALSE(requests_[1].has_part());
}

TEST_F(PullTest, HeadersThatDoNotFitChangeNothing) {
  const struct {
    const char* what;
    v1::PullForm form;
    Version version;
    std::function<void(v1::PullHeader*)> change;
    absl::StatusCode code;
  } cases[] = {
      {"another layout", v1::PULL_FORM_FULL, 6, [](v1::PullHeader* header) { header->set_layout_hash(43); },
       absl::StatusCode::kFailedPrecondition},
      {"a size beyond the layout", v1::PULL_FORM_FULL, 6,
       [](v1::PullHeader* header) { header->set_payload_bytes(std::uint64_t{1} << 60); }, absl::StatusCode::kDataLoss},
      {"no size", v1::PULL_FORM_FULL, 6, [](v1::PullHeader* header) { header->set_payload_bytes(0); },
       absl::StatusCode::kDataLoss},
      {"another first block", v1::PULL_FORM_FULL, 6, [](v1::PullHeader* header) { header->set_first_block(1); },
       absl::StatusCode::kDataLoss},
      {"fewer blocks", v1::PULL_FORM_FULL, 6, [](v1::PullHeader* header) { header->set_block_count(3); },
       absl::StatusCode::kDataLoss},
      {"no form", v1::PULL_FORM_FULL, 6, [](v1::PullHeader* header) { header->clear_form(); },
       absl::StatusCode::kDataLoss},
      {"a broadcast of another version", v1::PULL_FORM_BROADCAST, 7, [](v1::PullHeader*) {},
       absl::StatusCode::kDataLoss},
      {"another coding", v1::PULL_FORM_BROADCAST, 6,
       [](v1::PullHeader* header) { header->set_codec(v1::CodecConfig::DELTA_INT8); }, absl::StatusCode::kDataLoss},
      {"a broadcast beyond its size", v1::PULL_FORM_BROADCAST, 6,
       [](v1::PullHeader* header) { header->set_payload_bytes(MaxPayloadBytes(kValues, Codec::kRms4) + 1); },
       absl::StatusCode::kDataLoss},
      {"nothing, of another version", v1::PULL_FORM_NOTHING, 6, [](v1::PullHeader*) {}, absl::StatusCode::kDataLoss},
      {"nothing, with another digest", v1::PULL_FORM_NOTHING, 5,
       [](v1::PullHeader* header) { header->set_view_digest("other"); }, absl::StatusCode::kDataLoss},
  };
  for (const auto& one : cases) {
    Hold(5);
    AnswerWith(one.form, one.version, {.header = one.change});
    EXPECT_EQ(Run().status.code(), one.code) << one.what;
    ExpectHolds(5);
    EXPECT_EQ(base_.unfinished(), std::nullopt) << one.what;
  }
}

TEST_F(PullTest, ABroadcastForOneThatHoldsNothingIsRefused) {
  AnswerWith(v1::PULL_FORM_BROADCAST, 6);
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, MoreOrLessThanAnnouncedIsDataLoss) {
  for (const int more : {-1, 1}) {
    AnswerWith(v1::PULL_FORM_FULL, 6, {.header = [more](v1::PullHeader* header) {
                 header->set_payload_bytes(header->payload_bytes() + static_cast<std::uint64_t>(more));
               }});
    EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
  }
  AnswerWith(v1::PULL_FORM_FULL, 6, {.payload = [](std::string* payload) { payload->resize(payload->size() - 7); }});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, ChunksOutOfPlaceAreDataLoss) {
  AnswerWith(v1::PULL_FORM_FULL, 6, {.shift = 1});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, AFlippedByteIsFoundAndOnlyTheRestComesAgain) {
  Hold(5);
  const std::size_t at = broadcasts_[1][0].size() + 5;  // in the header of the second block
  for (const std::size_t byte : {at, at + 100}) {
    Hold(5);
    AnswerWith(v1::PULL_FORM_BROADCAST, 6, {.payload = [byte](std::string* payload) {
                 (*payload)[byte] = static_cast<char>((*payload)[byte] ^ 2);
               }});
    EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
    AnswerWith(v1::PULL_FORM_BROADCAST, 6);
    EXPECT_TRUE(Run().confirmed);
    EXPECT_EQ(requests_.back().part().first_block(), 1u);
    ExpectHolds(6);
  }
}

TEST_F(PullTest, LiveBlocksOutOfOrderAreDataLoss) {
  AnswerLive({6, 6, 6, 6}, {0, 2, 1, 3});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(base_.unfinished(), (BaseBuffer::Unfinished{PullForm::kLive, 6, 1}));
  base_.Abandon();
  AnswerLive({6, 6, 6, 6}, {0, 1, 2, 3, 3});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, AnotherKindOfMessageThanTheHeaderSaysIsDataLoss) {
  AnswerWith(v1::PULL_FORM_FULL, 6, {.header = [](v1::PullHeader* header) { header->set_form(v1::PULL_FORM_LIVE); }});
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, AStreamWithoutAHeaderIsDataLoss) {
  answer_ = [](grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*) {
    return grpc::Status::OK;
  };
  for (const bool probe : {false, true}) EXPECT_EQ(Run(Job(probe)).status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(PullTest, TheServersErrorIsPassedOn) {
  answer_ = [](grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "incarnation expired");
  };
  EXPECT_EQ(Run().status, absl::FailedPreconditionError("incarnation expired"));
}

TEST_F(PullTest, AStalledTransferIsGivenUp) {
  answer_ = [this](grpc::ServerContext* context, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>* writer) {
    v1::PullReply reply;
    *reply.mutable_header() = Header(v1::PULL_FORM_LIVE, 6);
    writer->Write(reply);
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  Transfer transfer(absl::Milliseconds(20));
  const PullEnded ended = RunPull({service_.NewChannel()}, "w", Job(), &transfer);
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PullTest, ACancelledTransferEnds) {
  Transfer transfer(absl::Seconds(60));
  answer_ = [&transfer](grpc::ServerContext* context, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*) {
    transfer.Cancel();
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(RunPull({service_.NewChannel()}, "w", Job(), &transfer).status.code(), absl::StatusCode::kCancelled);
  Transfer before(absl::Seconds(60));
  before.Cancel();
  EXPECT_EQ(RunPull({service_.NewChannel()}, "w", Job(), &before).status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace autoloco::worker
