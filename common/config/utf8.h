// Whether text from outside may stand in a protobuf string, a log line and a file name.
#ifndef AUTOLOCO_COMMON_CONFIG_UTF8_H_
#define AUTOLOCO_COMMON_CONFIG_UTF8_H_

#include "absl/strings/string_view.h"

namespace autoloco {

// Well-formed UTF-8 (shortest forms, no surrogates, at most U+10FFFF) without control characters (below U+0020, U+007F
// to U+009F).
bool IsPrintableUtf8(absl::string_view text);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_UTF8_H_
