#include "common/config/value.h"

#include <regex.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/utf8.h"

namespace autoloco {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Message* MutableParent(const SettingField& setting, Message* root) {
  for (std::size_t i = 0; i + 1 < setting.fields.size(); ++i) {
    root = root->GetReflection()->MutableMessage(root, setting.fields[i]);
  }
  return root;
}

const Message& Parent(const SettingField& setting, const Message& root) {
  const Message* message = &root;
  for (std::size_t i = 0; i + 1 < setting.fields.size(); ++i) {
    message = &message->GetReflection()->GetMessage(*message, setting.fields[i]);
  }
  return *message;
}

// "cosine" of SCHEDULE_COSINE: the prefix is what the zero enumerator has before UNSPECIFIED.
std::string EnumeratorText(const EnumValueDescriptor* value) {
  absl::string_view prefix = value->type()->FindValueByNumber(0)->name();
  prefix.remove_suffix(absl::string_view("UNSPECIFIED").size());
  return absl::AsciiStrToLower(absl::string_view(value->name()).substr(prefix.size()));
}

std::vector<std::string> EnumeratorTexts(const EnumDescriptor* type) {
  std::vector<std::string> texts;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) texts.push_back(EnumeratorText(type->value(i)));
  }
  return texts;
}

// Whole values below 1e15 without exponent, others in the shortest form that reads back to the same bits.
std::string NumberText(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) return absl::StrCat(static_cast<std::int64_t>(value));
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  AUTOLOCO_CHECK(error == std::errc());
  return std::string(buffer, end);
}

// The declared bounds; for whole numbers without them, those of the type.
std::string BoundsText(const v1::Setting& declared, std::optional<std::string> type_min,
                       std::optional<std::string> type_max) {
  std::optional<std::string> min = type_min;
  if (declared.has_min()) min = NumberText(declared.min());
  std::optional<std::string> max = type_max;
  if (declared.has_max()) max = NumberText(declared.max());
  if (min && max && !declared.has_above() && !declared.has_below()) return absl::StrCat(" from ", *min, " to ", *max);
  std::vector<std::string> bounds;
  if (declared.has_above()) {
    bounds.push_back(absl::StrCat("above ", NumberText(declared.above())));
  } else if (min) {
    bounds.push_back(absl::StrCat("at least ", *min));
  }
  if (declared.has_below()) {
    bounds.push_back(absl::StrCat("below ", NumberText(declared.below())));
  } else if (max) {
    bounds.push_back(absl::StrCat("at most ", *max));
  }
  return bounds.empty() ? std::string() : absl::StrCat(" ", absl::StrJoin(bounds, " and "));
}

template <typename Integer>
std::string WholeNumberExpectation(const v1::Setting& declared) {
  const std::string type_min = absl::StrCat(std::numeric_limits<Integer>::min());
  const std::string type_max = absl::StrCat(std::numeric_limits<Integer>::max());
  return absl::StrCat("a whole number", BoundsText(declared, type_min, type_max));
}

template <typename Number>
bool InRange(const v1::Setting& declared, Number number) {
  const double value = static_cast<double>(number);
  if (declared.has_min() && value < declared.min()) return false;
  if (declared.has_max() && value > declared.max()) return false;
  if (declared.has_above() && value <= declared.above()) return false;
  return !(declared.has_below() && value >= declared.below());
}

// Decimal digits without leading zeros (0x10 and 010 mean different things to different readers), or a finite number.
template <typename Number>
std::optional<Number> ParseNumber(absl::string_view text) {
  if constexpr (std::is_integral_v<Number>) {
    absl::string_view digits = text;
    absl::ConsumePrefix(&digits, "-");
    if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  }
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

absl::Status Refused(const SettingField& setting, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", Expectation(setting), ", found ", found));
}

template <typename Number>
absl::StatusOr<Number> ParseInRange(const SettingField& setting, absl::string_view text) {
  const std::optional<Number> parsed = ParseNumber<Number>(text);
  if (!parsed || !InRange(setting.declared, *parsed)) return Refused(setting, Quoted(text));
  return *parsed;
}

// POSIX extended regular expressions: part of the C library, no exceptions, no recursion over the text.
bool FullyMatches(const std::string& text, const std::string& pattern) {
  regex_t regex;
  AUTOLOCO_CHECK(regcomp(&regex, absl::StrCat("^(", pattern, ")$").c_str(), REG_EXTENDED | REG_NOSUB) == 0);
  const bool matches = regexec(&regex, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&regex);
  return matches;
}

absl::Status CheckText(const SettingField& setting, absl::string_view text) {
  if (text.size() > kSettingTextBytesMax) {
    return Refused(setting, absl::StrCat(text.size(), " bytes; at most ", kSettingTextBytesMax, " are taken"));
  }
  if (!IsPrintableUtf8(text)) {
    return Refused(setting, absl::StrCat(Quoted(text), ", which is not UTF-8 or has control characters"));
  }
  if (text.empty() && setting.declared.required()) return Refused(setting, Quoted(text));
  if (setting.declared.pattern().empty()) return absl::OkStatus();
  if (!FullyMatches(std::string(text), setting.declared.pattern())) return Refused(setting, Quoted(text));
  return absl::OkStatus();
}

absl::StatusOr<const EnumValueDescriptor*> ParseEnumerator(const SettingField& setting, absl::string_view text) {
  const EnumDescriptor* type = setting.leaf()->enum_type();
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0 && EnumeratorText(type->value(i)) == text) return type->value(i);
  }
  return Refused(setting, Quoted(text));
}

}  // namespace

