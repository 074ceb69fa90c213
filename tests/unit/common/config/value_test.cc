#include "common/config/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace autoloco {
namespace {

using ::testing::HasSubstr;

class ValueTest : public ::testing::Test {
 protected:
  const SettingField& Server(const char* path) { return *server_table_.Find(path); }
  const SettingField& Worker(const char* path) { return *worker_table_.Find(path); }

  const SettingTable server_table_{v1::ServerConfig::descriptor()};
  const SettingTable worker_table_{v1::WorkerConfig::descriptor()};
  v1::ServerConfig server_;
  v1::WorkerConfig worker_;
};

struct Taken {
  const char* path;
  const char* text;
  const char* reads_back;
};

TEST_F(ValueTest, Takes) {
  for (const Taken& c : {
           Taken{"run.outer.nesterov", "true", "true"},
           Taken{"run.outer.nesterov", "false", "false"},
           Taken{"run.codec.zstd_level", "19", "19"},
           Taken{"run.seed", "18446744073709551615", "18446744073709551615"},
           Taken{"run.seed", "0", "0"},
           Taken{"run.rounds.start_workers", "0", "0"},
           Taken{"run.total_inner_steps", "1000000000000", "1000000000000"},
           Taken{"run.outer.learning_rate", "0.7", "0.7"},
           Taken{"run.outer.learning_rate", "10", "10"},
           Taken{"run.outer.learning_rate", "7e-1", "0.7"},
           Taken{"run.outer.momentum", "0", "0"},
           Taken{"run.inner.epsilon", "1e-8", "1e-08"},
           Taken{"run.model.rope_theta", "1e6", "1000000"},
           Taken{"run.inner.schedule", "constant", "constant"},
           Taken{"run.model.preset", "60m", "60m"},
           Taken{"run.codec.delta", "bf16", "bf16"},
           Taken{"server.log_level", "debug", "debug"},
           Taken{"server.log_format", "json", "json"},
           Taken{"run.name", "a.b-c_D9", "a.b-c_D9"},
           Taken{"server.metrics_listen", "", ""},
           Taken{"run.model.init_from", "/models/gr\xc3\xbc\xc3\x9f \"1\"", "/models/gr\xc3\xbc\xc3\x9f \"1\""},
       }) {
    SCOPED_TRACE(std::string(c.path) + "=" + c.text);
    const absl::Status set = SetFromText(Server(c.path), c.text, &server_);
    ASSERT_TRUE(set.ok()) << set;
    EXPECT_EQ(ToText(Server(c.path), server_), c.reads_back);
    EXPECT_TRUE(IsGiven(Server(c.path), server_));
  }
}

struct RefusedCase {
  const char* path;
  const char* text;
  const char* expected;
};

TEST_F(ValueTest, Refuses) {
  constexpr char kBool[] = "expected true or false, found";
  constexpr char kRate[] = "expected a number above 0 and at most 10, found";
  constexpr char kMomentum[] = "expected a number at least 0 and below 1, found";
  constexpr char kWorkers[] = "expected a whole number from 1 to 65536, found";
  constexpr char kStart[] = "expected a whole number from 0 to 65536, found";
  constexpr char kSeed[] = "expected a whole number from 0 to 18446744073709551615, found";
  constexpr char kLevel[] = "expected a whole number from 1 to 19, found";
  constexpr char kName[] = "expected text matching [a-zA-Z0-9_.-]{1,64}, found";
  for (const RefusedCase& c : {
           RefusedCase{"run.outer.nesterov", "", kBool},
           RefusedCase{"run.outer.nesterov", "True", kBool},
           RefusedCase{"run.outer.nesterov", "yes", kBool},
           RefusedCase{"run.outer.nesterov", "1", kBool},
           RefusedCase{"run.outer.learning_rate", "", kRate},
           RefusedCase{"run.outer.learning_rate", "fast", kRate},
           RefusedCase{"run.outer.learning_rate", "0", kRate},
           RefusedCase{"run.outer.learning_rate", "-1", kRate},
           RefusedCase{"run.outer.learning_rate", "10.001", kRate},
           RefusedCase{"run.outer.learning_rate", "nan", kRate},
           RefusedCase{"run.outer.learning_rate", "inf", kRate},
           RefusedCase{"run.outer.learning_rate", "1e999", kRate},
           RefusedCase{"run.outer.learning_rate", "0.7x", kRate},
           RefusedCase{"run.outer.learning_rate", " 0.7", kRate},
           RefusedCase{"run.outer.learning_rate", "0,7", kRate},
           RefusedCase{"run.outer.learning_rate", "0x1p-1", kRate},
           RefusedCase{"run.outer.momentum", "1", kMomentum},
           RefusedCase{"run.outer.momentum", "-0.1", kMomentum},
           RefusedCase{"run.rounds.min_workers", "0", kWorkers},
           RefusedCase{"run.rounds.min_workers", "65537", kWorkers},
           RefusedCase{"run.rounds.min_workers", "2.0", kWorkers},
           RefusedCase{"run.rounds.min_workers", "1e3", kWorkers},
           RefusedCase{"run.rounds.min_workers", "0x10", kWorkers},
           RefusedCase{"run.rounds.min_workers", "010", kWorkers},
           RefusedCase{"run.rounds.min_workers", "+1", kWorkers},
           RefusedCase{"run.rounds.min_workers", "1_000", kWorkers},
           RefusedCase{"run.rounds.min_workers", "4294967297", kWorkers},
           RefusedCase{"run.rounds.start_workers", "-1", kStart},
           RefusedCase{"run.seed", "18446744073709551616", kSeed},
           RefusedCase{"run.seed", "-1", kSeed},
           RefusedCase{"run.codec.zstd_level", "0", kLevel},
           RefusedCase{"run.codec.zstd_level", "-5", kLevel},
           RefusedCase{"run.codec.zstd_level", "20", kLevel},
           RefusedCase{"run.inner.schedule", "Cosine", "expected one of constant, cosine, wsd, found"},
           RefusedCase{"run.inner.schedule", "SCHEDULE_COSINE", "expected one of constant, cosine, wsd, found"},
           RefusedCase{"run.inner.schedule", "unspecified", "expected one of constant, cosine, wsd, found"},
           RefusedCase{"run.inner.schedule", "2", "expected one of constant, cosine, wsd, found"},
           RefusedCase{"run.data.tokenizer", "words", "expected bytes, found"},
           RefusedCase{"run.name", "", kName},
           RefusedCase{"run.name", "a b", kName},
           RefusedCase{"run.name", "a/../b", kName},
           RefusedCase{"server.state_dir", "", "expected text that is not empty, found"},
           RefusedCase{"server.state_dir", "a\nb", "which is not UTF-8 or has control characters"},
           RefusedCase{"server.state_dir", "a\xff", "which is not UTF-8 or has control characters"},
           RefusedCase{"run.model.rope_theta", "1e10", "expected a number above 0 and at most 1000000000, found"},
           RefusedCase{"server.max_push_bytes_in_flight", "1", "whole number from 1048576 to 18446744073709551615"},
       }) {
    SCOPED_TRACE(std::string(c.path) + "=" + c.text);
    const absl::Status set = SetFromText(Server(c.path), c.text, &server_);
    EXPECT_EQ(set.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(set.message()), HasSubstr(c.expected));
    EXPECT_THAT(std::string(set.message()), HasSubstr("found '"));
  }
  EXPECT_EQ(server_.ByteSizeLong(), 0u) << "a refused value must change nothing";
}

TEST_F(ValueTest, Patterns) {
  for (const char* device : {"auto", "cpu", "cuda", "cuda:0", "cuda:12"}) {
    EXPECT_TRUE(SetFromText(Worker("worker.device"), device, &worker_).ok()) << device;
  }
  for (const char* device : {"", "gpu", "cuda:", "cuda:x", "cpu:0", "xcpu", "cudacuda"}) {
    EXPECT_FALSE(SetFromText(Worker("worker.device"), device, &worker_).ok()) << device;
  }
  EXPECT_TRUE(SetFromText(Worker("worker.name"), "", &worker_).ok());
  EXPECT_TRUE(SetFromText(Worker("worker.name"), std::string(64, 'n'), &worker_).ok());
  EXPECT_FALSE(SetFromText(Worker("worker.name"), std::string(65, 'n'), &worker_).ok());
}

TEST_F(ValueTest, LongTextIsRefusedAndCutInErrors) {
  EXPECT_TRUE(SetFromText(Worker("worker.data"), std::string(kSettingTextBytesMax, 'x'), &worker_).ok());
  EXPECT_EQ(SetFromText(Worker("worker.data"), std::string(kSettingTextBytesMax + 1, 'x'), &worker_).message(),
            "expected text that is not empty, found 4097 bytes; at most 4096 are taken");
  const absl::Status set = SetFromText(Worker("worker.device"), std::string(4000, '7'), &worker_);
  EXPECT_LT(set.message().size(), 200u);
  EXPECT_THAT(std::string(set.message()), HasSubstr("...'"));
  EXPECT_FALSE(SetFromText(Worker("worker.device"), "cuda:" + std::string(4000, '7') + "x", &worker_).ok());
}

TEST_F(ValueTest, ErrorsStayOnOneLine) { EXPECT_EQ(Quoted("a\n\x1b'b"), "'a\\n\\033\\'b'"); }

TEST_F(ValueTest, DoublesReadBackExactly) {
  const SettingField& setting = Server("run.rounds.lease_seconds");  // from 0.1 to 86400
  std::uint64_t state = 7;
  for (int i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = 0.1 + 86399.0 * (static_cast<double>(state >> 11) / 9007199254740992.0);
    server_.mutable_run()->mutable_rounds()->set_lease_seconds(value);
    const std::string text = ToText(setting, server_);
    ASSERT_TRUE(SetFromText(setting, text, &server_).ok()) << text;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(server_.run().rounds().lease_seconds()),
              std::bit_cast<std::uint64_t>(value));
  }
}

TEST_F(ValueTest, UnknownEnumeratorsAreNoText) {
  server_.mutable_run()->mutable_inner()->set_schedule(static_cast<v1::InnerConfig::Schedule>(17));
  EXPECT_EQ(ToText(Server("run.inner.schedule"), server_), "17");
  server_.mutable_run()->mutable_inner()->set_schedule(v1::InnerConfig::SCHEDULE_UNSPECIFIED);
  EXPECT_EQ(ToText(Server("run.inner.schedule"), server_), "0");
}

}  // namespace
}  // namespace autoloco
