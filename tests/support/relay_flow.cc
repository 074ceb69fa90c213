#include "tests/support/relay_flow.h"

#include <algorithm>
#include <utility>

namespace autoloco::test {
namespace {

constexpr std::size_t kFrameHeadBytes = 9;  // length (3), type, flags, stream (4): RFC 9113, section 4.1
constexpr std::size_t kFrameTypeAt = 3;
constexpr char kHeadersType = 1;

std::size_t BodyBytes(const std::string& head) {
  const auto byte = [&head](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(head[i])); };
  return byte(0) << 16 | byte(1) << 8 | byte(2);
}

}  // namespace

std::optional<std::size_t> Http2Frames::FindHeaders(absl::string_view bytes) {
  std::optional<std::size_t> found;
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (body_left_ > 0) {
      const std::size_t count = std::min(body_left_, bytes.size() - at);
      body_left_ -= count;
      at += count;
      continue;
    }
    const std::size_t begin = at - std::min(at, head_.size());
    const absl::string_view more = bytes.substr(at, kFrameHeadBytes - head_.size());
    head_.append(more.data(), more.size());
    at += more.size();
    if (head_.size() < kFrameHeadBytes) break;
    if (head_[kFrameTypeAt] == kHeadersType && !found.has_value()) found = begin;
    body_left_ = BodyBytes(head_);
    head_.clear();
  }
  return found;
}

void RelayFlow::Add(std::string bytes, Instant due) {
  queued_ += bytes.size();
  pieces_.push_back({std::move(bytes), due});
}

void RelayFlow::Remove(std::size_t count) {
  offset_ += count;
  queued_ -= count;
  carried += count;
  if (offset_ < pieces_.front().bytes.size()) return;
  pieces_.pop_front();
  offset_ = 0;
}

}  // namespace autoloco::test