absl::Status SetFromText(const SettingField& setting, absl::string_view text, Message* root) {
  const FieldDescriptor* leaf = setting.leaf();
  const auto* reflection = Parent(setting, *root).GetReflection();
  const auto parent = [&] { return MutableParent(setting, root); };  // called only for a value that is taken
  switch (leaf->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return Refused(setting, Quoted(text));
      reflection->SetBool(parent(), leaf, text == "true");
      break;
    case FieldDescriptor::CPPTYPE_INT32: {
      AUTOLOCO_ASSIGN_OR_RETURN(const std::int32_t number, ParseInRange<std::int32_t>(setting, text));
      reflection->SetInt32(parent(), leaf, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      AUTOLOCO_ASSIGN_OR_RETURN(const std::uint32_t number, ParseInRange<std::uint32_t>(setting, text));
      reflection->SetUInt32(parent(), leaf, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      AUTOLOCO_ASSIGN_OR_RETURN(const std::uint64_t number, ParseInRange<std::uint64_t>(setting, text));
      reflection->SetUInt64(parent(), leaf, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      AUTOLOCO_ASSIGN_OR_RETURN(const double number, ParseInRange<double>(setting, text));
      reflection->SetDouble(parent(), leaf, number);
      break;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      AUTOLOCO_ASSIGN_OR_RETURN(const EnumValueDescriptor* value, ParseEnumerator(setting, text));
      reflection->SetEnum(parent(), leaf, value);
      break;
    }
    default:
      AUTOLOCO_CHECK(setting.is_text());
      AUTOLOCO_RETURN_IF_ERROR(CheckText(setting, text));
      reflection->SetString(parent(), leaf, std::string(text));
  }
  return absl::OkStatus();
}

std::string ToText(const SettingField& setting, const Message& root) {
  const Message& parent = Parent(setting, root);
  const auto* reflection = parent.GetReflection();
  const FieldDescriptor* leaf = setting.leaf();
  switch (leaf->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return reflection->GetBool(parent, leaf) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT32: return absl::StrCat(reflection->GetInt32(parent, leaf));
    case FieldDescriptor::CPPTYPE_UINT32: return absl::StrCat(reflection->GetUInt32(parent, leaf));
    case FieldDescriptor::CPPTYPE_UINT64: return absl::StrCat(reflection->GetUInt64(parent, leaf));
    case FieldDescriptor::CPPTYPE_DOUBLE: return NumberText(reflection->GetDouble(parent, leaf));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = reflection->GetEnumValue(parent, leaf);
      const EnumValueDescriptor* value = leaf->enum_type()->FindValueByNumber(number);
      return value == nullptr || number == 0 ? absl::StrCat(number) : EnumeratorText(value);
    }
    default: AUTOLOCO_CHECK(setting.is_text()); return reflection->GetString(parent, leaf);
  }
}

bool IsGiven(const SettingField& setting, const Message& root) {
  const Message& parent = Parent(setting, root);
  return parent.GetReflection()->HasField(parent, setting.leaf());
}

std::string Expectation(const SettingField& setting) {
  switch (setting.leaf()->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
    case FieldDescriptor::CPPTYPE_INT32: return WholeNumberExpectation<std::int32_t>(setting.declared);
    case FieldDescriptor::CPPTYPE_UINT32: return WholeNumberExpectation<std::uint32_t>(setting.declared);
    case FieldDescriptor::CPPTYPE_UINT64: return WholeNumberExpectation<std::uint64_t>(setting.declared);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat("a number", BoundsText(setting.declared, std::nullopt, std::nullopt));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const std::vector<std::string> texts = EnumeratorTexts(setting.leaf()->enum_type());
      return absl::StrCat(texts.size() == 1 ? "" : "one of ", absl::StrJoin(texts, ", "));
    }
    default:
      if (!setting.declared.pattern().empty()) return absl::StrCat("text matching ", setting.declared.pattern());
      return setting.declared.required() ? "text that is not empty" : "text";
  }
}

std::string Quoted(absl::string_view text) {
  constexpr std::size_t kShownBytes = 64;
  const bool cut = text.size() > kShownBytes;
  return absl::StrCat("'", absl::Utf8SafeCEscape(text.substr(0, kShownBytes)), cut ? "..." : "", "'");
}

}  // namespace autoloco
