// bench_transfer: pushes and pulls through the product against the same bytes over bare gRPC and over bare TCP, all
// arms in turn in one run, through relays with and without delay. README.md beside it says what the arms do.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tests/bench/transfer/bare_grpc.h"
#include "tests/bench/transfer/bare_tcp.h"
#include "tests/bench/transfer/options.h"
#include "tests/bench/transfer/product_arm.h"
#include "tests/support/process.h"
#include "tests/support/relay.h"
#include "tests/support/temp_folder.h"

namespace autoloco::bench {
namespace {

using test::Process;
using test::Relay;
using test::ServerProcess;

constexpr std::size_t kArms = 3;  // product, gRPC, TCP

// The servers that the arms speak to, each in a process of its own.
struct Servers {
  TempFolder folder;
  ServerProcess product;
  std::unique_ptr<Process> grpc;
  std::unique_ptr<Process> tcp;
  std::string addresses[kArms];
};

absl::StatusOr<std::unique_ptr<Process>> StartBare(const std::string& kind, std::string* address) {
  AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<Process> process,
                            Process::Start({test::ProgramPath("bench_transfer"), "--serve", kind}));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string line, process->WaitForLog("serving "));
  *address = test::LogValue(line, "listen");
  return process;
}

absl::Status StartAll(const TransferOptions& options, Servers* servers) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      servers->product, ServerProcess::Start(servers->folder.path(),
                                             {"--preset=custom", "--width=512", "--heads=8", "--kv-heads=8",
                                              absl::StrCat("--layers=", options.layers), "--mlp-hidden=1408",
                                              "--batch-size=1", "--evaluation.windows=0", "--warmup-steps=1",
                                              "--total-inner-steps=1000000", "--policy=fixed", "--interval.steps=1",
                                              "--min-workers=1", "--lease-seconds=3600", "--checkpoint-every-rounds=0",
                                              "--codec.delta=fp32", "--codec.broadcast=fp32", "--no-exit-when-done"}));
  servers->addresses[0] = servers->product.address;
  AUTOLOCO_ASSIGN_OR_RETURN(servers->grpc, StartBare("grpc", &servers->addresses[1]));
  AUTOLOCO_ASSIGN_OR_RETURN(servers->tcp, StartBare("tcp", &servers->addresses[2]));
  return absl::OkStatus();
}

// One row of the result, with the arms that make it.
struct Row {
  bool push = false;
  std::uint32_t streams = 0;
  std::uint32_t delay_ms = 0;
  std::unique_ptr<Relay> relays[kArms];
  std::unique_ptr<Arm> arms[kArms];
  std::vector<double> bytes_per_s[kArms];  // of every repeat

