// bench_codec: bits, noise and speed of the delta codec on one core, beside zstd alone and beside plain pipelines, all
// in one run. Prints ratios; README.md has the figures measured.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/random.h"
#include "common/codec/quantizer.h"
#include "nlohmann/json.hpp"
#include "tests/bench/codec/arm.h"

namespace autoloco::bench {
namespace {

struct Options {
  std::string json;
  int repetitions = 100;
};

struct Data {
  std::string name;
  std::vector<float> values;
};

// Gaussian: N(0, 1e-6). Rows: the same, with a standard deviation of its own for each 512 values (log-normal, sigma 1),
// as the deltas of a model's layers have.
std::vector<Data> MakeData() {
  const RandomStream stream(1, 0);
  const RandomStream scales(1, 1);
  Data gaussian = {"gaussian", std::vector<float>(kBlockValues)};
  Data rows = {"rows", std::vector<float>(kBlockValues)};
  constexpr std::size_t kRow = 512;
  for (std::size_t i = 0; i < kBlockValues; ++i) {
    gaussian.values[i] = static_cast<float>(1e-3 * stream.Normal(i));
    rows.values[i] = static_cast<float>(1e-3 * stream.Normal(i) * std::exp(scales.Normal(i / kRow)));
  }
  return {gaussian, rows};
}

std::vector<Arm> MakeArms(std::span<const float> values) {
  std::vector<Arm> arms;
  for (const double step : {0.5, 1.0, 1.5, 2.0, 2.5, 3.0}) {
    const Codec codec = QuantizedCodec(step);
    const char* packing = codec == Codec::kRms8 ? "8-bit" : codec == Codec::kRms4 ? "4-bit" : "ternary";
    arms.push_back(MakeCodecArm(absl::StrCat("rms ", step, " ", packing), values, {.codec = codec, .step = step}));
  }
  arms.push_back(MakeCodecArm("int8", values, {.codec = Codec::kInt8}));
  arms.push_back(MakeCodecArm("bf16", values, {.codec = Codec::kBf16}));
  arms.push_back(MakeCodecArm("fp32", values, {.codec = Codec::kFp32}));
  arms.push_back(MakePlainArm(8, values));
  arms.push_back(MakePlainArm(4, values));
  return arms;
}

// Seconds a block: the fastest of several short stretches, so that what else runs on the machine counts little.
struct Speed {
  double encode = std::numeric_limits<double>::infinity();
  double encode_with_residual = encode;
  double decode_add = encode;
  double zstd_encode = encode;
  double zstd_decode = encode;
};

void Time(const std::function<void()>& work, double* best) {
  constexpr int kBlocks = 2;  // a fraction of a time slice
  if (!work) return;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kBlocks; ++i) work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  *best = std::min(*best, took.count() / kBlocks);
}

// The stretches of the five kinds of work take turns: they see the same machine.
Speed Measure(const Arm& arm, int repetitions) {
  Speed speed;
  for (int i = 0; i < repetitions; ++i) {
    Time(arm.encode, &speed.encode);
    Time(arm.zstd_encode, &speed.zstd_encode);
    Time(arm.encode_with_residual, &speed.encode_with_residual);
    Time(arm.decode_add, &speed.decode_add);
    Time(arm.zstd_decode, &speed.zstd_decode);
  }
  return speed;
}

double PerSecond(double seconds) { return static_cast<double>(kBlockValues) / seconds; }

nlohmann::json ToJson(const std::string& data, const Arm& arm, const Speed& speed) {
  nlohmann::json object = {{"codec", arm.name},
                           {"data", data},
                           {"bits_per_value", arm.bits_per_value},
                           {"snr_db", nullptr},
                           {"encode_values_per_s", PerSecond(speed.encode)},
                           {"encode_with_residual_values_per_s", nullptr},
                           {"decode_values_per_s", PerSecond(speed.decode_add)},
                           {"zstd_encode_values_per_s", PerSecond(speed.zstd_encode)},
                           {"zstd_decode_values_per_s", PerSecond(speed.zstd_decode)}};
  if (std::isfinite(arm.snr_db)) object["snr_db"] = arm.snr_db;  // fp32 loses nothing: null
  if (arm.encode_with_residual) object["encode_with_residual_values_per_s"] = PerSecond(speed.encode_with_residual);
  return object;
}

// A figure, or a dash where the arm has none.
std::string Cell(double value, int width, int digits) {
  if (!std::isfinite(value) || value == 0) return absl::StrFormat("%*s", width, "-");
  return absl::StrFormat("%*.*f", width, digits, value);
}

void Print(const Arm& arm, const Speed& speed) {
  constexpr int kWide = 9;
  std::string line = absl::StrFormat("%-24s%8.3f", arm.name, arm.bits_per_value) + Cell(arm.snr_db, kWide, 2);
  for (const double seconds :
       {speed.encode, speed.encode_with_residual, speed.decode_add, speed.zstd_encode, speed.zstd_decode}) {
    line += Cell(PerSecond(seconds) / 1e6, kWide, 0);
  }
  line += Cell(speed.encode / speed.zstd_encode, kWide, 2) +
          Cell(speed.encode_with_residual / speed.zstd_encode, 6, 2) + Cell(speed.decode_add / speed.zstd_decode, 6, 2);
  std::printf("%s\n", line.c_str());
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--json") {
      options->json = argv[i + 1];
    } else if (name != "--repetitions" || !absl::SimpleAtoi(argv[i + 1], &options->repetitions) ||
               options->repetitions < 1) {
      return false;
    }
  }
  return argc % 2 == 1;
}

int Run(const Options& options) {
  std::printf("kernels: %s; one block of %zu values in cache; million values a second\n", BestQuantizerKernels().name,
              static_cast<std::size_t>(kBlockValues));
  nlohmann::json all = nlohmann::json::array();
  for (const Data& data : MakeData()) {
    std::printf("\n%-24s%8s%9s%9s%9s%9s%9s%9s   time in units of zstd's\n", data.name.c_str(), "bits", "SNR dB",
                "encode", "+residual", "decode", "zstd enc", "zstd dec");
    for (const Arm& arm : MakeArms(data.values)) {
      const Speed speed = Measure(arm, options.repetitions);
      Print(arm, speed);
      all.push_back(ToJson(data.name, arm, speed));
    }
  }
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << all.dump(1) << "\n";
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "bench_codec: cannot write %s\n", options.json.c_str());
  return 1;
}

}  // namespace
}  // namespace autoloco::bench

int main(int argc, char** argv) {
  autoloco::bench::Options options;
  if (!autoloco::bench::Parse(argc, argv, &options)) {
    std::fprintf(stderr, "Usage: bench_codec [--json FILE] [--repetitions N]\n");
    return 2;
  }
  return autoloco::bench::Run(options);
}
