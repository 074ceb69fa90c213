#include "common/base/log.h"

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace autoloco {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { ConfigureLog(LogLevel::kInfo, LogFormat::kText); }

  // What one use of `Log` writes.
  template <typename Use>
  std::string Capture(const Use& use) {
    ::testing::internal::CaptureStderr();
    use();
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, TextLine) {
  const std::string line = Capture([] {
    Log(LogLevel::kInfo, "round_closed")
        .Add("round", std::uint64_t{12})
        .Add("loss", 1.5)
        .Add("late", false)
        .Add("d", -3);
  });
  EXPECT_THAT(line, MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[.][0-9]+Z INFO round_closed .*\n"));
  EXPECT_THAT(line, EndsWith(" round=12 loss=1.5 late=false d=-3\n"));
}

TEST_F(LogTest, KeepsTheWholeRangeOfIntegers) {
  const std::string line = Capture([] {
    Log(LogLevel::kError, "e")
        .Add("u", std::numeric_limits<std::uint64_t>::max())
        .Add("i", std::numeric_limits<std::int64_t>::min());
  });
  EXPECT_THAT(line, EndsWith(" u=18446744073709551615 i=-9223372036854775808\n"));
}

TEST_F(LogTest, QuotesWhatWouldBreakALine) {
  const std::string line = Capture([] {
    Log(LogLevel::kInfo, "e")
        .Add("plain", "w-3.x_y/z")
        .Add("space", "two words")
        .Add("newline", std::string("a\nb"))
        .Add("quote", "say \"no\"")
        .Add("equals", "a=b")
        .Add("empty", "");
  });
  EXPECT_THAT(line, EndsWith(" plain=w-3.x_y/z space=\"two words\" newline=\"a\\nb\" quote=\"say \\\"no\\\"\" "
                             "equals=\"a=b\" empty=\"\"\n"));
}

TEST_F(LogTest, WritesOnlyTheWantedLevels) {
  ConfigureLog(LogLevel::kWarning, LogFormat::kText);
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  EXPECT_TRUE(LogEnabled(LogLevel::kWarning));
  EXPECT_EQ(Capture([] { Log(LogLevel::kInfo, "e").Add("a", 1).Add("b", "x").Add("c", 1.0).Add("d", true); }), "");
  EXPECT_THAT(Capture([] { Log(LogLevel::kWarning, "e"); }), EndsWith(" WARNING e\n"));
}

TEST_F(LogTest, JsonLinesParseWhateverTheBytes) {
  ConfigureLog(LogLevel::kDebug, LogFormat::kJson);
  const std::string line = Capture([] {
    Log(LogLevel::kDebug, "e\"v")
        .Add("text", std::string("a\"\n\x01\xff", 5))
        .Add("count", 7u)
        .Add("loss", 2.25)
        .Add("nan", std::numeric_limits<double>::quiet_NaN())
        .Add("yes", true);
  });
  const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << line;
  EXPECT_EQ(parsed["level"], "DEBUG");
  EXPECT_EQ(parsed["event"], "e\"v");
  EXPECT_EQ(parsed["count"], 7);
  EXPECT_EQ(parsed["loss"], 2.25);
  EXPECT_EQ(parsed["nan"], "nan");
  EXPECT_EQ(parsed["yes"], true);
  EXPECT_EQ(parsed["text"].get<std::string>().substr(0, 3), "a\"\n");
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

class MarkingHook : public LogHook {
 public:
  void BeforeLine() override { Mark("<"); }
  void AfterLine() override { Mark(">"); }

 private:
  void Mark(const char* mark) { EXPECT_EQ(write(STDERR_FILENO, mark, 1), 1); }
};

TEST_F(LogTest, TheHookSurroundsTheLine) {
  MarkingHook hook;
  SetLogHook(&hook);
  const std::string line = Capture([] { Log(LogLevel::kInfo, "e"); });
  SetLogHook(nullptr);
  EXPECT_THAT(line, MatchesRegex("<.* INFO e\n>"));
}

TEST_F(LogTest, LinesOfSeveralThreadsStayWhole) {
  const std::string lines = Capture([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 100; ++i) Log(LogLevel::kInfo, "e").Add("text", std::string(200, 'x'));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  int count = 0;
  for (const auto& line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    ASSERT_THAT(std::string(line), EndsWith(" INFO e text=" + std::string(200, 'x')));
    ++count;
  }
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace autoloco
