// Command lines of benchmarks: a table says which options there are and what takes their values.
//
//   absl::Status status = ReadOptions(arguments, {.valued = {{"--rows", WholeNumber(&rows)}, {"--json", Text(&json)}},
//                                                 .switches = {{"--list", &list}}});
#ifndef AUTOLOCO_TESTS_SUPPORT_OPTION_TABLE_H_
#define AUTOLOCO_TESTS_SUPPORT_OPTION_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace autoloco::test {

// Takes the text of a value; false: it cannot be used.
using OptionSetter = std::function<bool(const std::string& value)>;

struct OptionTable {
  std::map<std::string, OptionSetter> valued;  // "--name VALUE" or "--name=VALUE"
  std::map<std::string, bool*> switches;       // "--name"; set to true
  // Takes an argument that is none of these, and its status is the caller's; null: there may be none.
  std::function<absl::Status(const std::string& argument)> other = nullptr;
};

// Goes through the arguments in their order. INVALID_ARGUMENT names the option that is unknown, lacks its value or
// cannot use it.
absl::Status ReadOptions(const std::vector<std::string>& arguments, const OptionTable& table);

absl::Status UnknownOption(const std::string& argument);

// ------------------------------------------------------------------------------------- what takes a value
// All borrow what they set, which has no value that counts when they return false.

// Not empty.
OptionSetter Text(std::string* text);

namespace internal {
template <typename Number>
Number Plain(const Number*);
template <typename Number>
Number Plain(const std::optional<Number>*);
}  // namespace internal

// A whole number, of `least` at the least, for a number or an optional one.
template <typename Target>
OptionSetter WholeNumber(Target* target, std::uint32_t least = 1) {
  return [target, least](const std::string& value) {
    decltype(internal::Plain(target)) number = 0;
    if (!absl::SimpleAtoi(value, &number) || number < least) return false;
    *target = number;
    return true;
  };
}

// Such numbers with commas between them, at least one.
template <typename Number>
OptionSetter WholeNumbers(std::vector<Number>* numbers, std::uint32_t least = 1) {
  return [numbers, least](const std::string& value) {
    numbers->clear();
    for (const absl::string_view part : absl::StrSplit(value, ',')) {
      Number number = 0;
      if (!absl::SimpleAtoi(part, &number) || number < least) return false;
      numbers->push_back(number);
    }
    return true;
  };
}

// A number from `least` to below `limit`, for a double or an optional one.
template <typename Target>
OptionSetter RealNumber(Target* target, double least, double limit) {
  return [target, least, limit](const std::string& value) {
    double number = 0;
    if (!absl::SimpleAtod(value, &number) || !(number >= least && number < limit)) return false;
    *target = number;
    return true;
  };
}

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_OPTION_TABLE_H_
