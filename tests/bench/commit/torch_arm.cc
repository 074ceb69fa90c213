#include "tests/bench/commit/torch_arm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/codec/block_format.h"
#include "common/codec/delta_codec.h"
#include "common/codec/zstd_frame.h"

namespace autoloco::bench {
namespace {

constexpr std::int64_t kBlock = kBlockValues;
constexpr std::int64_t kHalf = kBlock / 2;  // bytes of packed symbols, and values in one of their two planes
constexpr std::int64_t kRange = kRangePositions;
constexpr std::int64_t kHalfRanges = kHalf / kRange;
constexpr float kSymbolMax = 7;
constexpr float kSymbolOffset = 8;

at::Tensor Floats(FlatBuffer* buffer, std::int64_t blocks) {
  return at::from_blob(buffer->values().data(), {blocks, kBlock}, at::kFloat);
}

// Memory of huge pages as bytes.
at::Tensor Bytes(FlatBuffer* buffer, std::int64_t blocks) {
  return at::from_blob(buffer->values().data(), {blocks, kHalf}, at::kByte);
}

}  // namespace

struct TorchArm::State {
  State(const Payloads& round, std::uint64_t value_count, const Coding& how, const server::OuterCoefficients& outer,
        WorkPool* threads)
      : payloads(round),
        coding(how),
        coefficients(outer),
        pool(threads),
        blocks(static_cast<std::int64_t>(BlockCount(value_count))),
        run(value_count),
        sum_memory(AllocateOrDie(value_count)),
        half_memory(AllocateOrDie(value_count / 2)),
        packed_memory(AllocateOrDie(value_count / 8)),
        symbols_memory(AllocateOrDie(value_count / 8)),
        difference_memory(AllocateOrDie(value_count)),
        params(Floats(&run.params, blocks)),
        momentum(Floats(&run.momentum, blocks)),
        view(Floats(&run.view, blocks)),
        sum(Floats(&sum_memory, blocks)),
        half(at::from_blob(half_memory.values().data(), {blocks, kHalf}, at::kFloat)),
        half_ranges(half.view({blocks * kHalfRanges, kRange})),
        packed(Bytes(&packed_memory, blocks)),
        symbols(Bytes(&symbols_memory, blocks)),
        difference(Floats(&difference_memory, blocks)),
        low_units(at::empty({blocks * kHalfRanges, 1}, at::kFloat)),
        high_units(at::empty({blocks * kHalfRanges, 1}, at::kFloat)),
        decoders(pool->thread_count()),
        decompressors(pool->thread_count()),
        broadcast(blocks) {
    for (std::size_t slot = 0; slot < pool->thread_count(); ++slot) compressors.emplace_back(how);
    for (std::size_t worker = 0; worker < payloads.count(); ++worker) {
      offsets.push_back(IndexBlocks(payloads.payload(worker), value_count, how.codec).value());
    }
  }

  std::span<const std::byte> BlockOf(std::size_t worker, std::size_t block) const {
    const std::uint64_t begin = offsets[worker][block];
    return payloads.payload(worker).subspan(begin, offsets[worker][block + 1] - begin);
  }

  // One block's zstd frame or raw body into its row of `packed`, its units times 1/n into those of the two planes.
  void Unpack(std::size_t worker, std::size_t block, std::size_t slot) {
    const std::span<const std::byte> bytes = BlockOf(worker, block);
    const std::span<const std::byte> frame = bytes.subspan(kBlockHeaderBytes + PrefixBytes(coding.codec, kBlockValues));
    float units[2][kHalfRanges];
    static_assert(sizeof(units) == UnitCount(Packing::kNibble, kBlockValues) * kUnitBytes);
    std::memcpy(units, bytes.data() + kBlockHeaderBytes, sizeof(units));
    for (std::int64_t range = 0; range < kHalfRanges; ++range) {
      const std::int64_t row = static_cast<std::int64_t>(block) * kHalfRanges + range;
      low_units.data_ptr<float>()[row] = units[0][range] / static_cast<float>(payloads.count());
      high_units.data_ptr<float>()[row] = units[1][range] / static_cast<float>(payloads.count());
    }
    std::uint8_t* const row = packed.data_ptr<std::uint8_t>() + block * kHalf;
    if (ReadHeader(bytes.data()).stored == kStoredRaw) {
      std::memcpy(row, frame.data(), kHalf);
      return;
    }
    AUTOLOCO_CHECK(decompressors[slot].Decompress(frame, block, {row, static_cast<std::size_t>(kHalf)}).ok());
  }

  void DecodeWithTorch() {
    sum.zero_();
    for (std::size_t worker = 0; worker < payloads.count(); ++worker) {
      pool->ParallelFor(blocks, [&](std::size_t block, std::size_t slot) { Unpack(worker, block, slot); });
      at::Tensor low = sum.slice(1, 0, kHalf);
      at::Tensor high = sum.slice(1, kHalf, kBlock);
      at::bitwise_and_out(symbols, packed, 15);
      half.copy_(symbols);
      half_ranges.sub_(kSymbolOffset).mul_(low_units);
      low.add_(half);
      at::bitwise_right_shift_out(symbols, packed, 4);
      half.copy_(symbols);
      half_ranges.sub_(kSymbolOffset).mul_(high_units);
      high.add_(half);
    }
  }

