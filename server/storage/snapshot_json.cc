#include "server/storage/snapshot_json.h"

#include <string>
#include <utility>

namespace autoloco::server {
namespace {

Json IntervalToJson(const IntervalState& state) {
  Json object;
  VisitNumbers(state, [&object](const char* name, double number) { object[name] = NumberToJson(number); });
  object["losses"] = state.losses;
  return object;
}

IntervalState ParseInterval(const Json& object, absl::Status* status) {
  IntervalState state;
  FieldReader reader(object, status);
  VisitNumbers(state, [&reader](const char* name, double& number) { reader.Read(name, &number); });
  if (const Json* losses = reader.Array("losses")) {
    for (const Json& loss : *losses) {
      if (!loss.is_number()) {
        reader.Refuse("losses", "numbers");
        return state;
      }
      state.losses.push_back(loss.get<double>());
    }
  }
  return state;
}

// Calls visit(name, field) for every field of a record that is a number or a switch: the one list of them here.
template <typename Record, typename Visitor>
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
  visit("a", record.factors.a);
  visit("c", record.factors.c);
  visit("p", record.factors.p);
  visit("g", record.factors.g);
  visit("plain", record.factors.plain);
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
}

Json ToJson(double value) { return NumberToJson(value); }
Json ToJson(const std::optional<double>& value) { return NumberToJson(value); }
Json ToJson(std::uint32_t value) { return value; }
Json ToJson(std::uint64_t value) { return value; }
Json ToJson(bool value) { return value; }

Json RecordToJson(const RoundRecord& record) {
  Json object;
  VisitFields(record, [&object](const char* name, const auto& field) { object[name] = ToJson(field); });
  object["reason"] = ReasonName(record.reason);
  return object;
}

RoundRecord ParseRecord(const Json& object, absl::Status* status) {
  RoundRecord record;
  FieldReader reader(object, status);
  VisitFields(record, [&reader](const char* name, auto& field) { reader.Read(name, &field); });
  std::string reason;
  reader.Read("reason", &reason);
  const std::optional<Reason> known = ReasonFromName(reason);
  if (known) {
    record.reason = *known;
  } else {
    reader.Refuse("reason", "the name of a reason");
  }
  return record;
}

}  // namespace

Json SnapshotToJson(const CoreSnapshot& snapshot) {
  Json evaluations = Json::array();
  for (const EvaluationPoint& point : snapshot.evaluations) {
    evaluations.push_back({{"version", point.version},
                           {"inner_step", point.inner_step},
                           {"loss", NumberToJson(point.loss)},
                           {"tokens", point.tokens}});
  }
  Json history = Json::array();
  for (const RoundRecord& record : snapshot.history) history.push_back(RecordToJson(record));
  return {{"version", snapshot.version},
          {"inner_steps_done", snapshot.inner_steps_done},
          {"next_sample", snapshot.next_sample},
          {"next_sample_by_worker", snapshot.next_sample_by_worker},
          {"next_incarnation", snapshot.next_incarnation},
          {"rounds_aborted", snapshot.rounds_aborted},
          {"worker_inner_steps", snapshot.worker_inner_steps},
          {"evaluations", std::move(evaluations)},
          {"interval", IntervalToJson(snapshot.interval)},
          {"history", std::move(history)}};
}

CoreSnapshot ParseSnapshot(const Json& object, absl::Status* status) {
  CoreSnapshot snapshot;
  FieldReader reader(object, status);
  reader.Read("version", &snapshot.version);
  reader.Read("inner_steps_done", &snapshot.inner_steps_done);
  reader.Read("next_sample", &snapshot.next_sample);
  reader.Read("next_incarnation", &snapshot.next_incarnation);
  reader.Read("rounds_aborted", &snapshot.rounds_aborted);
  reader.Read("worker_inner_steps", &snapshot.worker_inner_steps);
  if (const Json* samples = reader.Object("next_sample_by_worker")) {
    FieldReader fields(*samples, status);
    for (const auto& [worker, next] : samples->items()) {
      fields.Read(worker.c_str(), &snapshot.next_sample_by_worker[worker]);
    }
  }
  if (const Json* points = reader.Array("evaluations")) {
    for (const Json& entry : *points) {
      EvaluationPoint point;
      FieldReader fields(entry, status);
      fields.Read("version", &point.version);
      fields.Read("inner_step", &point.inner_step);
      fields.Read("loss", &point.loss);
      fields.Read("tokens", &point.tokens);
      if (!status->ok()) return snapshot;
      snapshot.evaluations.push_back(point);
    }
  }
  if (const Json* interval = reader.Object("interval")) snapshot.interval = ParseInterval(*interval, status);
  if (const Json* history = reader.Array("history")) {
    for (const Json& entry : *history) {
      snapshot.history.push_back(ParseRecord(entry, status));
      if (!status->ok()) return snapshot;
    }
  }
  return snapshot;
}

}  // namespace autoloco::server
