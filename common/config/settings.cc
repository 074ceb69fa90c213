#include "common/config/settings.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string WithUnderscores(absl::string_view name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }

absl::string_view WithoutSection(absl::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == absl::string_view::npos ? path : path.substr(dot + 1);
}

}  // namespace

SettingTable::SettingTable(const Descriptor* root) : root_(root) { Walk(root, SettingField()); }

void SettingTable::Walk(const Descriptor* message, const SettingField& parent) {
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    AUTOLOCO_CHECK(!field->is_repeated());
    SettingField child = parent;
    absl::StrAppend(&child.path, child.path.empty() ? "" : ".", field->name());
    child.fields.push_back(field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Walk(field->message_type(), child);
      continue;
    }
    AUTOLOCO_CHECK(field->has_optional_keyword());
    AUTOLOCO_CHECK(field->options().HasExtension(v1::setting));
    child.declared = field->options().GetExtension(v1::setting);
    child.environment =
        absl::StrCat("AUTOLOCO__", absl::StrReplaceAll(absl::AsciiStrToUpper(child.path), {{".", "__"}}));
    settings_.push_back(std::move(child));
  }
}

const SettingField* SettingTable::Find(absl::string_view path) const {
  for (const SettingField& setting : settings_) {
    if (setting.path == path) return &setting;
  }
  return nullptr;
}

absl::Status SettingValues::Set(const SettingField& setting, absl::string_view text, absl::string_view origin) {
  const absl::Status set = SetFromText(setting, text, message_);
  if (!set.ok()) return absl::InvalidArgumentError(absl::StrCat(origin, ": ", setting.path, ": ", set.message()));
  origins_[setting.path] = std::string(origin);
  return absl::OkStatus();
}

absl::Status SettingValues::FillDefaults() {
  for (const SettingField& setting : table_->settings()) {
    if (IsGiven(setting, *message_)) continue;
    if (setting.declared.required()) {
      return absl::InvalidArgumentError(absl::StrCat(setting.path,
                                                     ": required, but not given; set it in the config file, as ",
                                                     FlagName(*table_, setting), " or as ", setting.environment));
    }
    const absl::Status set = SetFromText(setting, setting.declared.default_(), message_);
    AUTOLOCO_CHECK(set.ok());
  }
  return absl::OkStatus();
}

std::string SettingValues::Origin(absl::string_view path) const {
  const auto it = origins_.find(std::string(path));
  return it == origins_.end() ? std::string() : it->second;
}

std::vector<const SettingField*> FindByFlag(const SettingTable& table, absl::string_view name) {
  const std::string wanted = WithUnderscores(name);
  std::vector<const SettingField*> endings;
  std::vector<const SettingField*> sectionless;
  for (const SettingField& setting : table.settings()) {
    if (setting.path == wanted) return {&setting};
    if (WithoutSection(setting.path) == wanted) sectionless.push_back(&setting);
    if (absl::EndsWith(setting.path, absl::StrCat(".", wanted))) endings.push_back(&setting);
  }
  return sectionless.empty() ? endings : sectionless;
}

std::string FlagName(const SettingTable& table, const SettingField& setting) {
  absl::string_view name = setting.leaf()->name();
  if (FindByFlag(table, name) != std::vector<const SettingField*>{&setting}) name = WithoutSection(setting.path);
  if (FindByFlag(table, name) != std::vector<const SettingField*>{&setting}) name = setting.path;
  return absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}));
}

}  // namespace autoloco
