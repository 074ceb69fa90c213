#include "common/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "common/base/status_macros.h"
#include "common/config/address.h"
#include "common/rpc/credentials.h"
#include "common/rpc/protocol.h"

namespace autoloco {
namespace {

int Milliseconds(absl::Duration duration) { return static_cast<int>(absl::ToInt64Milliseconds(duration)); }

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                            ClientCredentials(options.target, options.insecure));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPingTimeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);  // also the time that one attempt to connect may take
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.reconnect_pause_max));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the client repeats calls itself: it knows which ones it may
  AUTOLOCO_ASSIGN_OR_RETURN(const Address address, ParseAddress(options.target));
  if (address.is_loopback) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.target, credentials, arguments);
}

absl::Status ConfigureListen(const ListenOptions& options, int* port, grpc::ServerBuilder* builder) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                            ListenCredentials(options.listen, options.insecure));
  builder->AddListeningPort(options.listen, credentials, port);
  builder->SetMaxReceiveMessageSize(static_cast<int>(options.max_chunk_bytes + kMessageOverheadBytes));
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(options.max_streams));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kPingTimeout));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, Milliseconds(kPingIntervalMin));
  return absl::OkStatus();
}

}  // namespace autoloco