  double Median(std::size_t arm) const {
    std::vector<double> sorted = bytes_per_s[arm];
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// `bytes[0]`: what the bare arms move down, `bytes[1]`: up.
absl::StatusOr<std::vector<Row>> MakeRows(const TransferOptions& options, const Servers& servers,
                                          const std::string bytes[2], JoinedWorker* joined) {
  std::vector<Row> rows;
  for (const bool push : {true, false}) {
    for (const std::uint32_t delay_ms : options.delays_ms) {
      for (const std::uint32_t streams : options.streams) {
        Row& row = rows.emplace_back();
        row.push = push;
        row.streams = streams;
        row.delay_ms = delay_ms;
        for (std::size_t arm = 0; arm < kArms; ++arm) {
          AUTOLOCO_ASSIGN_OR_RETURN(row.relays[arm], Relay::Start(servers.addresses[arm]));
          row.relays[arm]->SetDelay(absl::Milliseconds(delay_ms));
        }
        row.arms[0] = MakeProductArm(row.relays[0]->address(), streams, joined);
        row.arms[1] = MakeBareGrpcArm(row.relays[1]->address(), streams, &bytes[push ? 1 : 0]);
        row.arms[2] = MakeBareTcpArm(row.relays[2]->address(), streams, &bytes[push ? 1 : 0]);
      }
    }
  }
  return rows;
}

absl::Status Measure(std::uint32_t repeats, std::vector<Row>* rows) {
  for (std::uint32_t repeat = 0; repeat <= repeats; ++repeat) {
    for (Row& row : *rows) {
      for (std::size_t arm = 0; arm < kArms; ++arm) {
        const absl::StatusOr<Moved> moved = row.push ? row.arms[arm]->Push() : row.arms[arm]->Pull();
        AUTOLOCO_RETURN_IF_ERROR(moved.status());
        // The first one connects and fills caches.
        if (repeat > 0) row.bytes_per_s[arm].push_back(static_cast<double>(moved->bytes) / moved->seconds);
      }
    }
  }
  return absl::OkStatus();
}

void Print(const std::vector<Row>& rows, const JoinedWorker& joined) {
  absl::PrintF("%.1f MB a push, %.1f MB a pull; MB/s\n", static_cast<double>(joined.push_bytes()) / 1e6,
               static_cast<double>(joined.pull_bytes()) / 1e6);
  absl::PrintF("%-6s %8s %8s %9s %9s %9s %8s %8s\n", "", "streams", "delay", "product", "gRPC", "TCP", "of gRPC",
               "of TCP");
  for (const Row& row : rows) {
    absl::PrintF("%-6s %8d %5d ms %9.1f %9.1f %9.1f %7.0f%% %7.0f%%\n", row.push ? "push" : "pull", row.streams,
                 row.delay_ms, row.Median(0) / 1e6, row.Median(1) / 1e6, row.Median(2) / 1e6,
                 100 * row.Median(0) / row.Median(1), 100 * row.Median(0) / row.Median(2));
  }
  for (const Row& row : rows) {
    const auto one = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
      return other.push == row.push && other.delay_ms == row.delay_ms && other.streams == 1;
    });
    if (row.streams == 1 || one == rows.end()) continue;
    absl::PrintF("%s, %d ms: %d streams move %.2f times what one does (gRPC %.2f, TCP %.2f)\n",
                 row.push ? "push" : "pull", row.delay_ms, row.streams, row.Median(0) / one->Median(0),
                 row.Median(1) / one->Median(1), row.Median(2) / one->Median(2));
  }
}

bool WriteJson(const std::vector<Row>& rows, const std::string& path) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    list.push_back({{"direction", row.push ? "push" : "pull"},
                    {"streams", row.streams},
                    {"delay_ms", row.delay_ms},
                    {"bytes_per_s", row.Median(0)},
                    {"grpc_bytes_per_s", row.Median(1)},
                    {"tcp_bytes_per_s", row.Median(2)}});
  }
  std::ofstream file(path);
  file << list.dump(2) << "\n";
  file.close();
  return file.good();
}

absl::Status Run(const TransferOptions& options) {
  Servers servers;
  AUTOLOCO_RETURN_IF_ERROR(StartAll(options, &servers));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<JoinedWorker> joined, JoinedWorker::Join(servers.product.address));
  const std::string bytes[2] = {std::string(joined->pull_bytes(), 'x'), std::string(joined->push_bytes(), 'x')};
  AUTOLOCO_ASSIGN_OR_RETURN(std::vector<Row> rows, MakeRows(options, servers, bytes, joined.get()));
  AUTOLOCO_RETURN_IF_ERROR(Measure(options.repeats, &rows));
  Print(rows, *joined);
  if (options.json.empty() || WriteJson(rows, options.json)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", options.json));
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<TransferOptions> options = ParseTransferOptions(arguments);
  if (!options.ok() || options->help) {
    if (!options.ok()) std::fprintf(stderr, "%s\n", std::string(options.status().message()).c_str());
    std::fputs(TransferOptionsHelp().c_str(), options.ok() ? stdout : stderr);
    return options.ok() ? 0 : 2;
  }
  if (options->serve == "grpc") ServeBareGrpc();
  if (options->serve == "tcp") ServeBareTcp();
  const absl::Status status = Run(*options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_transfer: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace autoloco::bench

int main(int argc, char** argv) { return autoloco::bench::Main({argv + 1, argv + argc}); }
