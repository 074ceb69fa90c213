#include "tests/bench/commit/problem.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"

namespace autoloco::bench {
namespace {

constexpr double kDeltaScale = 1e-3;
constexpr std::size_t kNoiseValues = std::size_t{1} << 22;

// Gaussian values once; every block begins somewhere else in them.
class Noise {
 public:
  Noise() : values_(kNoiseValues) {
    const RandomStream random(17, 1);
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(kDeltaScale * random.Normal(i));
  }
  std::span<const float> Block(std::uint64_t stream, std::size_t size) const {
    const RandomStream random(17, 2);
    const double place = random.Uniform(stream) * static_cast<double>(values_.size() - kBlockValues);
    return std::span<const float>(values_).subspan(static_cast<std::size_t>(place), size);
  }

 private:
  std::vector<float> values_;
};

const Noise& SharedNoise() {
  static const Noise noise;
  return noise;
}

}  // namespace

Payloads::Payloads(std::uint64_t params, std::size_t workers, const Coding& coding, WorkPool* pool) {
  const std::uint64_t block_count = BlockCount(params);
  const Noise& noise = SharedNoise();
  for (std::size_t worker = 0; worker < workers; ++worker) {
    std::vector<std::string> blocks(block_count);
    std::vector<std::unique_ptr<BlockEncoder>> encoders(pool->thread_count());
    pool->ParallelFor(block_count, [&](std::size_t block, std::size_t slot) {
      if (encoders[slot] == nullptr) encoders[slot] = std::make_unique<BlockEncoder>(coding);
      const std::span<const float> values = noise.Block(worker * block_count + block, BlockSize(params, block));
      AUTOLOCO_CHECK(encoders[slot]->Encode(static_cast<std::uint32_t>(block), values, &blocks[block]).ok());
      blocks[block].shrink_to_fit();
    });
    const std::string path = folder_.File(absl::StrCat("payload-", worker));
    std::ofstream file(path, std::ios::binary);
    for (const std::string& block : blocks) file << block;
    file.close();
    AUTOLOCO_CHECK(file.good());
    absl::StatusOr<MemoryMap> map = MemoryMap::Open(path);
    AUTOLOCO_CHECK(map.ok());
    maps_.push_back(*std::move(map));
  }
}

std::uint64_t Payloads::bytes() const {
  std::uint64_t bytes = 0;
  for (const MemoryMap& map : maps_) bytes += map.bytes().size();
  return bytes;
}

FlatBuffer AllocateOrDie(std::uint64_t value_count) {
  absl::StatusOr<FlatBuffer> buffer = FlatBuffer::Allocate(value_count);
  AUTOLOCO_CHECK(buffer.ok());
  return *std::move(buffer);
}

RunState::RunState(std::uint64_t value_count)
    : params(AllocateOrDie(value_count)), momentum(AllocateOrDie(value_count)), view(AllocateOrDie(value_count)) {
  for (std::uint64_t block = 0; block < BlockCount(value_count); ++block) {
    const std::size_t size = BlockSize(value_count, block);
    const std::span<const float> noise = SharedNoise().Block(~block, size);
    const std::size_t begin = block * kBlockValues;
    for (std::size_t i = 0; i < size; ++i) {
      params.values()[begin + i] = 30 * noise[i];
      view.values()[begin + i] = 30 * noise[i] + 0.5F * noise[size - 1 - i];
    }
  }
}

}  // namespace autoloco::bench
