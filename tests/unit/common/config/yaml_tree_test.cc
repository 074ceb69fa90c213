#include "common/config/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace autoloco {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<YamlNode> root = ParseYaml(text, "f.yaml");
  return root.ok() ? "" : std::string(root.status().message());
}

TEST(YamlTreeTest, KeepsOrderPlacesQuotesAndDuplicates) {
  const absl::StatusOr<YamlNode> root = ParseYaml("a: 1\nb:\n  c: \"x\"\n  c: ~\nd: [1, {e: 2}]\nf: |\n  block\n", "f");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->kind, YamlNode::Kind::kMapping);
  ASSERT_EQ(root->entries.size(), 4u);
  EXPECT_EQ(root->entries[0].key, "a");
  EXPECT_EQ(root->entries[0].value.scalar, "1");
  EXPECT_FALSE(root->entries[0].value.quoted);
  EXPECT_EQ(root->entries[0].value.place.line, 1);
  EXPECT_EQ(root->entries[0].value.place.column, 4);
  const YamlNode& b = root->entries[1].value;
  ASSERT_EQ(b.entries.size(), 2u);
  EXPECT_EQ(b.entries[0].key, "c");
  EXPECT_TRUE(b.entries[0].value.quoted);
  EXPECT_EQ(b.entries[1].key, "c");
  EXPECT_EQ(b.entries[1].place.line, 4);
  EXPECT_EQ(b.entries[1].place.column, 3);
  EXPECT_EQ(b.entries[1].value.kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root->entries[2].value.kind, YamlNode::Kind::kSequence);
  EXPECT_EQ(root->entries[3].value.scalar, "block");
  EXPECT_TRUE(root->entries[3].value.quoted);
}

TEST(YamlTreeTest, EmptyDocumentsAreNull) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "~"}) {
    const absl::StatusOr<YamlNode> root = ParseYaml(text, "f");
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(root->kind, YamlNode::Kind::kNull);
  }
}

TEST(YamlTreeTest, RefusesWhatASettingsFileHasNoUseFor) {
  struct Case {
    const char* text;
    const char* place;
    const char* what;
  };
  for (const Case& c : {
           Case{"a: 1\n---\nb: 2\n", "f.yaml: ", "expected one YAML document, found several"},
           Case{"a: &x 1\n", "f.yaml:1:", "anchors are not taken"},
           Case{"&x a: 1\n", "f.yaml:1:", "anchors are not taken"},
           Case{"a: &x {b: 1}\n", "f.yaml:1:", "anchors are not taken"},
           Case{"a: *x\n", "f.yaml:1:", "anchor is not defined"},
           Case{"a: !!int \"5\"\n", "f.yaml:1:", "tags are not taken"},
           Case{"a: !!map {b: 1}\n", "f.yaml:1:", "tags are not taken"},
           Case{"? [1, 2]\n: 3\n", "f.yaml:1:", "expected the name of a setting as key"},
           Case{"? {a: 1}\n: 3\n", "f.yaml:1:", "expected the name of a setting as key"},
           Case{"~: 3\n", "f.yaml:1:", "expected the name of a setting as key"},
           Case{"a: 1\n  b: 2\n", "f.yaml:2:", ""},
           Case{"a: [1, 2\n", "f.yaml:1:", "end of sequence flow not found"},
           Case{"a: \"x\n", "f.yaml:1:", "illegal EOF in scalar"},
           Case{"a: 'x\nb: 1\n\n", "f.yaml:2:", "illegal EOF in scalar"},
           Case{"\ta: 1\n", "f.yaml:1:", ""},
       }) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(ErrorOf(c.text), AllOf(StartsWith(c.place), HasSubstr(c.what)));
  }
}

TEST(YamlTreeTest, BoundsSizeAndDepth) {
  EXPECT_THAT(ErrorOf(std::string(kYamlBytesMax + 1, ' ')), HasSubstr("at most 1048576 bytes"));
  EXPECT_EQ(ErrorOf(std::string(kYamlBytesMax, '\n')), "");
  EXPECT_THAT(ErrorOf(std::string(kYamlBytesMax, '[')), HasSubstr("nested deeper than 16 levels"));
  EXPECT_THAT(ErrorOf(std::string(kYamlBytesMax, '{')), HasSubstr("nested deeper than 16 levels"));
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  EXPECT_THAT(ErrorOf(dashes), HasSubstr("nested deeper than 16 levels"));
  EXPECT_EQ(ErrorOf(std::string(kYamlDepthMax, '[') + std::string(kYamlDepthMax, ']')), "");
}

TEST(YamlTreeTest, AnyBytesGiveAnAnswer) {
  constexpr char kAlphabet[] = "a1 \n:-[]{}&*!|>'\"%@`#?,~\t\0\xff";
  std::string text;
  unsigned state = 1;
  for (int round = 0; round < 2000; ++round) {
    text.clear();
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525u + 1013904223u;
      text += kAlphabet[(state >> 16) % sizeof(kAlphabet)];
    }
    const absl::StatusOr<YamlNode> root = ParseYaml(text, "f.yaml");
    if (!root.ok()) {
      EXPECT_THAT(std::string(root.status().message()), StartsWith("f.yaml:"));
    }
  }
}

}  // namespace
}  // namespace autoloco
