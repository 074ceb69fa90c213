// The fused commit against the plain one, bit for bit and byte for byte: every instruction set, tail, alignment, codec
// both ways, number of workers and of threads, several rounds in a row.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "gtest/gtest.h"
#include "server/kernels/commit.h"
#include "server/kernels/commit_reference.h"
#include "server/kernels/step_kernels.h"
#include "server/kernels/step_reference.h"

namespace autoloco::server {
namespace {

std::vector<float> Draw(std::size_t count, std::uint64_t stream, double scale) {
  const RandomStream random(29, stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * random.Normal(i));
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// ------------------------------------------------------------------------------------------------ the step's kernels

struct Stepped {
  std::vector<float> sum;
  std::vector<float> momentum;
  std::vector<float> params;
  StepSums sums;
};

Stepped Apply(const StepKernels& kernels, StepForm form, bool view, std::size_t count, std::size_t shift) {
  Stepped made = {Draw(count + shift, 1, 0.01), Draw(count + shift, 2, 0.01), Draw(count + shift, 3, 1), {}};
  const std::vector<float> held = Draw(count + shift, 4, 1);
  const StepScalars scalars = {form, 1.0F / 3, 0.7F, 0.9F, 2.3F, 0.7F, 0.81F, 0.93F};
  made.sums = kernels.Apply(scalars, {made.sum.data() + shift, made.momentum.data() + shift, made.params.data() + shift,
                                      view ? held.data() + shift : nullptr, count});
  return made;
}

TEST(CommitPropertyTest, EveryKernelSetEqualsThePlainLoopsOnEveryTailAndAlignment) {
  const auto same = [](double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); };
  for (const StepKernels* kernels : AllStepKernels()) {
    SCOPED_TRACE(kernels->name);
    for (std::size_t count = 0; count <= 3 * kStatisticLanes + 1; ++count) {
      for (const StepForm form : {StepForm::kNesterov, StepForm::kMomentum, StepForm::kCorrected}) {
        for (const bool view : {false, true}) {
          const std::size_t shift = count % 5;
          const Stepped got = Apply(*kernels, form, view, count, shift);
          const Stepped want = Apply(ReferenceStepKernels(), form, view, count, shift);
          ASSERT_TRUE(SameBits(got.params, want.params)) << count;
          ASSERT_TRUE(SameBits(got.momentum, want.momentum)) << count;
          ASSERT_TRUE(SameBits(got.sum, want.sum)) << count;
          ASSERT_TRUE(same(got.sums.mean, want.sums.mean)) << count;
          ASSERT_TRUE(same(got.sums.momentum, want.sums.momentum)) << count;
          ASSERT_TRUE(same(got.sums.params, want.sums.params)) << count;
        }
      }
      std::vector<float> got = Draw(count, 5, 1);
      std::vector<float> want = got;
      kernels->scale(0.3F, got.data(), count);
      ReferenceStepKernels().scale(0.3F, want.data(), count);
      ASSERT_TRUE(SameBits(got, want)) << count;
    }
  }
}

TEST(CommitPropertyTest, EveryKernelSetRemovesTheSameEcho) {
  for (const StepKernels* kernels : AllStepKernels()) {
    SCOPED_TRACE(kernels->name);
    for (const std::size_t count : {0u, 1u, 15u, 16u, 33u, 4095u, 4096u, 4097u, 9000u}) {
      const std::size_t shift = count % 5;
      std::vector<float> params = Draw(count + shift, 3, 1);
      std::vector<float> view = Draw(count + shift, 4, 0.05);
      std::vector<float> got = Draw(count + shift, 1, 0.01);
      for (std::size_t i = 0; i < view.size(); ++i) {
        got[i] += 0.3F * view[i];
        view[i] += params[i];
      }
      std::vector<float> want = got;
      kernels->remove_echo(1.0F / 3, {got.data() + shift, nullptr, params.data() + shift, view.data() + shift, count});
      ReferenceStepKernels().remove_echo(
          1.0F / 3, {want.data() + shift, nullptr, params.data() + shift, view.data() + shift, count});
      ASSERT_TRUE(SameBits(got, want)) << count;
    }
  }
}

// ------------------------------------------------------------------------------------------------ the whole commit

const std::vector<Coding> kCodings = {{.codec = Codec::kFp32},
                                      {.codec = Codec::kBf16},
                                      {.codec = Codec::kInt8},
                                      {.codec = Codec::kRms8, .step = 0.5},
                                      {.codec = Codec::kRms4, .step = 1.5},
                                      {.codec = Codec::kTernary, .step = 2.5}};

struct State {
  State(std::size_t count, bool lossy) : params(Draw(count, 0, 1)), momentum(count), view(params) {
    if (!lossy) view.clear();
  }
  CommitBuffers buffers() { return {params, momentum, view}; }

