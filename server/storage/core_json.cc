#include "server/storage/core_json.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace autoloco::server {
namespace {

Json FieldToJson(double value) { return NumberToJson(value); }
Json FieldToJson(const std::optional<double>& value) { return NumberToJson(value); }
template <typename Value>
Json FieldToJson(const Value& value) {
  return value;
}

// Every field that is a number, a switch or text: the one list of them, for reading and for writing.
template <typename Factors, typename Visitor>
void VisitFactors(Factors& factors, Visitor& visit) {
  visit("a", factors.a);
  visit("c", factors.c);
  visit("p", factors.p);
  visit("g", factors.g);
  visit("plain", factors.plain);
}

template <typename Record, typename Visitor>
requires std::is_same_v<std::remove_const_t<Record>, RoundRecord>
void VisitFields(Record& record, Visitor visit) {
  visit("round", record.round);
  visit("first_inner_step", record.first_inner_step);
  visit("inner_steps", record.inner_steps);
  visit("interval", record.interval);
  visit("learning_rate", record.learning_rate);
  visit("momentum_scale", record.momentum_scale);
  visit("final_average", record.final_average);
  visit("learning_rate_sum", record.learning_rate_sum);
  visit("ratio", record.ratio);
  VisitFactors(record.factors, visit);
  visit("assigned", record.assigned);
  visit("contributors", record.contributors);
  visit("worker_steps", record.worker_steps);
  visit("tokens", record.tokens);
  visit("loss_mean", record.loss_mean);
  visit("loss_first", record.loss_first);
  visit("loss_last", record.loss_last);
  visit("gradient_norm", record.gradient_norm);
  visit("step_seconds", record.step_seconds);
  visit("mean_delta_norm", record.mean_delta_norm);
  visit("momentum_norm", record.momentum_norm);
  visit("parameter_norm", record.parameter_norm);
  visit("delta_power", record.statistics.delta_power);
  visit("mean_power", record.statistics.mean_power);
  visit("noise", record.statistics.noise);
  visit("common", record.statistics.common);
  visit("agreement", record.statistics.agreement);
  visit("noise_steps", record.statistics.noise_steps);
  visit("path", record.statistics.path);
  visit("seconds", record.seconds);
  visit("params_digest", record.params_digest);
  visit("view_digest", record.view_digest);
}

template <typename Step, typename Visitor>
requires std::is_same_v<std::remove_const_t<Step>, OuterStep>
void VisitFields(Step& step, Visitor visit) {
  visit("learning_rate", step.learning_rate);
  visit("mu", step.momentum.mu);
  visit("nesterov", step.momentum.nesterov);
  VisitFactors(step.factors, visit);
  visit("ratio", step.ratio);
  visit("final_average", step.final_average);
}

template <typename Report, typename Visitor>
requires std::is_same_v<std::remove_const_t<Report>, IntervalReport>
void VisitFields(Report& report, Visitor visit) {
  visit("inner_steps", report.inner_steps);
  visit("tokens", report.tokens);
  visit("learning_rate_sum", report.learning_rate_sum);
  visit("loss_mean", report.loss_mean);
  visit("loss_first", report.loss_first);
  visit("loss_last", report.loss_last);
  visit("gradient_norm_mean", report.gradient_norm_mean);
  visit("step_seconds_mean", report.step_seconds_mean);
}

template <typename Part, typename Visitor>
requires std::is_same_v<std::remove_const_t<Part>, EvaluationPart>
void VisitFields(Part& part, Visitor visit) {
  visit("version", part.version);
  visit("loss_sum", part.loss_sum);
  visit("tokens", part.tokens);
}

template <typename Data, typename Visitor>
requires std::is_same_v<std::remove_const_t<Data>, DataIdentity>
void VisitFields(Data& data, Visitor visit) {
  visit("samples", data.samples);
  visit("hash", data.hash);
}

// Writes and reads what VisitFields lists.
template <typename Value>
Json FieldsToJson(const Value& value) {
  Json object = Json::object();
  VisitFields(value, [&object](const char* name, const auto& field) { object[name] = FieldToJson(field); });
  return object;
}
template <typename Value>
void FieldsFromJson(const Json& json, Value* value, absl::Status* status) {
  FieldReader reader(json, status);
  VisitFields(*value, [&reader](const char* name, auto& field) { reader.Read(name, &field); });
}

template <typename Value>
Json OptionalToJson(const std::optional<Value>& value) {
  return value ? FieldsToJson(*value) : Json();
}
template <typename Value>
void OptionalFromJson(const Json& json, std::optional<Value>* value, absl::Status* status) {
  if (json.is_null()) return value->reset();
  FieldsFromJson(json, &value->emplace(), status);
}

void Refuse(const char* what, absl::Status* status) {
  if (status->ok()) *status = absl::DataLossError(absl::StrCat("want ", what));
}

}  // namespace

Json ToJson(const IntervalState& state) {
  Json object;
  VisitNumbers(state, [&object](const char* name, double number) { object[name] = NumberToJson(number); });
  object["losses"] = state.losses;
  return object;
}

void FromJson(const Json& json, IntervalState* value, absl::Status* status) {
  FieldReader reader(json, status);
  VisitNumbers(*value, [&reader](const char* name, double& number) { reader.Read(name, &number); });
  const Json* const losses = reader.Array("losses");
  if (losses == nullptr) return;
  value->losses.clear();
  for (const Json& loss : *losses) {
    if (!loss.is_number()) return reader.Refuse("losses", "numbers");
    value->losses.push_back(loss.get<double>());
  }
}

