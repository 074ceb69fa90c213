// Constants of the protocol that both sides share. Part of the wire contract: a change of meaning needs a new
// kProtocolVersion.
#ifndef AUTOLOCO_COMMON_RPC_PROTOCOL_H_
#define AUTOLOCO_COMMON_RPC_PROTOCOL_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace autoloco {

// Sent in Hello; server and workers must have the same.
inline constexpr std::uint32_t kProtocolVersion = 3;

// Payload bytes in one Chunk, both ways; only the last one of a transfer is shorter.
inline constexpr std::size_t kChunkBytes = 256 * 1024;

// A transfer that moves less than this in the stall timeout is cut, by either side.
inline constexpr std::size_t kStallBytes = 256 * 1024;

// What a message may hold beside a chunk's bytes: the receive limit of a server is max_chunk_bytes plus this.
inline constexpr std::size_t kMessageOverheadBytes = 64 * 1024;

// Least time between two keepalive pings that the server puts up with; half of what the documents promise (1 s), so
// that jitter never costs a connection.
inline constexpr absl::Duration kPingIntervalMin = absl::Milliseconds(500);

// How long a peer may take to answer a keepalive ping before the connection counts as broken.
inline constexpr absl::Duration kPingTimeout = absl::Seconds(10);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_PROTOCOL_H_
