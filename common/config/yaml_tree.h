// A YAML document as a small tree with the place of every node. Built from yaml-cpp's events instead of its own tree,
// because that one forgets duplicate keys and follows aliases.
#ifndef AUTOLOCO_COMMON_CONFIG_YAML_TREE_H_
#define AUTOLOCO_COMMON_CONFIG_YAML_TREE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

inline constexpr std::size_t kYamlBytesMax = 1 << 20;
inline constexpr int kYamlDepthMax = 16;

// Where a node begins; counted from 1.
struct YamlPlace {
  int line = 1;
  int column = 1;
};

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kMapping, kSequence };
  Kind kind = Kind::kNull;
  YamlPlace place;
  std::string scalar;              // kScalar
  bool quoted = false;             // kScalar: in quotes or a block, so text and nothing else
  std::vector<YamlEntry> entries;  // kMapping; in the order of the file, duplicate keys kept
};

struct YamlEntry {
  std::string key;
  YamlPlace place;  // of the key
  YamlNode value;
};

// Parses one document. An empty one is a null node. What a settings file has no use for is refused: several documents,
// anchors, aliases, tags, keys that are not plain text, more than kYamlBytesMax bytes, more than kYamlDepthMax levels.
// The items of a list are not kept. INVALID_ARGUMENT "name:line:column: what is wrong".
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text, absl::string_view name);

// "name:3:9", as compilers write it.
std::string PlaceText(absl::string_view name, YamlPlace place);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_YAML_TREE_H_
