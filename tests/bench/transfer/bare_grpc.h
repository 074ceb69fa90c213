// Bytes over gRPC as people write it: a stream of protobuf messages with 256 KiB in a `bytes` field, set and read with
// the generated classes and the blocking interface; the receiver copies them to their place in one buffer. The messages
// are those of the product, so that the same bytes are on the wire.
#ifndef AUTOLOCO_TESTS_BENCH_TRANSFER_BARE_GRPC_H_
#define AUTOLOCO_TESTS_BENCH_TRANSFER_BARE_GRPC_H_

#include <memory>
#include <string>

#include "tests/bench/transfer/arm.h"

namespace autoloco::bench {

// Serves until the process is killed; says on standard error where.
void ServeBareGrpc();

// Moves `payload` up, and as many bytes down, over `streams` connections to such a server at `address` (host:port).
std::unique_ptr<Arm> MakeBareGrpcArm(const std::string& address, std::size_t streams, const std::string* payload);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_TRANSFER_BARE_GRPC_H_
