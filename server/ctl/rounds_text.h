// The history of rounds as text: a table for people, CSV and JSON for programs.
#ifndef AUTOLOCO_SERVER_CTL_ROUNDS_TEXT_H_
#define AUTOLOCO_SERVER_CTL_ROUNDS_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "autoloco/v1/admin.pb.h"

namespace autoloco::server {

// A line a round, the most telling columns; "-" where a statistic is undefined. Ends with a newline.
std::string RoundsTable(const v1::Rounds& rounds);

// A header and a line a round; every field of RoundRecord in its order, named as in admin.proto, empty where undefined.
// Numbers read back to the same value. Ends with a newline.
std::string RoundsCsv(const v1::Rounds& rounds);

// One object on one line, as protobuf writes v1::Rounds. INTERNAL when text of the message is not UTF-8.
absl::StatusOr<std::string> RoundsJson(const v1::Rounds& rounds);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_ROUNDS_TEXT_H_
