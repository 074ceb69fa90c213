// Keeps nothing: for a server whose state need not survive it.
#ifndef AUTOLOCO_SERVER_RUNTIME_MEMORY_RECORD_STORE_H_
#define AUTOLOCO_SERVER_RUNTIME_MEMORY_RECORD_STORE_H_

#include "server/core/events.h"
#include "server/runtime/inbox.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

class MemoryRecordStore final : public RecordStore {
 public:
  // Borrowed.
  explicit MemoryRecordStore(Inbox* inbox) : inbox_(inbox) {}

  void Store(RecordBatch batch) override { inbox_->Post(RecordsStored{batch.sequence}); }
  void DropSpooled(const PushKey&) override {}
  void DropSpooledBefore(Round) override {}

 private:
  Inbox* const inbox_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_MEMORY_RECORD_STORE_H_
