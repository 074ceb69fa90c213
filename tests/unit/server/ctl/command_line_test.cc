#include "server/ctl/command_line.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoloco/v1/admin.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

Result Execute(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Result result;
  result.code = RunCommandLine(arguments, out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

long LineCount(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(CommandLineTest, HelpListsTheCommands) {
  for (const char* argument : {"--help", "-h", "help"}) {
    const Result result = Execute({argument});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("\n  status  "));
    EXPECT_THAT(result.err, IsEmpty());
  }
}

TEST(CommandLineTest, CommandHelpIsTheCommandsOwn) {
  const Result result = Execute({"status", "--json", "--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("Usage: autoloco status "));
}

TEST(CommandLineTest, PrintsItsVersion) {
  const Result result = Execute({"--version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, ::testing::MatchesRegex("autoloco [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLineTest, WrongUsageIsTwo) {
  EXPECT_EQ(Execute({}).code, 2);
  const Result unknown = Execute({"stats"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "autoloco: unknown command 'stats'; `autoloco --help` lists them\n");
  const Result flag = Execute({"status", "--frob"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_EQ(flag.err, "autoloco status: unknown option '--frob'; see `autoloco status --help`\n");
  EXPECT_EQ(Execute({"status", "--server", "7070"}).code, 2);
  const Result plain = Execute({"status", "--server", "192.0.2.1:7070"});
  EXPECT_EQ(plain.code, 2);
  EXPECT_THAT(plain.err, HasSubstr("insecure"));
  EXPECT_EQ(LineCount(plain.err), 1);
}

TEST(CommandLineTest, AnUnreachableServerIsOneLineAndOne) {
  const Result result = Execute({"status", "--server", "127.0.0.1:1"});  // tcpmux: nobody listens there
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, StartsWith("autoloco status: cannot reach the server at 127.0.0.1:1: "));
  EXPECT_EQ(LineCount(result.err), 1);
  EXPECT_THAT(result.out, IsEmpty());
}

// An Admin service on a free port of loopback that answers with `status` and `reply`.
class FakeServer final : public v1::Admin::Service {
 public:
  FakeServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() override { server_->Shutdown(); }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::Status* answer) override {
    *answer = reply;
    return status;
  }
  // Two rounds a call.
  grpc::Status GetRounds(grpc::ServerContext*, const v1::GetRoundsRequest* request, v1::Rounds* answer) override {
    answer->set_rounds_committed(rounds);
    for (std::uint64_t round = request->first_round(); round < rounds && answer->rounds_size() < 2; ++round) {
      answer->add_rounds()->set_round(round);
    }
    return status;
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  v1::Status reply;
  std::uint64_t rounds = 0;
  grpc::Status status;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(CommandLineTest, StatusShowsWhatTheServerSays) {
  FakeServer server;
  server.reply.set_run_id("run-1");
  const Result table = Execute({"status", "--server", server.address()});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("run         run-1, "));

  const Result json = Execute({"status", "--json", "--server", server.address()});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(LineCount(json.out), 1);
  EXPECT_EQ(nlohmann::json::parse(json.out)["run_id"], "run-1");
}

TEST(CommandLineTest, RoundsFetchesThemAll) {
  FakeServer server;
  server.rounds = 5;
  const Result table = Execute({"rounds", "--server", server.address()});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(LineCount(table.out), 6);
  EXPECT_EQ(LineCount(Execute({"rounds", "--csv", "--server", server.address()}).out), 6);
  const Result json = Execute({"rounds", "--json", "--server", server.address()});
  EXPECT_EQ(nlohmann::json::parse(json.out)["rounds"].size(), 5u);
  EXPECT_EQ(nlohmann::json::parse(json.out)["rounds"][4]["round"], "4");
  EXPECT_EQ(Execute({"rounds", "--csv", "--json", "--server", server.address()}).code, 2);
  server.rounds = 0;
  EXPECT_EQ(LineCount(Execute({"rounds", "--server", server.address()}).out), 1);
}

TEST(CommandLineTest, ARefusalIsOneLineAndOne) {
  FakeServer server;
  server.status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no token\nat all");
  const Result result = Execute({"status", "--server", server.address()});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err,
            absl::StrCat("autoloco status: the server at ", server.address(), " refused: no token at all\n"));
}

}  // namespace
}  // namespace autoloco::server
