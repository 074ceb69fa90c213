#include "server/storage/snapshot_json.h"

#include <utility>

#include "server/storage/core_json.h"

namespace autoloco::server {

Json SnapshotToJson(const CoreSnapshot& snapshot) {
  Json evaluations = Json::array();
  for (const EvaluationPoint& point : snapshot.evaluations) {
    evaluations.push_back({{"version", point.version},
                           {"inner_step", point.inner_step},
                           {"loss", NumberToJson(point.loss)},
                           {"tokens", point.tokens}});
  }
  Json history = Json::array();
  for (const RoundRecord& record : snapshot.history) history.push_back(ToJson(record));
  return {{"version", snapshot.version},
          {"inner_steps_done", snapshot.inner_steps_done},
          {"next_sample", snapshot.next_sample},
          {"next_sample_by_worker", snapshot.next_sample_by_worker},
          {"next_incarnation", snapshot.next_incarnation},
          {"rounds_aborted", snapshot.rounds_aborted},
          {"worker_inner_steps", snapshot.worker_inner_steps},
          {"evaluations", std::move(evaluations)},
          {"interval", ToJson(snapshot.interval)},
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
    FromJson(*samples, &snapshot.next_sample_by_worker, status);
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
  if (const Json* interval = reader.Object("interval")) FromJson(*interval, &snapshot.interval, status);
  if (const Json* history = reader.Array("history")) {
    for (const Json& entry : *history) {
      FromJson(entry, &snapshot.history.emplace_back(), status);
      if (!status->ok()) return snapshot;
    }
  }
  return snapshot;
}

}  // namespace autoloco::server
