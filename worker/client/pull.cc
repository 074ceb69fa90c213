#include "worker/client/pull.h"

#include <grpcpp/client_context.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/status.h"
#include "worker/client/messages.h"

namespace autoloco::worker {
namespace {

// What the header alone decides.
enum class Need { kPayload, kNothing };

absl::StatusOr<Need> ReadHeader(const v1::PullHeader& header, const PullJob& job, PullEnded* ended) {
  ended->version = header.version();
  ended->digest = header.params_digest();
  if (header.layout_hash() != job.layout_hash) {
    return absl::FailedPreconditionError(absl::StrCat("layout of version ", header.version(), ": want hash ",
                                                      job.layout_hash, ", the server has ", header.layout_hash()));
  }
  const std::uint64_t bytes_max = MaxPayloadBytes(job.base.size(), Codec::kFp32);
  if (header.payload_bytes() == 0 || header.payload_bytes() > bytes_max) {
    return absl::DataLossError(absl::StrCat("payload of version ", header.version(), ": want 1 to ", bytes_max,
                                            " bytes, the server announces ", header.payload_bytes()));
  }
  if (!job.held_digest.empty() && header.params_digest() == job.held_digest) return Need::kNothing;
  ended->differs = job.probe;
  return job.probe ? Need::kNothing : Need::kPayload;
}

absl::Status Reserve(std::uint64_t bytes, std::string* payload) {
  try {
    payload->reserve(bytes);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a pull of ", bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status AppendChunk(const v1::PullReply& reply, std::uint64_t payload_bytes, std::string* payload) {
  if (!reply.has_chunk()) return absl::DataLossError("pull: want a chunk, got another header");
  const v1::Chunk& chunk = reply.chunk();
  if (chunk.offset() != payload->size() || chunk.data().size() > payload_bytes - payload->size()) {
    return absl::DataLossError(absl::StrCat("pull: chunk at ", chunk.offset(), " of ", chunk.data().size(),
                                            " bytes, want offset ", payload->size(), " within ", payload_bytes));
  }
  payload->append(chunk.data());
  return absl::OkStatus();
}

absl::Status Decode(const std::string& payload, const PullJob& job, const PullEnded& ended) {
  AUTOLOCO_RETURN_IF_ERROR(DecodeVector(std::as_bytes(std::span(payload)), Codec::kFp32, job.base));
  const std::string digest = Digest128(std::span<const float>(job.base));
  if (digest == ended.digest) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("version ", ended.version, ": want digest ", ended.digest, ", got ", digest));
}

// Reads the stream as far as it is needed. OK with an incomplete stream only when nothing more is needed.
absl::Status ReadReplies(grpc::ClientReader<v1::PullReply>* reader, const PullJob& job, Transfer* transfer,
                         PullEnded* ended, std::string* payload, bool* complete) {
  v1::PullReply reply;
  if (!reader->Read(&reply)) return absl::OkStatus();
  if (!reply.has_header()) return absl::DataLossError("pull: want a header first");
  const std::uint64_t payload_bytes = reply.header().payload_bytes();
  AUTOLOCO_ASSIGN_OR_RETURN(const Need need, ReadHeader(reply.header(), job, ended));
  *complete = need == Need::kNothing;
  if (*complete) return absl::OkStatus();
  AUTOLOCO_RETURN_IF_ERROR(Reserve(payload_bytes, payload));
  while (reader->Read(&reply)) {
    AUTOLOCO_RETURN_IF_ERROR(AppendChunk(reply, payload_bytes, payload));
    transfer->Moved(reply.chunk().data().size());
  }
  *complete = payload->size() == payload_bytes;
  return absl::OkStatus();
}

v1::PullRequest Request(absl::string_view worker, const PullJob& job) {
  v1::PullRequest request;
  *request.mutable_identity() = ToProto(job.identity, worker);
  request.set_current(!job.version.has_value());
  request.set_version(job.version.value_or(0));
  return request;
}

absl::Status Pull(v1::ParameterServer::Stub* stub, absl::string_view worker, const PullJob& job, Transfer* transfer,
                  PullEnded* ended) {
  grpc::ClientContext context;
  AUTOLOCO_RETURN_IF_ERROR(transfer->Begin(&context));
  const std::unique_ptr<grpc::ClientReader<v1::PullReply>> reader = stub->Pull(&context, Request(worker, job));
  std::string payload;
  bool complete = false;
  const absl::Status read = ReadReplies(reader.get(), job, transfer, ended, &payload, &complete);
  const bool cut_short = !read.ok() || (complete && payload.empty());
  if (cut_short) context.TryCancel();
  const absl::Status status = FromGrpcStatus(reader->Finish());
  AUTOLOCO_RETURN_IF_ERROR(transfer->Finish(cut_short ? read : status));
  if (!complete) return absl::DataLossError(absl::StrCat("pull: it ended after ", payload.size(), " bytes"));
  if (payload.empty()) return absl::OkStatus();
  return Decode(payload, job, *ended);
}

}  // namespace

PullEnded RunPull(v1::ParameterServer::Stub* stub, absl::string_view worker, const PullJob& job, Transfer* transfer) {
  PullEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .version = 0, .digest = "", .differs = false};
  ended.status = Pull(stub, worker, job, transfer, &ended);
  return ended;
}

}  // namespace autoloco::worker
