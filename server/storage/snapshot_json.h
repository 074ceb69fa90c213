// The core's memory as JSON, as it stands in the manifest of a checkpoint.
#ifndef AUTOLOCO_SERVER_STORAGE_SNAPSHOT_JSON_H_
#define AUTOLOCO_SERVER_STORAGE_SNAPSHOT_JSON_H_

#include "absl/status/status.h"
#include "server/core/types.h"
#include "server/storage/json_fields.h"

namespace autoloco::server {

Json SnapshotToJson(const CoreSnapshot& snapshot);

// DATA_LOSS in `status` naming the first field that is missing or of the wrong type; the result is not to be used then.
CoreSnapshot ParseSnapshot(const Json& object, absl::Status* status);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_SNAPSHOT_JSON_H_
