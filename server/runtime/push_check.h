// Looks at every block of a payload that arrived whole, so that what is acknowledged can be committed.
#ifndef AUTOLOCO_SERVER_RUNTIME_PUSH_CHECK_H_
#define AUTOLOCO_SERVER_RUNTIME_PUSH_CHECK_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/parallel.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/layout.h"

namespace autoloco::server {

struct PushCheck {
  absl::Status status;  // not OK: DATA_LOSS (digest, checksum) or INVALID_ARGUMENT (format), naming the block
  bool finite = true;
  std::string non_finite;  // the first value that is not: "tensor[index] = nan"
  double norm = 0;         // L2 of all values, in fp64; 0 where not OK or not finite
};

// Digest of the whole, order and size of the blocks, then each block's checksum and values, in parallel over `pool`.
// The answer does not depend on the number of threads. Thread-safe; takes the time of unpacking it.
PushCheck CheckPayload(std::span<const std::byte> payload, absl::string_view digest, const Layout& layout, Codec codec,
                       WorkPool* pool);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PUSH_CHECK_H_
