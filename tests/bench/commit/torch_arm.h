// The commit as one would write it with LibTorch: whole-tensor operations on preallocated tensors in huge pages, zstd in
// a small pool. No torch in this header.
#ifndef AUTOLOCO_TESTS_BENCH_COMMIT_TORCH_ARM_H_
#define AUTOLOCO_TESTS_BENCH_COMMIT_TORCH_ARM_H_

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/parallel.h"
#include "common/codec/codec.h"
#include "server/kernels/outer_step.h"
#include "tests/bench/commit/problem.h"

namespace autoloco::bench {

class TorchArm {
 public:
  enum class Decoder {
    kTorch,  // zstd into uint8 in the pool; & 15, >> 4, sub_, mul_, add_ over whole tensors
    kOurs,   // common/codec into the sum, block by block in the pool
  };

  // REQUIRES: payloads of whole blocks under Codec::kRms4; equal weights. Borrows payloads and pool. Sets the number of
  // LibTorch's threads to the pool's.
  TorchArm(const Payloads& payloads, std::uint64_t value_count, const Coding& coding,
           const server::OuterCoefficients& coefficients, WorkPool* pool);
  ~TorchArm();

  // One commit: mean of the deltas, fused SGD-Nesterov, difference to the view, quantized, packed and compressed, view
  // updated. Checksums are neither checked nor made, and there are no statistics and no digests.
  void Run(Decoder decoder);

  std::span<const float> params() const;
  std::span<const float> view() const;
  std::uint64_t broadcast_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_COMMIT_TORCH_ARM_H_