  std::vector<float> params;
  std::vector<float> momentum;
  std::vector<float> view;
};

// The deltas of one round, encoded. Equal or unequal weights.
struct RoundOfDeltas {
  RoundOfDeltas(std::size_t count, std::size_t workers, const Coding& coding, bool uniform, std::uint64_t round) {
    for (std::size_t w = 0; w < workers; ++w) {
      payloads.push_back(EncodeVector(Draw(count, 100 * round + w, 0.01), coding, nullptr).value());
    }
    const double total = static_cast<double>(workers * (workers + 1)) / 2;
    for (std::size_t w = 0; w < workers; ++w) {
      const double weight = uniform ? 1.0 / static_cast<double>(workers) : static_cast<double>(w + 1) / total;
      contributions.push_back({std::as_bytes(std::span<const char>(payloads[w])), coding.codec, weight});
    }
  }
  std::vector<std::string> payloads;
  std::vector<Contribution> contributions;
};

void ExpectSame(const CommitResult& got, const CommitResult& want) {
  EXPECT_EQ(got.blocks, want.blocks);
  EXPECT_EQ(got.params_digest, want.params_digest);
  EXPECT_EQ(got.view_digest, want.view_digest);
  EXPECT_EQ(got.coding.bytes, want.coding.bytes);
  EXPECT_EQ(got.coding.squared_error, want.coding.squared_error);
  EXPECT_EQ(got.statistics.finite, want.statistics.finite);
  for (std::size_t i = 0; i < want.statistics.delta_squared_norms.size(); ++i) {
    const double norm = want.statistics.delta_squared_norms[i];
    EXPECT_NEAR(got.statistics.delta_squared_norms[i], norm, 1e-6 * norm) << i;  // q^2 u^2 or (q u)^2, rounded
  }
  const double mean = want.statistics.mean_delta_squared_norm;
  EXPECT_NEAR(got.statistics.mean_delta_squared_norm, mean, 1e-9 * mean);
}

void Compare(std::size_t count, std::size_t workers, const Coding& up, const Coding& down, bool uniform,
             WorkPool* pool) {
  State got(count, !IsLossless(down.codec));
  State want = got;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const RoundOfDeltas deltas(count, workers, up, uniform, round);
    const CommitInputs inputs = {deltas.contributions, {0.7, 0.9, true}, down};
    const auto fused = Commit(inputs, got.buffers(), pool);
    const auto plain = CommitReference(inputs, want.buffers());
    ASSERT_TRUE(fused.ok()) << fused.status();
    ASSERT_TRUE(plain.ok()) << plain.status();
    ASSERT_TRUE(SameBits(got.params, want.params));
    ASSERT_TRUE(SameBits(got.momentum, want.momentum));
    ASSERT_TRUE(SameBits(got.view, want.view));
    ExpectSame(*fused, *plain);
  }
}

TEST(CommitPropertyTest, EqualsTheReferenceForEveryPairOfCodecs) {
  WorkPool pool(2);
  for (const Coding& up : kCodings) {
    for (const Coding& down : kCodings) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(up.codec) << " up, " << static_cast<int>(down.codec) << " down");
      Compare(2 * 1003, 3, up, down, true, &pool);
      Compare(2 * 1003, 2, up, down, false, &pool);
    }
  }
}

TEST(CommitPropertyTest, EqualsTheReferenceOnEveryTail) {
  WorkPool pool(3);
  const Coding coding = kCodings[4];
  for (const std::size_t count : {1U, 2U, 7U, 33U, 65535U, 65536U, 65537U, 150001U}) {
    Compare(count, 1 + count % 4, coding, coding, count % 2 == 0, &pool);
  }
}

TEST(CommitPropertyTest, DoesNotDependOnThreads) {
  const std::size_t count = 700001;
  const Coding coding = kCodings[4];
  const RoundOfDeltas deltas(count, 5, coding, false, 1);
  State first(count, true);
  CommitResult want;
  for (std::size_t threads = 1; threads <= 4; ++threads) {
    WorkPool pool(threads);
    State state(count, true);
    CommitResult got = Commit({deltas.contributions, {}, coding}, state.buffers(), &pool).value();
    if (threads == 1) {
      want = got;
      first = state;
    }
    EXPECT_TRUE(SameBits(state.params, first.params)) << threads;
    EXPECT_TRUE(SameBits(state.view, first.view)) << threads;
    EXPECT_EQ(got.blocks, want.blocks) << threads;
    EXPECT_EQ(got.view_digest, want.view_digest);
    EXPECT_EQ(got.statistics.delta_squared_norms, want.statistics.delta_squared_norms);  // to the last bit
    EXPECT_EQ(got.statistics.params_squared_norm, want.statistics.params_squared_norm);
    EXPECT_EQ(got.statistics.momentum_squared_norm, want.statistics.momentum_squared_norm);
    EXPECT_EQ(got.coding.squared_signal, want.coding.squared_signal);
  }
}

}  // namespace
}  // namespace autoloco::server
