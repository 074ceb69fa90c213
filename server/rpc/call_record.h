// Tells telemetry that a call began and how it ended, and counts the calls that are open. Each reactor has one.
#ifndef AUTOLOCO_SERVER_RPC_CALL_RECORD_H_
#define AUTOLOCO_SERVER_RPC_CALL_RECORD_H_

#include "absl/status/status.h"
#include "common/rpc/status.h"
#include "server/rpc/rpc_context.h"

namespace autoloco::server {

// Ended() on the loop thread, destroyed after it.
class CallRecord {
 public:
  // `service`, `method`: as in the proto, with static lifetime.
  CallRecord(const RpcContext* context, const char* service, const char* method)
      : context_(context), service_(service), method_(method), started_(context->clock->Now()) {
    context_->open_calls->Add();
    context_->telemetry->OnCallStarted(service_, method_);
  }
  ~CallRecord() { context_->open_calls->Remove(); }
  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  void Ended(absl::StatusCode code) {
    context_->telemetry->OnCallHandled(service_, method_, StatusCodeName(code), context_->clock->Now() - started_);
  }

 private:
  const RpcContext* const context_;
  const char* const service_;
  const char* const method_;
  const Instant started_;
};

inline constexpr char kParameterServer[] = "autoloco.v1.ParameterServer";
inline constexpr char kAdmin[] = "autoloco.v1.Admin";

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_CALL_RECORD_H_
