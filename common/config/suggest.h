// "did you mean ...?": the name nearest to a mistyped one.
#ifndef AUTOLOCO_COMMON_CONFIG_SUGGEST_H_
#define AUTOLOCO_COMMON_CONFIG_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace autoloco {

// The candidate with the least edit distance (insert, delete, replace, swap of neighbours) to `name`; empty when none
// is near (more than a third of the letters differ, or more than 3). Case does not count.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_SUGGEST_H_
