// A run of the server that was really done, on the disk: five rounds of two workers, checkpoints of versions 2 and 4,
// the payloads since the first of them, round 5 open with one delta of two; the server is gone.
#ifndef AUTOLOCO_TESTS_SUPPORT_STORED_RUN_H_
#define AUTOLOCO_TESTS_SUPPORT_STORED_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/decoder.h"
#include "gtest/gtest.h"
#include "server/runtime/apply_commit.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"
#include "server/storage/state_folder.h"

namespace autoloco::server {

inline DecoderShape SmallShape() {
  DecoderShape shape;
  shape.vocab_size = 16;
  shape.width = 8;
  shape.layers = 1;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.mlp_hidden = 12;
  shape.context = 4;
  return shape;
}

class StoredRun {
 public:
  // Makes it in `folder`; the payloads of rounds before `first_kept` are gone.
  explicit StoredRun(const std::string& folder, const CommitMethod& method = {}, Round first_kept = 2)
      : method(method) {
    Make(folder, first_kept);
  }

  void Make(const std::string& folder, Round first_kept) {
    auto state = StateFolder::Open(folder, "run");
    ASSERT_TRUE(state.ok()) << state.status();
    auto spool = Spool::Open(state->spool_path());
    auto database = StateDatabase::Open(state->database_path(), Database::Mode::kReadWrite);
    ASSERT_TRUE(spool.ok() && database.ok());
    auto store = FolderCheckpointStore::Open(&*state, SmallShape(), 3);
    ASSERT_TRUE(store.ok()) << store.status();
    auto parameters = ParameterStore::Allocate(layout);
    ASSERT_TRUE(StartAnew(&*parameters).ok());
    Remember(*parameters);
    ASSERT_TRUE((*database)->Begin({state->run_id(), digests[0]}, CoreState()).ok());
    for (Round round = 0; round < 5; ++round) {
      RunRound(round, spool->get(), database->get(), &*parameters);
      Remember(*parameters);
      if (round % 2 == 0) continue;
      CheckpointContent content;
      content.snapshot.version = round + 1;
      content.snapshot.inner_steps_done = (round + 1) * 10;
      content.params_digest = parameters->ParamsDigest();
      content.view_digest = parameters->ViewDigest();
      CheckpointReader vectors({parameters->params(), parameters->momentum(), parameters->view_values()});
      content.vectors = &vectors;
      ASSERT_TRUE((*store)->Write(content).ok());
    }
    RoundOpenedRecord open;
    open.round.number = 5;
    open.round.entries["a"].incarnation = 1;
    open.round.entries["b"].incarnation = 2;
    for (auto& [worker, entry] : open.round.entries) entry.assignment.round = 5;
    RoundEntry delivered = open.round.entries["a"];
    delivered.delivered = true;
    delivered.delivered_by = 1;
    std::vector<std::string> payloads;
    delivered.payload_digest = Push("a", 1, 5, spool->get(), &payloads);
    ASSERT_TRUE((*database)
                    ->Store(std::vector<Record>{open, Accepted("a", 1, 5, delivered.payload_digest),
                                                EntryRecord{5, "a", delivered}})
                    .ok());
    ASSERT_TRUE((*spool)->DropBefore(first_kept).ok());
    state_dir = state->path();
  }

  void Remember(const ParameterStore& parameters) {
    digests.push_back(parameters.ParamsDigest());
    view_digests.push_back(parameters.ViewDigest());
  }

  static absl::Status StartAnew(ParameterStore* parameters) {
    InitializeParameters(parameters->layout(), 1, 0.02, parameters->params());
    return absl::OkStatus();
  }

  PushRecord Accepted(const std::string& worker, Incarnation incarnation, Round round, const std::string& digest) {
    PushRecord record;
    record.key = {{worker, incarnation}, round, 0};
    record.push.payload_digest = digest;
    return record;
  }

  std::string Push(const std::string& worker, Incarnation incarnation, Round round, Spool* spool,
                   std::vector<std::string>* payloads) {
    std::vector<float> delta(layout.value_count(), 1e-3f * static_cast<float>(round + incarnation));
    payloads->push_back(EncodeVector(delta, Codec::kFp32, 1));
    const std::string& bytes = payloads->back();
    auto file = spool->Create(bytes.size());
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Write(0, std::as_bytes(std::span<const char>(bytes))).ok());
    const Spool::Acceptance acceptance = {{{worker, incarnation}, round, 0}, file->get()};
    EXPECT_TRUE(spool->Accept({&acceptance, 1}).ok());
    return Digest128(std::as_bytes(std::span<const char>(bytes)));
  }

  void RunRound(Round round, Spool* spool, StateDatabase* database, ParameterStore* parameters) {
    std::vector<std::string> payloads;
    const std::string a = Push("a", 1, round, spool, &payloads);
    const std::string b = Push("b", 2, round, spool, &payloads);
    StartCommit decision;
    decision.round = round;
    decision.method = method;
    decision.contributions = {{{{"a", 1}, round, 0}, 0.25}, {{{"b", 2}, round, 0}, 0.75}};
    std::vector<CommitDelta> deltas;
    for (std::size_t i = 0; i < 2; ++i) {
      deltas.push_back(
          {std::as_bytes(std::span<const char>(payloads[i])), i == 0 ? "a" : "b", decision.contributions[i].weight});
    }
    auto outcome = ApplyCommit({round, deltas, decision.step, method}, parameters, &pool);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    RoundOpenedRecord open;
    open.round.number = round;
    RoundRecord history;
    history.round = round;
    payloads_sent.push_back(outcome->payload);
    RoundRecord committed = history;
    committed.params_digest = outcome->params_digest;
    committed.view_digest = outcome->view_digest;
    RunRecord progress;
    progress.progress.version = round + 1;
    progress.progress.inner_steps_done = (round + 1) * 10;
    const LeaseRecord lease = {{round, 0, {"a", 1}}, {100, 90, LeaseFate::kApplied}};
    const std::vector<Record> records = {open,
                                         Accepted("a", 1, round, a),
                                         Accepted("b", 2, round, b),
                                         RoundDecidedRecord{decision, history},
                                         RoundCommittedRecord{round, outcome->stats, committed},
                                         lease,
                                         LedgerRecord{{(round + 1) * 100, (round + 1) * 90, 0, 0, 0, (round + 1) * 10}},
                                         progress};
    const absl::Status stored = database->Store(records);
    ASSERT_TRUE(stored.ok()) << stored;
  }

  const Layout layout = *MakeDecoderLayout(SmallShape());
  WorkPool pool{2};
  std::string state_dir;
  const CommitMethod method;
  std::vector<std::string> digests;                                  // of versions 0 to 5
  std::vector<std::string> view_digests;                             // alike
  std::vector<std::shared_ptr<const EncodedPayload>> payloads_sent;  // of versions 1 to 5
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_TESTS_SUPPORT_STORED_RUN_H_
