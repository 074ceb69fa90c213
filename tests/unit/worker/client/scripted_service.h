// A ParameterServer of test lambdas inside the test's process. On loopback, since gRPC's in-process transport never
// fails the writes of a call that was answered early.
#ifndef AUTOLOCO_TESTS_UNIT_WORKER_CLIENT_SCRIPTED_SERVICE_H_
#define AUTOLOCO_TESTS_UNIT_WORKER_CLIENT_SCRIPTED_SERVICE_H_

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "common/base/mutex.h"
#include "worker/core/events.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// Blocks the server's side of a call until the client has cancelled it.
inline void AwaitCancellation(grpc::ServerContext* context) {
  Mutex mutex;
  CondVar never;
  const MutexLock lock(&mutex);
  while (!context->IsCancelled()) never.WaitFor(&mutex, absl::Milliseconds(1));
}

class ScriptedService final : public v1::ParameterServer::Service {
 public:
  using SessionStream = grpc::ServerReaderWriter<v1::ServerMessage, v1::WorkerMessage>;

  ScriptedService() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedService() override { server_->Shutdown(); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::shared_ptr<grpc::Channel> NewChannel() {
    return grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  }
  std::unique_ptr<v1::ParameterServer::Stub> NewStub() { return v1::ParameterServer::NewStub(NewChannel()); }

  grpc::Status Session(grpc::ServerContext* context, SessionStream* stream) override {
    return on_session(context, stream);
  }
  grpc::Status Push(grpc::ServerContext* context, grpc::ServerReader<v1::PushRequest>* reader,
                    v1::PushReply* reply) override {
    return on_push(context, reader, reply);
  }
  grpc::Status PushStatus(grpc::ServerContext*, const v1::PushStatusRequest* request,
                          v1::PushStatusReply* reply) override {
    return on_push_status(*request, reply);
  }
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullReply>* writer) override {
    return on_pull(context, *request, writer);
  }

  std::function<grpc::Status(grpc::ServerContext*, SessionStream*)> on_session;
  std::function<grpc::Status(grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>*, v1::PushReply*)> on_push;
  std::function<grpc::Status(const v1::PushStatusRequest&, v1::PushStatusReply*)> on_push_status;
  std::function<grpc::Status(grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullReply>*)> on_pull;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Events, waited for one by one.
class EventLog final : public EventSink {
 public:
  void Post(Event event) override {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
    arrived_.NotifyAll();
  }
  void PostWelcome(Welcomed event, RunSettings received) override {
    {
      MutexLock lock(&mutex_);
      settings_ = received;
    }
    Post(std::move(event));
  }
  // The next event, which must be a T.
  template <typename T>
  T Await() {
    MutexLock lock(&mutex_);
    while (events_.empty()) arrived_.Wait(&mutex_);
    const T event = std::get<T>(events_.front());
    events_.pop_front();
    return event;
  }
  RunSettings settings() {
    MutexLock lock(&mutex_);
    return settings_;
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  RunSettings settings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_UNIT_WORKER_CLIENT_SCRIPTED_SERVICE_H_
