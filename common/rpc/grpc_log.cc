#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace autoloco {
namespace {

void WriteLine(gpr_log_func_args* arguments) {
  const LogLevel level = arguments->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug;
  Log(level, "grpc").Add("text", arguments->message).Add("at", absl::StrCat(arguments->file, ":", arguments->line));
}

}  // namespace

void RouteGrpcLog() { gpr_set_log_function(WriteLine); }

}  // namespace autoloco
