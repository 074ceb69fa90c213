// The parameters of one version as they are sent: encoded once, served to any number of pulls, never changed.
#ifndef AUTOLOCO_SERVER_RUNTIME_ENCODED_SNAPSHOT_H_
#define AUTOLOCO_SERVER_RUNTIME_ENCODED_SNAPSHOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace autoloco::server {

// Immutable; thread-safe.
class EncodedSnapshot {
 public:
  struct Header {
    Version version = 0;
    std::string params_digest;
    std::uint64_t layout_hash = 0;
    std::uint64_t value_count = 0;
  };
  // `blocks`: the encoded blocks in order; together they are the payload.
  EncodedSnapshot(Header header, std::vector<std::string> blocks);

  const Header& header() const { return header_; }
  std::uint64_t payload_bytes() const { return offsets_.back(); }

  // Sets `out` to the payload bytes [offset, offset + size). REQUIRES: inside the payload.
  void Copy(std::uint64_t offset, std::uint64_t size, std::string* out) const;

 private:
  const Header header_;
  const std::vector<std::string> blocks_;
  std::vector<std::uint64_t> offsets_;  // of the blocks; one more entry: the payload's size
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_ENCODED_SNAPSHOT_H_
