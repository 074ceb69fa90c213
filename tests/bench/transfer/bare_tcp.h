// Bytes over TCP without anything: what the machine and the link give.
#ifndef AUTOLOCO_TESTS_BENCH_TRANSFER_BARE_TCP_H_
#define AUTOLOCO_TESTS_BENCH_TRANSFER_BARE_TCP_H_

#include <memory>
#include <string>

#include "tests/bench/transfer/arm.h"

namespace autoloco::bench {

// Serves until the process is killed; says on standard error where.
void ServeBareTcp();

// Moves `payload` up, and as many bytes down, over `streams` connections to such a server at `address` (a numeric
// 127.x.y.z:port). Aborts where it cannot connect.
std::unique_ptr<Arm> MakeBareTcpArm(const std::string& address, std::size_t streams, const std::string* payload);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_TRANSFER_BARE_TCP_H_
