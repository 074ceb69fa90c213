#include "worker/runtime/worker_state.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/tensor/safetensors.h"

namespace autoloco::worker {
namespace {

constexpr char kFile[] = "interval.safetensors";
constexpr char kVersion[] = "3";
constexpr char kFirstMoment[] = "exp_avg";
constexpr char kSecondMoment[] = "exp_avg_sq";
constexpr char kResidual[] = "residual";
constexpr char kNextResidual[] = "next_residual";
constexpr char kDelta[] = "delta";
constexpr char kDigestKey[] = "fields_digest";  // of all other fields

using Fields = std::map<std::string, std::string>;

std::string DigestOf(const Fields& fields) {
  std::string text;
  for (const auto& [key, value] : fields) {
    if (key != kDigestKey && key != "format") absl::StrAppend(&text, key, "=", value, "\n");
  }
  return Digest128(std::as_bytes(std::span(text)));
}

std::string DigestOf(std::initializer_list<std::span<const std::byte>> tensors) {
  Digest128Stream stream;
  for (const std::span<const std::byte> tensor : tensors) stream.Update(tensor);
  return stream.Finish();
}

// Writes the fields of `held` and `encoded`, or reads them: one list for both directions, which therefore cannot drift
// apart. The first problem of reading stays in `status`.
class FieldWriter {
 public:
  explicit FieldWriter(Fields* fields) : fields_(fields) {}
  void Field(const char* key, const std::string& value) { (*fields_)[key] = value; }
  void Field(const char* key, std::uint64_t value) { (*fields_)[key] = absl::StrCat(value); }
  void Field(const char* key, std::uint32_t value) { (*fields_)[key] = absl::StrCat(value); }
  void Field(const char* key, double value) { (*fields_)[key] = absl::StrFormat("%.17g", value); }

 private:
  Fields* const fields_;
};

class FieldReader {
 public:
  FieldReader(const Fields& fields, absl::Status* status) : fields_(fields), status_(status) {}
  void Field(const char* key, std::string& value) { value = Text(key); }
  void Field(const char* key, std::uint64_t& value) { Number(key, absl::SimpleAtoi(Text(key), &value)); }
  void Field(const char* key, std::uint32_t& value) { Number(key, absl::SimpleAtoi(Text(key), &value)); }
  void Field(const char* key, double& value) { Number(key, absl::SimpleAtod(Text(key), &value)); }

 private:
  std::string Text(const char* key) {
    const auto found = fields_.find(key);
    if (found != fields_.end()) return found->second;
    status_->Update(absl::DataLossError(absl::StrCat("field ", key, " is missing")));
    return "";
  }
  void Number(const char* key, bool is_one) {
    if (!is_one) status_->Update(absl::DataLossError(absl::StrCat("field ", key, ": want a number")));
  }

