// What is sent of one version, as it is sent: encoded once, served to any number of pulls, never changed.
#ifndef AUTOLOCO_SERVER_RUNTIME_ENCODED_PAYLOAD_H_
#define AUTOLOCO_SERVER_RUNTIME_ENCODED_PAYLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "server/core/pull.h"

namespace autoloco::server {

// Immutable; thread-safe.
class EncodedPayload {
 public:
  struct Header {
    PullForm form = PullForm::kFull;  // all values of the version; or kBroadcast: what the version before lacks
    Version version = 0;
    std::string params_digest = "";  // of that version
    Codec codec = Codec::kFp32;
  };
  // `blocks`: the encoded blocks in order; together they are the payload.
  EncodedPayload(Header header, std::vector<std::string> blocks);

  const Header& header() const { return header_; }
  std::uint64_t block_count() const { return blocks_.size(); }
  std::uint64_t payload_bytes() const { return offsets_.back(); }
  // Payload bytes before block `block`. REQUIRES: block <= block_count().
  std::uint64_t OffsetOf(std::uint64_t block) const { return offsets_[block]; }

  // The payload bytes [offset, offset + size), where they lie: in order, none of them empty. REQUIRES: inside the
  // payload.
  std::vector<absl::string_view> Pieces(std::uint64_t offset, std::uint64_t size) const;

 private:
  const Header header_;
  const std::vector<std::string> blocks_;
  std::vector<std::uint64_t> offsets_;  // of the blocks; one more entry: the payload's size
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_ENCODED_PAYLOAD_H_
