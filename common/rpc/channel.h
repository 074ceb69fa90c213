// Connections as this project needs them: the client's channel and the server's builder, with limits and keepalive that
// fit each other.
#ifndef AUTOLOCO_COMMON_RPC_CHANNEL_H_
#define AUTOLOCO_COMMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace autoloco {

struct ChannelOptions {
  std::string target;  // host:port
  absl::Duration keepalive = absl::Seconds(20);
  absl::Duration reconnect_pause_max = absl::Seconds(10);
  bool insecure = false;  // plaintext beyond loopback
};

// A channel with a TCP connection of its own, shared with no other channel: one for control, others for bulk bytes, so
// that a heartbeat never waits behind a delta. Connects on the first call. Errors as ClientCredentials.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options);

struct ListenOptions {
  std::string listen;  // host:port; port 0: any free one
  absl::Duration keepalive = absl::Seconds(20);
  std::size_t max_chunk_bytes = 0;
  std::uint32_t max_streams = 0;  // calls under way on one connection
  bool insecure = false;
};

// Adds the port and all settings to `builder`: the port is not shared with another process, workers may ping every
// second, a message is at most a chunk and its envelope. `port` receives the bound port when the server has started (0:
// it could not be bound) and must live until then. Errors as ListenCredentials.
absl::Status ConfigureListen(const ListenOptions& options, int* port, grpc::ServerBuilder* builder);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_CHANNEL_H_
