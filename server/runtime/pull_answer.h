// What one pull is sent: a header, and the blocks that follow it.
#ifndef AUTOLOCO_SERVER_RUNTIME_PULL_ANSWER_H_
#define AUTOLOCO_SERVER_RUNTIME_PULL_ANSWER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "server/core/pull.h"
#include "server/runtime/encoded_payload.h"
#include "server/runtime/live_reader.h"

namespace autoloco::server {

struct PullAnswer {
  PullForm form = PullForm::kNothing;
  Version version = 0;
  std::string params_digest;  // full and broadcast
  std::string view_digest;    // live: empty
  std::uint64_t layout_hash = 0;
  Codec codec = Codec::kFp32;
  bool header_only = false;  // no block follows, whatever the header says
  std::uint64_t first_block = 0;
  std::uint64_t block_count = 0;
  std::uint64_t value_count = 0;  // of those blocks

  // Full and broadcast: bytes [first_byte, first_byte + byte_count) of the payload.
  std::shared_ptr<const EncodedPayload> payload;
  std::uint64_t first_byte = 0;
  std::uint64_t byte_count = 0;
  // Live.
  std::shared_ptr<LiveReader> live;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PULL_ANSWER_H_
