#include "common/config/yaml.h"

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/config/suggest.h"
#include "common/config/value.h"
#include "common/config/yaml_tree.h"

namespace autoloco {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

absl::string_view KindText(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "nothing (null)";
    case YamlNode::Kind::kScalar: return "a single value";
    case YamlNode::Kind::kMapping: return "a mapping";
    case YamlNode::Kind::kSequence: return "a list";
  }
  return "";
}

// Walks a document beside the descriptors.
class YamlReader {
 public:
  YamlReader(absl::string_view name, SettingValues* values) : name_(name), values_(values) {}

  // `prefix`: "" or "run.outer.".
  absl::Status ReadMapping(const YamlNode& node, const Descriptor* message, const std::string& prefix) {
    std::map<std::string, YamlPlace> seen;
    for (const YamlEntry& entry : node.entries) {
      const std::string path = prefix + entry.key;
      const auto [first, is_new] = seen.emplace(entry.key, entry.place);
      if (!is_new) {
        return Error(entry.place, path,
                     absl::StrCat("expected each key once, found it again (first at line ", first->second.line, ")"));
      }
      const FieldDescriptor* field = message->FindFieldByName(entry.key);
      if (field == nullptr) return UnknownKey(entry, message, prefix);
      AUTOLOCO_RETURN_IF_ERROR(ReadEntry(entry, field, path));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRoot(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) return absl::OkStatus();
    const Descriptor* message = values_->table().root();
    if (root.kind == YamlNode::Kind::kMapping) return ReadMapping(root, message, "");
    return absl::InvalidArgumentError(absl::StrCat(PlaceText(name_, root.place), ": expected a mapping with ",
                                                   NamesText(message), ", found ", KindText(root)));
  }

 private:
  static std::vector<std::string> Names(const Descriptor* message) {
    std::vector<std::string> names;
    for (int i = 0; i < message->field_count(); ++i) names.push_back(message->field(i)->name());
    return names;
  }
  static std::string NamesText(const Descriptor* message) { return absl::StrJoin(Names(message), ", "); }

  absl::Status Error(YamlPlace place, absl::string_view path, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(PlaceText(name_, place), ": ", path, ": ", what));
  }

  absl::Status ReadEntry(const YamlEntry& entry, const FieldDescriptor* field, const std::string& path) {
    const YamlNode& value = entry.value;
    const YamlPlace place = value.kind == YamlNode::Kind::kNull ? entry.place : value.place;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (value.kind == YamlNode::Kind::kMapping) return ReadMapping(value, field->message_type(), path + ".");
      return Error(place, path, absl::StrCat("expected a mapping of settings, found ", KindText(value)));
    }
    const SettingField& setting = *values_->table().Find(path);
    if (value.kind != YamlNode::Kind::kScalar) {
      const absl::string_view hint =
          value.kind == YamlNode::Kind::kNull && setting.is_text() ? "; \"\" is empty text" : "";
      return Error(place, path, absl::StrCat("expected ", Expectation(setting), ", found ", KindText(value), hint));
    }
    const bool is_enum = setting.leaf()->cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    if (value.quoted && !setting.is_text() && !is_enum) {
      return Error(
          place, path,
          absl::StrCat("expected ", Expectation(setting), " without quotes, found the text ", Quoted(value.scalar)));
    }
    return values_->Set(setting, value.scalar, PlaceText(name_, place));
  }

  // Names the nearest key of the same mapping, else where a key of this name stands, else all keys of the mapping.
  absl::Status UnknownKey(const YamlEntry& entry, const Descriptor* message, const std::string& prefix) const {
    const std::string section = prefix.empty() ? "" : absl::StrCat(prefix.substr(0, prefix.size() - 1), ": ");
    const std::string what =
        absl::StrCat(PlaceText(name_, entry.place), ": ", section, "unknown key ", Quoted(entry.key), "; ");
    const std::string near = NearestName(entry.key, Names(message));
    if (!near.empty()) return absl::InvalidArgumentError(absl::StrCat(what, "did you mean '", near, "'?"));
    std::vector<std::string> elsewhere;
    for (const SettingField& setting : values_->table().settings()) {
      if (setting.leaf()->name() == entry.key) elsewhere.push_back(setting.path);
    }
    if (elsewhere.empty())
      return absl::InvalidArgumentError(absl::StrCat(what, "expected one of ", NamesText(message)));
    return absl::InvalidArgumentError(absl::StrCat(what, "did you mean ", absl::StrJoin(elsewhere, " or "), "?"));
  }

  const absl::string_view name_;
  SettingValues* const values_;
};

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// At most one byte more than ParseYaml takes.
absl::StatusOr<std::string> ReadBounded(const std::string& path) {
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot open this config file"));
  std::string text(kYamlBytesMax + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot read this config file"));
  return text;
}

// Double-quoted; the text has no control characters.
std::string YamlQuoted(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace

absl::Status ReadYaml(absl::string_view text, absl::string_view name, SettingValues* values) {
  AUTOLOCO_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, name));
  return YamlReader(name, values).ReadRoot(root);
}

absl::Status ReadYamlFile(const std::string& path, SettingValues* values) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string text, ReadBounded(path));
  return ReadYaml(text, path, values);
}

std::string ToYaml(const SettingTable& table, const google::protobuf::Message& message) {
  std::string yaml;
  std::vector<const FieldDescriptor*> open;  // sections of the line before
  for (const SettingField& setting : table.settings()) {
    if (!IsGiven(setting, message)) continue;
    const std::size_t sections = setting.fields.size() - 1;
    std::size_t common = 0;
    while (common < sections && common < open.size() && open[common] == setting.fields[common]) ++common;
    for (std::size_t level = common; level < sections; ++level) {
      absl::StrAppend(&yaml, std::string(2 * level, ' '), setting.fields[level]->name(), ":\n");
    }
    open.assign(setting.fields.begin(), setting.fields.end() - 1);
    const std::string text = ToText(setting, message);
    absl::StrAppend(&yaml, std::string(2 * sections, ' '), setting.leaf()->name(), ": ",
                    setting.is_text() ? YamlQuoted(text) : text, "\n");
  }
  return yaml;
}

}  // namespace autoloco
