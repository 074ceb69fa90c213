#include "tests/sim/server_disk.h"

#include <iterator>
#include <variant>

#include "absl/strings/str_cat.h"

namespace autoloco::sim {

StorageThread::StorageThread(const Tools& tools, std::uint64_t seed, std::function<void(std::uint64_t)> stored)
    : tools_(tools), dice_(seed, 103), stored_(std::move(stored)) {}

StorageThread::~StorageThread() { *alive_ = false; }

void StorageThread::Store(StorageBatch batch) {
  if (tools_.bug == Bug::kDecisionForgotten) {
    std::erase_if(batch.records, [](const server::Record& record) {
      return std::holds_alternative<server::RoundDecidedRecord>(record);
    });
  }
  queue_.push_back(std::move(batch));
  if (!writing_) StartWriting();
}

void StorageThread::Later(absl::Duration delay, void (StorageThread::*step)()) {
  tools_.world->After(delay, [this, alive = alive_, step] {
    if (*alive) (this->*step)();
  });
}

// Everything that waits goes into one transaction.
void StorageThread::StartWriting() {
  writing_ = true;
  payloads_written_ = false;
  group_.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
  queue_.clear();
  absl::Duration sync = absl::Milliseconds(dice_.Between(0.5, 5.0));
  if (tools_.faults->Strikes(Fault::kSlowSync)) sync = dice_.Between(absl::Milliseconds(100), absl::Seconds(5));
  Later(sync, &StorageThread::WritePayloads);
}

void StorageThread::WritePayloads() {
  for (const StorageBatch& batch : group_) {
    for (const auto& [key, payload] : batch.payloads) {
      tools_.disk->spool[key] = payload;
      if (tools_.bug == Bug::kSpoolLeftUnsynced) unsynced_.push_back(key);
    }
  }
  payloads_written_ = true;
  Later(absl::Milliseconds(dice_.Between(0.5, 5.0)), &StorageThread::CommitGroup);
}

void StorageThread::CommitGroup() {
  if (tools_.faults->Strikes(Fault::kFailedWrite)) {
    tools_.trace->Line("disk", "write_failed", "records up to ", group_.back().sequence);
    Later(absl::Seconds(1), &StorageThread::CommitGroup);
    return;
  }
  MakeDurable();
  const std::uint64_t sequence = group_.back().sequence;
  writing_ = false;
  stored_(sequence);
  if (!queue_.empty()) StartWriting();
}

void StorageThread::MakeDurable() {
  std::vector<server::Record> records;
  for (StorageBatch& batch : group_) {
    for (server::Record& record : batch.records) {
      server::Apply(record, &tools_.disk->state);
      records.push_back(record);
      tools_.disk->log.push_back(std::move(record));
    }
  }
  tools_.checkers->OnDurable(records, tools_.disk->state);
}

// A payload that was being written when the machine stopped, and of which no record knows.
void StorageThread::LeaveTorn(const StorageBatch& batch) {
  for (const auto& [key, payload] : batch.payloads) {
    if (tools_.faults->Strikes(Fault::kTornPayload)) tools_.disk->spool[key] = payload.substr(0, dice_.Below(payload.size()));
  }
}

void StorageThread::Crash() {
  *alive_ = false;
  for (const server::PushKey& key : unsynced_) tools_.disk->spool.erase(key);
  std::size_t lost = queue_.size();
  for (const StorageBatch& batch : queue_) LeaveTorn(batch);
  // SQLite's transaction is there or not; it can only be once the payloads are.
  if (writing_ && payloads_written_ && dice_.Chance(0.5)) {
    MakeDurable();
  } else if (writing_) {
    lost += group_.size();
    if (!payloads_written_) {
      for (const StorageBatch& batch : group_) LeaveTorn(batch);
    }
  }
  if (lost > 0 && tools_.faults->on()) tools_.faults->Count(Fault::kLostSuffix);
  tools_.trace->Line("disk", "crash", lost, " batches lost");
}

}  // namespace autoloco::sim
