// A record store that keeps nothing: for a loop whose state need not survive it.
#ifndef AUTOLOCO_TESTS_SUPPORT_MEMORY_RECORD_STORE_H_
#define AUTOLOCO_TESTS_SUPPORT_MEMORY_RECORD_STORE_H_

#include <cstdint>
#include <memory>

#include "server/core/events.h"
#include "server/runtime/inbox.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

class MemoryRecordStore final : public RecordStore {
 public:
  // Borrowed.
  explicit MemoryRecordStore(Inbox* inbox) : inbox_(inbox) {}

  absl::StatusOr<std::unique_ptr<PayloadMemory>> Reserve(std::uint64_t bytes) override {
    return AllocatePayloadMemory(bytes);
  }
  void Store(RecordBatch batch) override { inbox_->Post(RecordsStored{batch.sequence}); }
  void DropSpooled(const PushKey&) override {}
  void DropSpooledBefore(Round) override {}

 private:
  Inbox* const inbox_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_TESTS_SUPPORT_MEMORY_RECORD_STORE_H_
