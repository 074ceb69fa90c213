// One setting's value as text and back, with its type, range and pattern. The same text form is used in files,
// environment, flags and documents.
#ifndef AUTOLOCO_COMMON_CONFIG_VALUE_H_
#define AUTOLOCO_COMMON_CONFIG_VALUE_H_

#include <google/protobuf/message.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/config/settings.h"

namespace autoloco {

inline constexpr std::size_t kSettingTextBytesMax = 4096;

// Parses `text` and sets the setting in `root`. Forms: true or false; whole numbers in decimal; numbers as 0.7 or 4e-4;
// enumerators in lower case without their enum's prefix (bf16, cosine, 60m); text as it is (UTF-8 without control
// characters). INVALID_ARGUMENT "expected ..., found ...", without the key; `root` is then unchanged.
absl::Status SetFromText(const SettingField& setting, absl::string_view text, google::protobuf::Message* root);

// The value, in the form that SetFromText takes; numbers read back to the same value.
std::string ToText(const SettingField& setting, const google::protobuf::Message& root);

bool IsGiven(const SettingField& setting, const google::protobuf::Message& root);

// What the setting takes, for errors and documents: "a number above 0 and at most 10", "one of constant, cosine".
std::string Expectation(const SettingField& setting);

// `text` in single quotes, escaped and cut, so that it fits on a line of an error.
std::string Quoted(absl::string_view text);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_VALUE_H_