  const Fields& fields_;
  absl::Status* const status_;
};

// Everything but the tensors.
struct Header {
  std::string version = kVersion;
  std::string worker;
  HeldDelta held;
  std::uint64_t payload_bytes = 0;
  std::uint64_t layout_hash = 0;
  std::uint32_t codec = 0;
  IntervalReport report;
  std::uint64_t optimizer_steps = 0;
  std::string optimizer_digest;
  std::uint64_t residual_values = 0;
  std::string residual_digest;
};

template <typename FieldVisitor>
void VisitFields(FieldVisitor&& visitor, Header& header) {
  visitor.Field("version", header.version);
  visitor.Field("worker", header.worker);
  visitor.Field("run_id", header.held.owner.run_id);
  visitor.Field("incarnation", header.held.owner.incarnation);
  Assignment& assignment = header.held.assignment;
  visitor.Field("round", assignment.round);
  visitor.Field("assigned_steps", assignment.inner_steps);
  visitor.Field("first_inner_step", assignment.first_inner_step);
  visitor.Field("first_sample", assignment.first_sample);
  visitor.Field("sample_count", assignment.sample_count);
  visitor.Field("evaluation_part", assignment.evaluation_part);
  visitor.Field("evaluation_parts", assignment.evaluation_parts);
  visitor.Field("payload_digest", header.held.digest);
  visitor.Field("payload_bytes", header.payload_bytes);
  visitor.Field("layout_hash", header.layout_hash);
  visitor.Field("codec", header.codec);
  IntervalReport& report = header.report;
  visitor.Field("inner_steps", report.inner_steps);
  visitor.Field("tokens", report.tokens);
  visitor.Field("learning_rate_sum", report.learning_rate_sum);
  visitor.Field("loss_mean", report.loss_mean);
  visitor.Field("loss_first", report.loss_first);
  visitor.Field("loss_last", report.loss_last);
  visitor.Field("gradient_norm_mean", report.gradient_norm_mean);
  visitor.Field("step_seconds_mean", report.step_seconds_mean);
  visitor.Field("optimizer_steps", header.optimizer_steps);
  visitor.Field("optimizer_digest", header.optimizer_digest);
  visitor.Field("residual_values", header.residual_values);
  visitor.Field("residual_digest", header.residual_digest);
}

absl::StatusOr<Header> ReadHeader(const Fields& fields, const std::string& worker) {
  const auto digest = fields.find(kDigestKey);
  if (digest == fields.end() || digest->second != DigestOf(fields)) {
    return absl::DataLossError(absl::StrCat("its fields do not have the digest that stands in ", kDigestKey));
  }
  Header header;
  absl::Status status;
  VisitFields(FieldReader(fields, &status), header);
  AUTOLOCO_RETURN_IF_ERROR(status);
  if (header.version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("want version ", kVersion, ", found ", header.version));
  }
  if (header.worker != worker) {
    return absl::InvalidArgumentError(absl::StrCat("it is of worker ", header.worker, ", this is ", worker));
  }
  return header;
}

// The bytes of a tensor of exactly `values` fp32 words.
absl::StatusOr<std::span<const std::byte>> Words(const SafetensorsFile& file, const char* name, std::uint64_t values) {
  const StoredTensor* const tensor = file.Find(name);
  if (tensor == nullptr || tensor->type != TensorType::kF32 || tensor->count != values) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", name, ": want ", values, " F32 values, found ", tensor == nullptr ? 0 : tensor->count));
  }
  return tensor->bytes;
}

absl::Status Named(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<SavedDelta> ReadDelta(const SafetensorsFile& file, const std::string& worker) {
  AUTOLOCO_ASSIGN_OR_RETURN(const Header header, ReadHeader(file.metadata(), worker));
  const std::uint64_t words =
      header.payload_bytes / sizeof(float) + (header.payload_bytes % sizeof(float) == 0 ? 0 : 1);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::span<const std::byte> padded, Words(file, kDelta, words));
  const std::span<const std::byte> payload = padded.first(header.payload_bytes);
  if (Digest128(payload) != header.held.digest) return absl::DataLossError("the delta does not have its digest");
  auto encoded = std::make_shared<EncodedDelta>();
  encoded->round = header.held.assignment.round;
  encoded->layout_hash = header.layout_hash;
  encoded->codec = static_cast<Codec>(header.codec);
  encoded->payload.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
  encoded->digest = header.held.digest;
  encoded->report = header.report;
  return SavedDelta{.held = header.held, .encoded = std::move(encoded)};
}

