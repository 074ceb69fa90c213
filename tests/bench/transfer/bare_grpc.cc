#include "tests/bench/transfer/bare_grpc.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status.h"

namespace autoloco::bench {
namespace {

// Takes what comes; gives as many bytes as were asked for, out of one buffer.
class BareService final : public v1::ParameterServer::Service {
 public:
  grpc::Status Push(grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply*) override {
    v1::PushRequest request;
    if (!reader->Read(&request)) return grpc::Status(grpc::StatusCode::DATA_LOSS, "no header");
    std::vector<char> buffer(request.header().byte_count());
    std::size_t got = 0;
    while (reader->Read(&request)) {
      std::memcpy(buffer.data() + request.chunk().offset(), request.chunk().data().data(),
                  request.chunk().data().size());
      got += request.chunk().data().size();
    }
    return got == buffer.size() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::DATA_LOSS, "too little");
  }
  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullReply>* writer) override {
    const std::string& buffer = Buffer(request->held_version());
    v1::PullReply reply;
    for (std::size_t offset = 0; offset < buffer.size(); offset += kChunkBytes) {
      reply.mutable_chunk()->set_offset(offset);
      reply.mutable_chunk()->set_data(buffer.data() + offset, std::min(kChunkBytes, buffer.size() - offset));
      if (!writer->Write(reply)) break;
    }
    return grpc::Status::OK;
  }

 private:
  // Bytes to give, made once for each size.
  const std::string& Buffer(std::size_t size) {
    MutexLock lock(&mutex_);
    std::string& buffer = buffers_[size];
    if (buffer.empty()) buffer.assign(size, 'x');
    return buffer;
  }

  Mutex mutex_;
  std::map<std::size_t, std::string> buffers_ ABSL_GUARDED_BY(mutex_);
};

class BareGrpcArm final : public Arm {
 public:
  BareGrpcArm(const std::string& address, std::size_t streams, const std::string* payload) : payload_(payload) {
    for (std::size_t i = 0; i < streams; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection each
      stubs_.push_back(v1::ParameterServer::NewStub(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
    }
    received_.resize(payload->size());
  }

  absl::StatusOr<Moved> Push() override {
    return OnAll([this](v1::ParameterServer::Stub* stub, std::size_t first, std::size_t count) {
      grpc::ClientContext context;
      v1::PushReply reply;
      const auto writer = stub->Push(&context, &reply);
      v1::PushRequest request;
      request.mutable_header()->set_byte_count(count);
      bool open = writer->Write(request);
      for (std::size_t offset = 0; open && offset < count; offset += kChunkBytes) {
        request.mutable_chunk()->set_offset(offset);
        request.mutable_chunk()->set_data(payload_->data() + first + offset, std::min(kChunkBytes, count - offset));
        open = writer->Write(request);
      }
      writer->WritesDone();
      return FromGrpcStatus(writer->Finish());
    });
  }

  absl::StatusOr<Moved> Pull() override {
    return OnAll([this](v1::ParameterServer::Stub* stub, std::size_t first, std::size_t count) {
      grpc::ClientContext context;
      v1::PullRequest request;
      request.set_held_version(count);
      const auto reader = stub->Pull(&context, request);
      v1::PullReply reply;
      std::size_t got = 0;
      while (reader->Read(&reply)) {
        const std::string& data = reply.chunk().data();
        std::memcpy(received_.data() + first + reply.chunk().offset(), data.data(), data.size());
        got += data.size();
      }
      const absl::Status status = FromGrpcStatus(reader->Finish());
      return status.ok() && got != count ? absl::DataLossError("too little") : status;
    });
  }

 private:
  using Work = std::function<absl::Status(v1::ParameterServer::Stub*, std::size_t first, std::size_t count)>;

  absl::StatusOr<Moved> OnAll(const Work& work) {
    std::vector<absl::Status> statuses(stubs_.size());
    const Instant begin = MonotonicClock()->Now();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < stubs_.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto [first, count] = PartOf(payload_->size(), i, stubs_.size());
        statuses[i] = work(stubs_[i].get(), first, count);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = absl::ToDoubleSeconds(MonotonicClock()->Now() - begin);
    for (const absl::Status& status : statuses) AUTOLOCO_RETURN_IF_ERROR(status);
    return Moved{payload_->size(), seconds};
  }

  const std::string* const payload_;
  std::string received_;
  std::vector<std::unique_ptr<v1::ParameterServer::Stub>> stubs_;
};

}  // namespace

void ServeBareGrpc() {
  BareService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::fprintf(stderr, "serving listen=127.0.0.1:%d\n", port);
  server->Wait();
}

std::unique_ptr<Arm> MakeBareGrpcArm(const std::string& address, std::size_t streams, const std::string* payload) {
  return std::make_unique<BareGrpcArm>(address, streams, payload);
}

}  // namespace autoloco::bench