Json ToJson(const RoundRecord& record) {
  Json object = FieldsToJson(record);
  object["reason"] = ReasonName(record.reason);
  return object;
}

void FromJson(const Json& json, RoundRecord* value, absl::Status* status) {
  FieldsFromJson(json, value, status);
  FieldReader reader(json, status);
  std::string reason;
  reader.Read("reason", &reason);
  const std::optional<Reason> known = ReasonFromName(reason);
  if (!known) return reader.Refuse("reason", "the name of a reason");
  value->reason = *known;
}

Json ToJson(const OuterStep& step) { return FieldsToJson(step); }
void FromJson(const Json& json, OuterStep* value, absl::Status* status) { FieldsFromJson(json, value, status); }

Json ToJson(const IntervalReport& report) { return FieldsToJson(report); }
void FromJson(const Json& json, IntervalReport* value, absl::Status* status) { FieldsFromJson(json, value, status); }

Json ToJson(const CommitMethod& method) {
  return {{"combination", static_cast<std::uint32_t>(method.combination)},
          {"trim_share", NumberToJson(method.trim_share)},
          {"broadcast_codec", method.broadcast.codec},
          {"broadcast_step", NumberToJson(method.broadcast.step)},
          {"zstd_level", static_cast<std::uint32_t>(method.broadcast.zstd_level)}};
}

void FromJson(const Json& json, CommitMethod* value, absl::Status* status) {
  constexpr std::uint32_t kCodecMax = std::numeric_limits<std::uint8_t>::max();
  constexpr std::uint32_t kLevelMax = 100;
  FieldReader reader(json, status);
  std::uint32_t combination = 0;
  std::uint32_t codec = 0;
  std::uint32_t zstd_level = 0;
  reader.Read("combination", &combination);
  reader.Read("trim_share", &value->trim_share);
  reader.Read("broadcast_codec", &codec);
  reader.Read("broadcast_step", &value->broadcast.step);
  reader.Read("zstd_level", &zstd_level);
  if (combination > static_cast<std::uint32_t>(CombineKind::kTrimmedMean)) {
    return reader.Refuse("combination", "a way to combine");
  }
  if (codec > kCodecMax) return reader.Refuse("broadcast_codec", "the number of a codec");
  if (zstd_level > kLevelMax) return reader.Refuse("zstd_level", "a level of zstd");
  value->combination = static_cast<CombineKind>(combination);
  value->broadcast.codec = static_cast<std::uint8_t>(codec);
  value->broadcast.zstd_level = static_cast<std::int32_t>(zstd_level);
}

Json ToJson(const CommitStats& stats) {
  Json norms = Json::object();
  for (const auto& [worker, norm] : stats.delta_norm_by_worker) norms[worker] = NumberToJson(norm);
  return {{"mean_delta_norm", NumberToJson(stats.mean_delta_norm)},
          {"momentum_norm", NumberToJson(stats.momentum_norm)},
          {"parameter_norm", NumberToJson(stats.parameter_norm)},
          {"delta_norm_by_worker", std::move(norms)}};
}

void FromJson(const Json& json, CommitStats* value, absl::Status* status) {
  FieldReader reader(json, status);
  reader.Read("mean_delta_norm", &value->mean_delta_norm);
  reader.Read("momentum_norm", &value->momentum_norm);
  reader.Read("parameter_norm", &value->parameter_norm);
  const Json* const norms = reader.Object("delta_norm_by_worker");
  if (norms == nullptr) return;
  FieldReader fields(*norms, status);
  for (const auto& [worker, norm] : norms->items()) {
    fields.Read(worker.c_str(), &value->delta_norm_by_worker[worker]);
  }
}

Json ToJson(const DataCursors& cursors) {
  return {{"next_sample", cursors.next_sample}, {"next_sample_by_worker", cursors.next_sample_by_worker}};
}

void FromJson(const Json& json, DataCursors* value, absl::Status* status) {
  FieldReader reader(json, status);
  reader.Read("next_sample", &value->next_sample);
  if (const Json* samples = reader.Object("next_sample_by_worker")) {
    FromJson(*samples, &value->next_sample_by_worker, status);
  }
}

Json ToJson(const std::optional<DataIdentity>& data) { return OptionalToJson(data); }
void FromJson(const Json& json, std::optional<DataIdentity>* value, absl::Status* status) {
  OptionalFromJson(json, value, status);
}

Json ToJson(const std::optional<EvaluationPart>& part) { return OptionalToJson(part); }
void FromJson(const Json& json, std::optional<EvaluationPart>* value, absl::Status* status) {
  OptionalFromJson(json, value, status);
}

Json ToJson(const std::map<std::string, std::uint64_t>& numbers) { return numbers; }

void FromJson(const Json& json, std::map<std::string, std::uint64_t>* value, absl::Status* status) {
  if (!json.is_object()) return Refuse("an object of whole numbers", status);
  FieldReader fields(json, status);
  for (const auto& [name, number] : json.items()) fields.Read(name.c_str(), &(*value)[name]);
}

Json ToJson(const std::set<std::string>& names) { return names; }

void FromJson(const Json& json, std::set<std::string>* value, absl::Status* status) {
  if (!json.is_array()) return Refuse("an array of names", status);
  for (const Json& name : json) {
    if (!name.is_string()) return Refuse("an array of names", status);
    value->insert(name.get<std::string>());
  }
}

}  // namespace autoloco::server