  void DecodeWithOurs() {
    const float weight = 1.0F / static_cast<float>(payloads.count());
    pool->ParallelFor(blocks, [&](std::size_t block, std::size_t slot) {
      const std::span<float> row(sum.data_ptr<float>() + block * kBlock, kBlockValues);
      std::memset(row.data(), 0, row.size_bytes());
      for (std::size_t worker = 0; worker < payloads.count(); ++worker) {
        AUTOLOCO_CHECK(
            decoders[slot]
                .DecodeAdd(BlockOf(worker, block), coding.codec, static_cast<std::uint32_t>(block), weight, row)
                .ok());
      }
    });
  }

  // What the workers bring back of view - params, by least squares for each range (server/kernels/commit.h).
  void RemoveEcho() {
    at::sub_out(difference, view, params);
    const at::Tensor means = sum.view({-1, kRange});
    const at::Tensor errors = difference.view({-1, kRange});
    const at::Tensor factors = at::linalg_vecdot(means, errors).div_(at::linalg_vecdot(errors, errors));
    means.addcmul_(errors, factors.nan_to_num_(0).clamp_(0, 1).unsqueeze_(1), -1);
  }

  void Step() {
    at::_fused_sgd_({params}, {sum}, {momentum}, /*weight_decay=*/0, coefficients.momentum, coefficients.learning_rate,
                    /*dampening=*/0, coefficients.nesterov, /*maximize=*/false, /*is_first_step=*/false);
  }

  // Afterwards every row of `packed` holds the block's symbols.
  void Broadcast() {
    at::sub_out(difference, params, view);
    at::Tensor ranges = difference.view({-1, kRange});
    at::Tensor unit = at::linalg_vector_norm(ranges, 2, 1, /*keepdim=*/true).mul_(coding.step / std::sqrt(kRange));
    ranges.mul_(unit.reciprocal()).clamp_(-kSymbolMax, kSymbolMax).round_();
    view.view({-1, kRange}).addcmul_(ranges, unit);
    difference.add_(kSymbolOffset);
    packed.copy_(difference.slice(1, kHalf, kBlock));
    packed.mul_(16);
    symbols.copy_(difference.slice(1, 0, kHalf));
    packed.add_(symbols);
    pool->ParallelFor(blocks, [&](std::size_t block, std::size_t slot) {
      std::string& frame = broadcast[block];
      frame.resize(kHalf);
      const std::uint8_t* const row = packed.data_ptr<std::uint8_t>() + block * kHalf;
      const std::size_t size = compressors[slot].Compress({row, static_cast<std::size_t>(kHalf)},
                                                          reinterpret_cast<std::byte*>(frame.data()), frame.size());
      frame.resize(size == 0 ? kHalf : size);
    });
  }

  const Payloads& payloads;
  const Coding coding;
  const server::OuterCoefficients coefficients;
  WorkPool* const pool;
  const std::int64_t blocks;
  RunState run;
  FlatBuffer sum_memory;
  FlatBuffer half_memory;
  FlatBuffer packed_memory;
  FlatBuffer symbols_memory;
  FlatBuffer difference_memory;
  at::Tensor params;
  at::Tensor momentum;
  at::Tensor view;
  at::Tensor sum;
  at::Tensor half;
  at::Tensor half_ranges;  // the same memory, a range a row
  at::Tensor packed;
  at::Tensor symbols;
  at::Tensor difference;
  at::Tensor low_units;
  at::Tensor high_units;
  std::vector<std::vector<std::uint64_t>> offsets;
  std::vector<BlockDecoder> decoders;
  std::vector<FrameDecompressor> decompressors;
  std::deque<FrameCompressor> compressors;
  std::vector<std::string> broadcast;
};

TorchArm::TorchArm(const Payloads& payloads, std::uint64_t value_count, const Coding& coding,
                   const server::OuterCoefficients& coefficients, WorkPool* pool) {
  AUTOLOCO_CHECK(coding.codec == Codec::kRms4);
  AUTOLOCO_CHECK(value_count % kBlockValues == 0);
  at::set_num_threads(static_cast<int>(pool->thread_count()));
  state_ = std::make_unique<State>(payloads, value_count, coding, coefficients, pool);
}

TorchArm::~TorchArm() = default;

void TorchArm::Run(Decoder decoder) {
  if (decoder == Decoder::kTorch) {
    state_->DecodeWithTorch();
  } else {
    state_->DecodeWithOurs();
  }
  state_->RemoveEcho();
  state_->Step();
  state_->Broadcast();
}

std::span<const float> TorchArm::params() const { return std::as_const(state_->run.params).values(); }
std::span<const float> TorchArm::view() const { return std::as_const(state_->run.view).values(); }

std::uint64_t TorchArm::broadcast_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::string& frame : state_->broadcast) bytes += frame.size();
  return bytes;
}

}  // namespace autoloco::bench
