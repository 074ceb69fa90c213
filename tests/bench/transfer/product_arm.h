// The product itself: a real server process, and the worker's own client classes, without training. One delta is made
// once and pushed in every round.
#ifndef AUTOLOCO_TESTS_BENCH_TRANSFER_PRODUCT_ARM_H_
#define AUTOLOCO_TESTS_BENCH_TRANSFER_PRODUCT_ARM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/tensor/layout.h"
#include "tests/bench/transfer/arm.h"
#include "worker/client/server_client.h"
#include "worker/runtime/base_buffer.h"
#include "worker/runtime/ports.h"

namespace autoloco::bench {

// The events of a client, waited for one by one. Thread-safe.
class EventQueue final : public worker::EventSink {
 public:
  void Post(worker::Event event) override;
  void PostWelcome(worker::Welcomed event, worker::RunSettings settings) override;

  // The next event of this kind; others are passed over. UNAVAILABLE when the session ends, DEADLINE_EXCEEDED after
  // kPatience.
  template <typename Wanted>
  absl::StatusOr<Wanted> Await() {
    while (true) {
      absl::StatusOr<worker::Event> event = Next();
      if (!event.ok()) return event.status();
      if (const auto* wanted = std::get_if<Wanted>(&*event)) return *wanted;
      if (const auto* ended = std::get_if<worker::SessionEnded>(&*event)) return ended->status;
    }
  }
  // Of the last Welcome.
  worker::RunSettings settings();

 private:
  static constexpr absl::Duration kPatience = absl::Minutes(5);

  absl::StatusOr<worker::Event> Next();

  Mutex mutex_;
  CondVar arrived_;
  std::deque<worker::Event> events_ ABSL_GUARDED_BY(mutex_);
  worker::RunSettings settings_ ABSL_GUARDED_BY(mutex_);
};

// A worker that has joined, by a session of its own straight to the server. Not thread-safe.
class JoinedWorker {
 public:
  // `address`: of the server.
  static absl::StatusOr<std::unique_ptr<JoinedWorker>> Join(const std::string& address);

  // Bytes of a push: one encoded delta, the same for every round.
  std::uint64_t push_bytes() const { return delta_->payload.size(); }
  // Bytes of a pull, as the server counted them for one.
  std::uint64_t pull_bytes() const { return pull_bytes_; }

  // The delta for the next assignment, which is waited for.
  absl::StatusOr<worker::PushJob> NextPush();
  // Of the current parameters, as one who holds nothing; the job before must be over.
  absl::StatusOr<worker::PullJob> NextPull();

 private:
  JoinedWorker() = default;
  absl::Status Start(const std::string& address);
  // Pulls once and asks the server what that took.
  absl::Status MeasurePull(const std::string& address);

  EventQueue events_;
  std::unique_ptr<worker::ServerClient> session_;
  worker::Identity identity_;
  Layout layout_;
  std::shared_ptr<const worker::EncodedDelta> delta_;
  worker::BaseBuffer base_;
  std::uint64_t pull_bytes_ = 0;
  Ticket next_ticket_ = 1;
};

// Pushes and pulls of `joined`, over `streams` connections to `address`: the server's or a relay's. Both are borrowed.
std::unique_ptr<Arm> MakeProductArm(const std::string& address, std::size_t streams, JoinedWorker* joined);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_TRANSFER_PRODUCT_ARM_H_
