// Calls by name, with messages as bytes: for services whose protos are not at hand (health, reflection).
#ifndef AUTOLOCO_TESTS_SUPPORT_RAW_CALL_H_
#define AUTOLOCO_TESTS_SUPPORT_RAW_CALL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace autoloco::test {

// The bytes of the reply, or "CODE: message" when the call fails. Blocks, for 10 s at most.
std::string RawUnaryCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         const std::string& request);

// Opens a bidirectional stream, sends one message and gives the bytes of the first answer; empty when there is none.
std::string RawStreamCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                          const std::string& request);

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_RAW_CALL_H_
