// Numbers into JSON and fields out of it, for the manifest of a checkpoint.
#ifndef AUTOLOCO_SERVER_STORAGE_JSON_FIELDS_H_
#define AUTOLOCO_SERVER_STORAGE_JSON_FIELDS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace autoloco::server {

using Json = nlohmann::json;

// JSON has no NaN and no infinity: they are written as text. Finite numbers come back bit for bit.
inline Json NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

inline Json NumberToJson(const std::optional<double>& value) { return value ? NumberToJson(*value) : Json(); }

// Reads fields out of one object; the first problem stays in `status`, as DATA_LOSS. Both are borrowed.
class FieldReader {
 public:
  explicit FieldReader(const Json& object, absl::Status* status) : object_(object), status_(status) {}

  void Read(const char* key, std::uint64_t* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (!field->is_number_unsigned()) return Refuse(key, "a whole number");
    *value = field->get<std::uint64_t>();
  }
  void Read(const char* key, std::string* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (!field->is_string()) return Refuse(key, "text");
    *value = field->get<std::string>();
  }
  void Read(const char* key, bool* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (!field->is_boolean()) return Refuse(key, "true or false");
    *value = field->get<bool>();
  }
  void Read(const char* key, double* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (field->is_number()) {
      *value = field->get<double>();
    } else if (*field == "nan") {
      *value = std::numeric_limits<double>::quiet_NaN();
    } else if (*field == "inf" || *field == "-inf") {
      *value = *field == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    } else {
      Refuse(key, "a number");
    }
  }
  void Read(const char* key, std::uint32_t* value) {
    std::uint64_t wide = 0;
    Read(key, &wide);
    if (wide > std::numeric_limits<std::uint32_t>::max()) return Refuse(key, "a whole number below 2^32");
    *value = static_cast<std::uint32_t>(wide);
  }
  // null: empty.
  void Read(const char* key, std::optional<double>* value) {
    const Json* const field = Find(key);
    if (field == nullptr || field->is_null()) return value->reset();
    double number = 0;
    Read(key, &number);
    *value = number;
  }
  // Null after a problem.
  const Json* Array(const char* key) {
    const Json* const field = Find(key);
    if (field == nullptr || field->is_array()) return field;
    Refuse(key, "an array");
    return nullptr;
  }
  const Json* Object(const char* key) {
    const Json* const field = Find(key);
    if (field == nullptr || field->is_object()) return field;
    Refuse(key, "an object");
    return nullptr;
  }

  void Refuse(const char* key, const char* want) {
    if (status_->ok()) *status_ = absl::DataLossError(absl::StrCat(key, ": want ", want));
  }

 private:
  const Json* Find(const char* key) {
    if (object_.is_object()) {
      const auto found = object_.find(key);
      if (found != object_.end()) return &*found;
    }
    if (status_->ok()) *status_ = absl::DataLossError(absl::StrCat("no ", key));
    return nullptr;
  }
  const Json& object_;
  absl::Status* const status_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_JSON_FIELDS_H_
