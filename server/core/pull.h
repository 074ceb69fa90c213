// What a worker may be sent of a version: the words of a pull.
#ifndef AUTOLOCO_SERVER_CORE_PULL_H_
#define AUTOLOCO_SERVER_CORE_PULL_H_

#include <cstdint>

#include "common/base/ids.h"

namespace autoloco::server {

enum class PullForm : std::uint8_t {
  kUnspecified,  // the server decides
  kNothing,      // the worker holds the current version
  kFull,         // all values of the version, lossless
  kBroadcast,    // what turns the view of version - 1 into that of version
  kLive,         // all blocks of the view, lossless, each as of a version of its own
};
const char* PullFormName(PullForm form);  // e.g. "broadcast"

// Whole blocks of a payload that is known by its header. With an unspecified form: of what the server decides on.
struct PullPart {
  PullForm form = PullForm::kUnspecified;
  Version version = 0;
  std::uint64_t first_block = 0;
  std::uint64_t block_count = 0;  // 0: to the end
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_PULL_H_
