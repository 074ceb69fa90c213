// bench_commit: the round commit against the same step in LibTorch operations and against a triad over as many bytes,
// all in one process, in turn. README.md beside it says what the arms do.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "server/kernels/commit.h"
#include "tests/bench/commit/options.h"
#include "tests/bench/commit/problem.h"
#include "tests/bench/commit/torch_arm.h"
#include "tests/bench/commit/triad.h"

namespace autoloco::bench {
namespace {

// fp32 sums in another order.
constexpr double kAgreement = 1e-5;

double Seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Keep(double seconds, double* best) { *best = std::min(*best, seconds); }

// Peak resident memory of this process since the last reset.
void ResetPeakRss() { std::ofstream("/proc/self/clear_refs") << "5"; }
std::uint64_t PeakRssBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, "VmHWM:")) continue;
    return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

struct Row {
  std::uint64_t params = 0;
  std::uint32_t workers = 0;
  std::uint32_t threads = 0;
  double step = 0;
  double seconds = std::numeric_limits<double>::infinity();
  double libtorch_seconds = std::numeric_limits<double>::infinity();
  double libtorch_decoder_seconds = std::numeric_limits<double>::infinity();
  double triad_seconds = std::numeric_limits<double>::infinity();
  std::uint64_t payload_bytes = 0;
  std::uint64_t broadcast_bytes = 0;
  std::uint64_t peak_rss_bytes = 0;
};

// Largest difference between what the product and LibTorch made of the same round.
double Disagreement(std::span<const float> ours, std::span<const float> theirs) {
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

bool Measure(const CommitOptions& options, std::uint32_t workers, Row* row) {
  WorkPool pool(options.threads);
  const Coding coding{.codec = Codec::kRms4, .step = options.step};
  const server::OuterCoefficients coefficients;
  row->params = BlockCount(options.params) * kBlockValues;
  row->workers = workers;
  row->threads = options.threads;
  row->step = options.step;
  const Payloads payloads(row->params, workers, coding, &pool);
  row->payload_bytes = payloads.bytes();
  std::vector<server::Contribution> contributions;
  for (std::size_t w = 0; w < workers; ++w) contributions.push_back({payloads.payload(w), coding.codec, 1.0 / workers});

  ResetPeakRss();
  RunState run(row->params);
  const auto commit = [&] {
    const auto result = server::Commit({contributions, coefficients, coding},
                                       {run.params.values(), run.momentum.values(), run.view.values()}, &pool);
    row->broadcast_bytes = result->coding.bytes;
  };
  commit();
  row->peak_rss_bytes = PeakRssBytes();

  TorchArm torch(payloads, row->params, coding, coefficients, &pool);
  Triad triad(&pool);
  torch.Run(TorchArm::Decoder::kTorch);
  const double off = Disagreement(run.params.values(), torch.params());
  if (!(off < kAgreement)) {
    std::fprintf(stderr, "the arms disagree: parameters differ by %g\n", off);
    return false;
  }
  for (std::uint32_t repeat = 0; repeat < options.repeats; ++repeat) {
    Keep(Seconds(commit), &row->seconds);
    Keep(Seconds([&] { torch.Run(TorchArm::Decoder::kTorch); }), &row->libtorch_seconds);
    Keep(Seconds([&] { torch.Run(TorchArm::Decoder::kOurs); }), &row->libtorch_decoder_seconds);
    const std::uint64_t bytes = 24 * row->params + row->payload_bytes + row->broadcast_bytes;
    Keep(Seconds([&] { triad.Run(bytes); }), &row->triad_seconds);
  }
  return true;
}

void Print(const Row& row) {
  const double bytes = static_cast<double>(24 * row.params + row.payload_bytes + row.broadcast_bytes);
  absl::PrintF("%d parameters, %d workers, step %g, %d threads: %.3f s, %.0f million parameters/s, %.1f GB/s\n",
               row.params, row.workers, row.step, row.threads, row.seconds,
               static_cast<double>(row.params) / row.seconds / 1e6, bytes / row.seconds / 1e9);
  absl::PrintF("  LibTorch operations               %.3f s  %.2f times our time\n", row.libtorch_seconds,
               row.libtorch_seconds / row.seconds);
  absl::PrintF("  LibTorch operations, our decoder  %.3f s  %.2f times our time\n", row.libtorch_decoder_seconds,
               row.libtorch_decoder_seconds / row.seconds);
  absl::PrintF("  triad of the same bytes           %.3f s  we take %.2f times its time\n", row.triad_seconds,
               row.seconds / row.triad_seconds);
  absl::PrintF("  payloads %.1f MB, broadcast %.1f MB, peak memory before the LibTorch arms %.2f bytes a parameter\n",
               static_cast<double>(row.payload_bytes) / 1e6, static_cast<double>(row.broadcast_bytes) / 1e6,
               static_cast<double>(row.peak_rss_bytes) / static_cast<double>(row.params));
}

nlohmann::json ToJson(const Row& row) {
  return {{"params", row.params},
          {"workers", row.workers},
          {"codec", absl::StrFormat("rms4 step %g", row.step)},
          {"threads", row.threads},
          {"seconds", row.seconds},
          {"libtorch_seconds", row.libtorch_seconds},
          {"libtorch_decoder_seconds", row.libtorch_decoder_seconds},
          {"triad_seconds", row.triad_seconds},
          {"payload_bytes", row.payload_bytes},
          {"broadcast_bytes", row.broadcast_bytes},
          {"peak_rss_bytes", row.peak_rss_bytes}};
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<CommitOptions> options = ParseCommitOptions(arguments);
  if (!options.ok() || options->help) {
    if (!options.ok()) std::fprintf(stderr, "%s\n", std::string(options.status().message()).c_str());
    std::fputs(CommitOptionsHelp().c_str(), options.ok() ? stdout : stderr);
    return options.ok() ? 0 : 2;
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const std::uint32_t workers : options->workers) {
    Row row;
    if (!Measure(*options, workers, &row)) return 1;
    Print(row);
    rows.push_back(ToJson(row));
  }
  if (options->json.empty()) return 0;
  std::ofstream file(options->json);
  file << rows.dump(2) << "\n";
  file.close();
  if (file.good()) return 0;
  std::fprintf(stderr, "cannot write %s\n", options->json.c_str());
  return 1;
}

}  // namespace
}  // namespace autoloco::bench

int main(int argc, char** argv) { return autoloco::bench::Main({argv + 1, argv + argc}); }
