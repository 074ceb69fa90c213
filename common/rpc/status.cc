#include "common/rpc/status.h"

#include <string>

namespace autoloco {
namespace {

struct Row {
  absl::StatusCode code;
  grpc::StatusCode grpc_code;
  const char* name;
  Advice advice;
};

// CANCELLED, UNKNOWN and INTERNAL are retried: the server sends them only through a cut connection or stream.
constexpr Row kRows[] = {
    {absl::StatusCode::kOk, grpc::StatusCode::OK, "OK", Advice::kNone},
    {absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED, "CANCELLED", Advice::kRetry},
    {absl::StatusCode::kUnknown, grpc::StatusCode::UNKNOWN, "UNKNOWN", Advice::kRetry},
    {absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT, "INVALID_ARGUMENT", Advice::kStop},
    {absl::StatusCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", Advice::kRetry},
    {absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND, "NOT_FOUND", Advice::kStop},
    {absl::StatusCode::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS, "ALREADY_EXISTS", Advice::kStop},
    {absl::StatusCode::kPermissionDenied, grpc::StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED", Advice::kStop},
    {absl::StatusCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED",
     Advice::kBackOff},
    {absl::StatusCode::kFailedPrecondition, grpc::StatusCode::FAILED_PRECONDITION, "FAILED_PRECONDITION",
     Advice::kStop},
    {absl::StatusCode::kAborted, grpc::StatusCode::ABORTED, "ABORTED", Advice::kMoveOn},
    {absl::StatusCode::kOutOfRange, grpc::StatusCode::OUT_OF_RANGE, "OUT_OF_RANGE", Advice::kRetry},
    {absl::StatusCode::kUnimplemented, grpc::StatusCode::UNIMPLEMENTED, "UNIMPLEMENTED", Advice::kStop},
    {absl::StatusCode::kInternal, grpc::StatusCode::INTERNAL, "INTERNAL", Advice::kRetry},
    {absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE, "UNAVAILABLE", Advice::kRetry},
    {absl::StatusCode::kDataLoss, grpc::StatusCode::DATA_LOSS, "DATA_LOSS", Advice::kRetry},
    {absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED", Advice::kStop},
};

const Row& UnknownRow() { return kRows[2]; }

const Row& RowOf(absl::StatusCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return UnknownRow();
}

const Row& RowOf(grpc::StatusCode code) {
  for (const Row& row : kRows) {
    if (row.grpc_code == code) return row;
  }
  return UnknownRow();
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kStatusMessageBytesMax));
  return grpc::Status(RowOf(status.code()).grpc_code, std::move(message));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = status.error_message();
  return absl::Status(RowOf(status.error_code()).code, absl::string_view(message).substr(0, kStatusMessageBytesMax));
}

const char* StatusCodeName(absl::StatusCode code) { return RowOf(code).name; }

Advice AdviceFor(absl::StatusCode code) { return RowOf(code).advice; }

bool IsRetryable(absl::StatusCode code) {
  const Advice advice = AdviceFor(code);
  return advice == Advice::kRetry || advice == Advice::kBackOff;
}

}  // namespace autoloco
