#include "server/ctl/flag_reader.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

class FlagReaderTest : public ::testing::Test {
 protected:
  FlagReaderTest() {
    flags_.Text("server", &server_);
    flags_.Seconds("timeout", &timeout_);
    flags_.Switch("json", &json_);
  }
  absl::Status Parse(const std::vector<std::string>& arguments) { return flags_.Parse(arguments); }

  std::string server_ = "default:1";
  double timeout_ = 10;
  bool json_ = false;
  FlagReader flags_;
};

TEST_F(FlagReaderTest, KeepsDefaultsWithoutArguments) {
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(server_, "default:1");
  EXPECT_EQ(timeout_, 10);
  EXPECT_FALSE(json_);
}

TEST_F(FlagReaderTest, ReadsBothForms) {
  ASSERT_TRUE(Parse({"--server", "host:7", "--timeout=2.5", "--json"}).ok());
  EXPECT_EQ(server_, "host:7");
  EXPECT_EQ(timeout_, 2.5);
  EXPECT_TRUE(json_);
}

TEST_F(FlagReaderTest, NamesTheWrongArgument) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"status"}, "unexpected argument 'status'"},
      {{"-x"}, "unexpected argument '-x'"},
      {{"--"}, "unexpected argument '--'"},
      {{"--sever=x"}, "unknown option '--sever'"},
      {{"--server"}, "--server needs a value"},
      {{"--server="}, "--server needs a value"},
      {{"--json=yes"}, "--json takes no value"},
      {{"--json", "--json"}, "--json is given twice"},
      {{"--timeout", "soon"}, "--timeout: want a number of seconds above 0, got 'soon'"},
      {{"--timeout=0"}, "got '0'"},
      {{"--timeout=-1"}, "got '-1'"},
      {{"--timeout=nan"}, "got 'nan'"},
      {{"--timeout=inf"}, "got 'inf'"},
  };
  for (const auto& [arguments, message] : cases) {
    std::string server;
    double timeout = 0;
    bool json = false;
    FlagReader flags;
    flags.Text("server", &server);
    flags.Seconds("timeout", &timeout);
    flags.Switch("json", &json);
    const absl::Status status = flags.Parse(arguments);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << arguments.front();
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace autoloco::server