void Copy(std::span<const std::byte> bytes, std::span<float> values) {
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

absl::Status ReadResiduals(const SafetensorsFile& file, const Header& header, const CarriedBuffers& buffers) {
  if (buffers.residual.empty()) return absl::OkStatus();
  if (header.residual_values == 0) {
    std::ranges::fill(buffers.residual, 0.0F);
    std::ranges::fill(buffers.next_residual, 0.0F);
    return absl::OkStatus();
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const auto residual, Words(file, kResidual, buffers.residual.size()));
  AUTOLOCO_ASSIGN_OR_RETURN(const auto next, Words(file, kNextResidual, buffers.next_residual.size()));
  if (DigestOf({residual, next}) != header.residual_digest) {
    return absl::DataLossError("the residuals do not have their digest");
  }
  Copy(residual, buffers.residual);
  Copy(next, buffers.next_residual);
  return absl::OkStatus();
}

absl::Status ReadState(const SafetensorsFile& file, const Header& header, std::uint64_t layout_hash,
                       const CarriedBuffers& buffers) {
  if (header.layout_hash != layout_hash) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout hash: want ", layout_hash, ", the state has ", header.layout_hash));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const auto first, Words(file, kFirstMoment, buffers.first_moment.size()));
  AUTOLOCO_ASSIGN_OR_RETURN(const auto second, Words(file, kSecondMoment, buffers.second_moment.size()));
  if (DigestOf({first, second}) != header.optimizer_digest) {
    return absl::DataLossError("the optimizer's state does not have its digest");
  }
  Copy(first, buffers.first_moment);
  Copy(second, buffers.second_moment);
  return ReadResiduals(file, header, buffers);
}

}  // namespace

WorkerState::WorkerState(FileLock lock, std::string path, std::string worker)
    : lock_(std::move(lock)), path_(std::move(path)), worker_(std::move(worker)) {}

absl::StatusOr<WorkerState> WorkerState::Open(const std::string& folder, const std::string& worker) {
  AUTOLOCO_RETURN_IF_ERROR(MakeFolders(folder));
  AUTOLOCO_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(folder));
  return WorkerState(std::move(lock), absl::StrCat(folder, "/", kFile), worker);
}

std::optional<SavedDelta> WorkerState::LoadDelta() const {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path_);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  absl::Status status = file.status();
  if (file.ok()) {
    absl::StatusOr<SavedDelta> delta = ReadDelta(*file, worker_);
    if (delta.ok()) return *std::move(delta);
    status = Named(path_, delta.status());
  }
  Log(LogLevel::kWarning, "saved_delta_ignored").Add("reason", std::string(status.message()));
  return std::nullopt;
}

absl::StatusOr<std::uint64_t> WorkerState::Load(const std::string& run_id, std::uint64_t layout_hash,
                                                const CarriedBuffers& buffers) const {
  AUTOLOCO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path_));
  const absl::StatusOr<Header> header = ReadHeader(file.metadata(), worker_);
  if (!header.ok()) return Named(path_, header.status());
  if (header->held.owner.run_id != run_id) {
    return absl::NotFoundError(absl::StrCat(path_, ": it is of run ", header->held.owner.run_id));
  }
  const absl::Status read = ReadState(file, *header, layout_hash, buffers);
  if (!read.ok()) return Named(path_, read);
  return header->optimizer_steps;
}

absl::Status WorkerState::Save(const HeldDelta& held, const EncodedDelta& encoded, const CarriedState& state) const {
  AUTOLOCO_CHECK(held.digest == encoded.digest);
  std::vector<float> payload((encoded.payload.size() + sizeof(float) - 1) / sizeof(float));
  std::memcpy(payload.data(), encoded.payload.data(), encoded.payload.size());
  Header header;
  header.worker = worker_;
  header.held = held;
  header.payload_bytes = encoded.payload.size();
  header.layout_hash = encoded.layout_hash;
  header.codec = static_cast<std::uint32_t>(encoded.codec);
  header.report = encoded.report;
  header.optimizer_steps = state.steps;
  header.optimizer_digest = DigestOf({std::as_bytes(state.first_moment), std::as_bytes(state.second_moment)});
  header.residual_values = state.residual.size();
  header.residual_digest = DigestOf({std::as_bytes(state.residual), std::as_bytes(state.next_residual)});
  Fields fields;
  VisitFields(FieldWriter(&fields), header);
  fields[kDigestKey] = DigestOf(fields);
  const TensorValues tensors[] = {{kFirstMoment, {state.first_moment.size()}, state.first_moment},
                                  {kSecondMoment, {state.second_moment.size()}, state.second_moment},
                                  {kResidual, {state.residual.size()}, state.residual},
                                  {kNextResidual, {state.next_residual.size()}, state.next_residual},
                                  {kDelta, {payload.size()}, payload}};
  return WriteSafetensors(path_, tensors, fields);
}

}  // namespace autoloco::worker
