#include "common/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace autoloco {
namespace {

YamlPlace PlaceOf(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Collects the events of one document. An event that is refused throws yaml-cpp's own exception, which stops the parser
// (and with it its recursion) at once; ParseYaml catches it with the syntax errors.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    YamlNode node;
    node.place = PlaceOf(mark);
    Place(mark, std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Refuse(mark, "aliases are not taken"); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (!frames_.empty() && frames_.back().node.kind == YamlNode::Kind::kMapping && !frames_.back().key) {
      frames_.back().key = YamlEntry{value, PlaceOf(mark), YamlNode()};
      return;
    }
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.place = PlaceOf(mark);
    node.scalar = value;
    node.quoted = tag == "!";
    Place(mark, std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kSequence);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMapping);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YAML::Mark mark;
    YamlNode node;
    std::optional<YamlEntry> key;  // of the value that comes next
  };

  [[noreturn]] static void Refuse(const YAML::Mark& mark, const std::string& reason) {
    throw YAML::ParserException(mark, reason);
  }
  static void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) Refuse(mark, "anchors are not taken");
  }
  // yaml-cpp gives plain nodes the tag "?" and quoted ones "!".
  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") Refuse(mark, absl::StrCat("tags are not taken, found ", tag));
  }
  static void RefuseKey(const YAML::Mark& mark) { Refuse(mark, "expected the name of a setting as key"); }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (frames_.size() >= kYamlDepthMax) Refuse(mark, absl::StrCat("nested deeper than ", kYamlDepthMax, " levels"));
    Frame frame;
    frame.mark = mark;
    frame.node.kind = kind;
    frame.node.place = PlaceOf(mark);
    frames_.push_back(std::move(frame));
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Place(frame.mark, std::move(frame.node));
  }

  // Hands a complete node to its parent.
  void Place(const YAML::Mark& mark, YamlNode node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = frames_.back();
    if (parent.node.kind == YamlNode::Kind::kSequence) return;
    if (!parent.key) RefuseKey(mark);
    parent.key->value = std::move(node);
    parent.node.entries.push_back(*std::move(parent.key));
    parent.key.reset();
  }

  YamlNode root_;
  std::vector<Frame> frames_;
};

}  // namespace

std::string PlaceText(absl::string_view name, YamlPlace place) {
  return absl::StrCat(name, ":", place.line, ":", place.column);
}

absl::StatusOr<YamlNode> ParseYaml(absl::string_view text, absl::string_view name) {
  if (text.size() > kYamlBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected a config file of at most ", kYamlBytesMax, " bytes, found more"));
  }
  const auto error_at = [name](const YAML::Mark& mark, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceText(name, PlaceOf(mark)), ": ", what));
  };
  try {
    // Without line feeds at the end: yaml-cpp takes the end of the file behind one for the end of an open quote.
    std::istringstream stream{std::string(absl::StripTrailingAsciiWhitespace(text))};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    parser.HandleNextDocument(builder);
    TreeBuilder second;
    if (parser && parser.HandleNextDocument(second)) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": expected one YAML document, found several"));
    }
    return builder.TakeRoot();
  } catch (const YAML::Exception& error) {
    return error_at(error.mark, error.msg);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": not readable as YAML: ", error.what()));
  }
}

}  // namespace autoloco
