// Reads the flags of a sub-command: `--name value`, `--name=value` and plain `--switch`.
#ifndef AUTOLOCO_SERVER_CTL_FLAG_READER_H_
#define AUTOLOCO_SERVER_CTL_FLAG_READER_H_

#include <map>
#include <set>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace autoloco::server {

// Declare, then Parse. `name` is written without dashes; the variables must outlive the reader. Not thread-safe.
class FlagReader {
 public:
  void Text(absl::string_view name, std::string* value);
  // Seconds, above 0.
  void Seconds(absl::string_view name, double* value);
  void Switch(absl::string_view name, bool* value);

  // INVALID_ARGUMENT naming the argument: unknown, given twice, without its value, not a number, or not a flag.
  absl::Status Parse(std::span<const std::string> arguments);

 private:
  absl::Status Assign(const std::string& name, const std::string& value);

  std::map<std::string, std::string*> texts_;
  std::map<std::string, double*> seconds_;
  std::map<std::string, bool*> switches_;
  std::set<std::string> seen_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_FLAG_READER_H_
