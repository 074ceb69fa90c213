// A server's status as text: a table for people, JSON for programs.
#ifndef AUTOLOCO_SERVER_CTL_STATUS_TEXT_H_
#define AUTOLOCO_SERVER_CTL_STATUS_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "autoloco/v1/admin.pb.h"

namespace autoloco::server {

// Lines that fit a terminal of 100 columns as far as names and reasons allow; ends with a newline. Control characters
// in what the server sent are shown as '?'.
std::string StatusTable(const v1::Status& status);

// One object on one line, every field present, names as in admin.proto. Follows protobuf's JSON rules: 64-bit integers
// are strings, NaN is "NaN". INTERNAL when text of the message is not UTF-8.
absl::StatusOr<std::string> StatusJson(const v1::Status& status);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_STATUS_TEXT_H_
