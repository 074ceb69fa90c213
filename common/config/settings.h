// The table of settings: every leaf of a config message, found by walking its descriptors. run_config.proto is the only
// list of settings; file, environment, flags, help and documents all go through this table.
#ifndef AUTOLOCO_COMMON_CONFIG_SETTINGS_H_
#define AUTOLOCO_COMMON_CONFIG_SETTINGS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "autoloco/v1/run_config.pb.h"

namespace autoloco {

// One setting.
struct SettingField {
  std::string path;                                              // "run.outer.learning_rate"
  std::string environment;                                       // "AUTOLOCO__RUN__OUTER__LEARNING_RATE"
  std::vector<const google::protobuf::FieldDescriptor*> fields;  // from the root to the leaf; never empty
  v1::Setting declared;                                          // default, range, unit, help

  const google::protobuf::FieldDescriptor* leaf() const { return fields.back(); }
  bool is_text() const { return leaf()->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING; }
  bool is_bool() const { return leaf()->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL; }
};

// The settings of a root message (ServerConfig, WorkerConfig, RunConfig), in the order of their declaration.
// Immutable; thread-safe.
class SettingTable {
 public:
  // REQUIRES: `root` is made of messages and singular, optional scalars that carry the `setting` option.
  explicit SettingTable(const google::protobuf::Descriptor* root);

  const google::protobuf::Descriptor* root() const { return root_; }
  const std::vector<SettingField>& settings() const { return settings_; }
  // Null when there is no such setting.
  const SettingField* Find(absl::string_view path) const;

 private:
  void Walk(const google::protobuf::Descriptor* message, const SettingField& parent);

  const google::protobuf::Descriptor* const root_;
  std::vector<SettingField> settings_;
};

// A config message being filled from several sources, with the origin of each value. Not thread-safe.
class SettingValues {
 public:
  // Borrows both for its life. REQUIRES: `message` is of the table's root type.
  SettingValues(const SettingTable* table, google::protobuf::Message* message) : table_(table), message_(message) {}

  const SettingTable& table() const { return *table_; }

  // Sets one value; a value set before is replaced. `origin` is where the text stands: "server.yaml:3:9",
  // "flag --seed". INVALID_ARGUMENT with origin, key, what was expected and what was found.
  absl::Status Set(const SettingField& setting, absl::string_view text, absl::string_view origin);

  // Gives every setting that is not set its default. INVALID_ARGUMENT naming a required setting that is missing.
  absl::Status FillDefaults();

  // Where the value of `path` was given; empty when it was not given.
  std::string Origin(absl::string_view path) const;

 private:
  const SettingTable* const table_;
  google::protobuf::Message* const message_;
  std::map<std::string, std::string> origins_;  // by path
};

// The shortest of the setting's flags that means this setting only: "--state-dir" of server.state_dir,
// "--outer.learning-rate" of run.outer.learning_rate.
std::string FlagName(const SettingTable& table, const SettingField& setting);

// The settings that `name` may mean: the full path, the path without its first section, or any ending of a path; the
// first of these forms that means something wins. Dashes and underscores are the same.
std::vector<const SettingField*> FindByFlag(const SettingTable& table, absl::string_view name);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_SETTINGS_H_
