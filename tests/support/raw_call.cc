#include "tests/support/raw_call.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"

namespace autoloco::test {
namespace {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "";
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Waits for the one operation under way; whether it succeeded.
bool Next(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue->Next(&tag, &ok) && ok;
}

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
}

}  // namespace

std::string RawUnaryCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto call = stub.PrepareUnaryCall(&context, method, ToBuffer(request), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  Next(&queue);
  if (!status.ok()) return FromGrpcStatus(status).ToString();
  return ToBytes(reply);
}

std::string RawStreamCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                          const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  std::string answer;
  if (Next(&queue)) {
    call->Write(ToBuffer(request), nullptr);
    grpc::ByteBuffer reply;
    if (Next(&queue)) {
      call->Read(&reply, nullptr);
      if (Next(&queue)) answer = ToBytes(reply);
    }
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  Next(&queue);
  return answer;
}

}  // namespace autoloco::test
