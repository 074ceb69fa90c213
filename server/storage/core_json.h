// Small structures of the core and its commits as JSON: in the manifest of a checkpoint, and in those columns of the
// state database that are read as a whole. Finite numbers come back bit for bit; a released field never changes its
// meaning.
#ifndef AUTOLOCO_SERVER_STORAGE_CORE_JSON_H_
#define AUTOLOCO_SERVER_STORAGE_CORE_JSON_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "server/core/commit_method.h"
#include "server/core/records.h"
#include "server/core/types.h"
#include "server/storage/json_fields.h"

namespace autoloco::server {

Json ToJson(const IntervalState& state);
Json ToJson(const RoundRecord& record);
Json ToJson(const OuterStep& step);
Json ToJson(const CommitMethod& method);
Json ToJson(const CommitStats& stats);
Json ToJson(const DataCursors& cursors);
Json ToJson(const IntervalReport& report);
Json ToJson(const std::optional<DataIdentity>& data);
Json ToJson(const std::optional<EvaluationPart>& part);
Json ToJson(const std::map<std::string, std::uint64_t>& numbers);
Json ToJson(const std::set<std::string>& names);

// The first field that is missing or of the wrong type is named in `status`, as DATA_LOSS, unless that holds an error
// already; `value` is not to be used then.
void FromJson(const Json& json, IntervalState* value, absl::Status* status);
void FromJson(const Json& json, RoundRecord* value, absl::Status* status);
void FromJson(const Json& json, OuterStep* value, absl::Status* status);
void FromJson(const Json& json, CommitMethod* value, absl::Status* status);
void FromJson(const Json& json, CommitStats* value, absl::Status* status);
void FromJson(const Json& json, DataCursors* value, absl::Status* status);
void FromJson(const Json& json, IntervalReport* value, absl::Status* status);
void FromJson(const Json& json, std::optional<DataIdentity>* value, absl::Status* status);
void FromJson(const Json& json, std::optional<EvaluationPart>* value, absl::Status* status);
void FromJson(const Json& json, std::map<std::string, std::uint64_t>* value, absl::Status* status);
void FromJson(const Json& json, std::set<std::string>* value, absl::Status* status);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_CORE_JSON_H_
