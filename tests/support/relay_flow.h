// One direction of a relayed connection: what has been read waits here for its time to be handed on. Bookkeeping only;
// tests/support/relay.h does the reading and writing.
#ifndef AUTOLOCO_TESTS_SUPPORT_RELAY_FLOW_H_
#define AUTOLOCO_TESTS_SUPPORT_RELAY_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"

namespace autoloco::test {

enum class Direction { kToServer = 0, kToClient = 1 };

// Follows the frames of an HTTP/2 stream of bytes, in pieces of any size. Begins at a server's first byte: a client's
// would have the connection preface before it.
class Http2Frames {
 public:
  // Takes the next bytes. Where in them the first HEADERS frame begins, if one does.
  std::optional<std::size_t> FindHeaders(absl::string_view bytes);

 private:
  std::string head_;  // of the frame being read, nine bytes when whole
  std::size_t body_left_ = 0;
};

class RelayFlow {
 public:
  void Add(std::string bytes, Instant due);
  bool empty() const { return pieces_.empty(); }
  std::size_t queued() const { return queued_; }
  // When the oldest bytes may go on. REQUIRES: not empty.
  Instant due() const { return pieces_.front().due; }
  // The oldest bytes, contiguous.
  absl::string_view front() const { return absl::string_view(pieces_.front().bytes).substr(offset_); }
  // `count` bytes of front() have been handed on.
  void Remove(std::size_t count);

  bool source_ended = false;  // the sender has closed its half
  bool end_passed_on = false;
  bool blocked = false;  // the receiver's socket is full
  std::uint64_t carried = 0;
  std::uint64_t mark = 0;  // `carried` when the newest rule about this direction was made
  Http2Frames frames;

 private:
  struct Piece {
    std::string bytes;
    Instant due;
  };
  std::deque<Piece> pieces_;
  std::size_t offset_ = 0;  // into the first piece
  std::size_t queued_ = 0;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_RELAY_FLOW_H_
