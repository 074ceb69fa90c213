#include "worker/client/pull_header.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/codec_proto.h"
#include "worker/client/messages.h"

namespace autoloco::worker {
namespace {

template <typename... Parts>
absl::Status Refuse(const v1::PullHeader& header, const Parts&... parts) {
  return absl::DataLossError(absl::StrCat("pull of version ", header.version(), ": ", parts...));
}

// Whether the form follows from what is held.
absl::Status CheckForm(const v1::PullHeader& header, const PullPlan& plan, const PullJob& job,
                       const BaseBuffer::Held& held) {
  switch (plan.form) {
    case PullForm::kNothing:
      if (held.digest.empty() || held.version != plan.version || held.digest != plan.view_digest) {
        return Refuse(header, "the server says that it is held already, held is another");
      }
      return absl::OkStatus();
    case PullForm::kBroadcast:
      if (!held.version || *held.version + 1 != plan.version) {
        return Refuse(header, "a broadcast for another version than the one held");
      }
      if (header.codec() != ToProto(job.broadcast)) {
        return Refuse(header, "want a broadcast coded as ", static_cast<int>(ToProto(job.broadcast)), ", got ",
                      static_cast<int>(header.codec()));
      }
      return absl::OkStatus();
    case PullForm::kFull:
    case PullForm::kLive: return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const v1::PullHeader& header, const PullPlan& plan, const PullJob& job) {
  if (plan.form == PullForm::kLive) return absl::OkStatus();
  const std::uint64_t values = job.base->values().size();
  const std::uint64_t begin = plan.first_block * kBlockValues;
  const std::uint64_t end = std::min(values, plan.end_block * kBlockValues);
  const std::uint64_t bytes_max = MaxPayloadBytes(end - begin, plan.codec);
  if (plan.payload_bytes > 0 && plan.payload_bytes <= bytes_max) return absl::OkStatus();
  return Refuse(header, "want 1 to ", bytes_max, " bytes, the server announces ", plan.payload_bytes);
}

}  // namespace

absl::StatusOr<PullPlan> ReadPullHeader(const v1::PullHeader& header, const PullJob& job, const BaseBuffer::Held& held,
                                        const PullAsk& ask) {
  if (header.layout_hash() != job.layout_hash) {
    return absl::FailedPreconditionError(absl::StrCat("layout of version ", header.version(), ": want hash ",
                                                      job.layout_hash, ", the server has ", header.layout_hash()));
  }
  const std::optional<PullForm> form = ToPullForm(header.form());
  if (!form) return Refuse(header, "the server sends form ", static_cast<int>(header.form()));
  PullPlan plan{.form = *form,
                .version = header.version(),
                .view_digest = header.view_digest(),
                .codec = *form == PullForm::kBroadcast ? job.broadcast : Codec::kFp32,
                .payload_bytes = header.payload_bytes(),
                .first_block = ask.first_block,
                .end_block = ask.end_block};
  const bool same = ask.form == plan.form && (plan.form == PullForm::kLive || ask.version == plan.version);
  if (ask.form && !same) return Refuse(header, "the rest of another transfer than the one that was asked for");
  AUTOLOCO_RETURN_IF_ERROR(CheckForm(header, plan, job, held));
  if (job.probe || plan.form == PullForm::kNothing) return plan;
  if (header.first_block() != plan.first_block ||
      (header.block_count() != 0 && header.block_count() != plan.end_block - plan.first_block)) {
    return Refuse(header, "want ", plan.end_block - plan.first_block, " blocks from ", plan.first_block, " on, got ",
                  header.block_count(), " from ", header.first_block(), " on");
  }
  AUTOLOCO_RETURN_IF_ERROR(CheckSize(header, plan, job));
  return plan;
}

}  // namespace autoloco::worker
