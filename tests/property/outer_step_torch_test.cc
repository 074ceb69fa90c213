// The outer step against LibTorch's own SGD: several rounds of random deltas from 1, 2 and 5 workers, through the codec
// and the kernel on one side, and as the gradient of torch::optim::SGD on the other. The sign is part of it: a delta is
// start minus end, so it is a gradient, and a positive one makes the parameter smaller.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/base/parallel.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "gtest/gtest.h"
#include "server/kernels/outer_step.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kValues = 70001;  // two blocks, the second one short
constexpr int kRounds = 6;
constexpr double kTolerance = 1e-6;

std::vector<float> Draw(std::uint64_t stream, double scale) {
  const RandomStream random(23, stream);
  std::vector<float> values(kValues);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(scale * random.Normal(i));
  return values;
}

// Mean of the deltas in fp64: what the gradient would be without rounding.
torch::Tensor Mean(const std::vector<std::vector<float>>& deltas) {
  torch::Tensor mean = torch::zeros({static_cast<std::int64_t>(kValues)}, torch::kFloat64);
  double* values = mean.data_ptr<double>();
  for (const std::vector<float>& delta : deltas) {
    for (std::size_t i = 0; i < kValues; ++i) values[i] += static_cast<double>(delta[i]);
  }
  return mean / static_cast<double>(deltas.size());
}

double LargestDifference(std::span<const float> values, const torch::Tensor& want) {
  const double* wanted = want.data_ptr<double>();
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - wanted[i]);
    if (!(difference <= largest)) largest = difference;  // a NaN stays
  }
  return largest;
}

struct Case {
  std::size_t workers;
  OuterCoefficients coefficients;
};

// kRounds rounds on both sides from the same start; the largest difference after each is within the tolerance.
void Compare(const Case& wanted) {
  WorkPool pool(1);
  const OuterCoefficients& outer = wanted.coefficients;
  std::vector<float> params = Draw(0, 0.1);
  const std::vector<float> start = params;
  std::vector<float> momentum(kValues, 0.0f);

  torch::Tensor theta = torch::tensor(params).to(torch::kFloat64);
  theta.mutable_grad() = torch::zeros_like(theta);
  torch::optim::SGD sgd(
      std::vector<torch::Tensor>{theta},
      torch::optim::SGDOptions(outer.learning_rate).momentum(outer.momentum).nesterov(outer.nesterov));

  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::vector<float>> deltas;
    std::vector<std::string> payloads;
    for (std::size_t worker = 0; worker < wanted.workers; ++worker) {
      deltas.push_back(Draw(1 + 100 * static_cast<std::uint64_t>(round) + worker, 0.01));
      payloads.push_back(EncodeVector(deltas.back(), Codec::kFp32, 1));
    }
    std::vector<Contribution> contributions;
    for (const std::string& payload : payloads) {
      contributions.push_back({.payload = std::as_bytes(std::span<const char>(payload)),
                               .codec = Codec::kFp32,
                               .weight = 1.0 / static_cast<double>(wanted.workers)});
    }
    ASSERT_TRUE(ApplyOuterStep(contributions, outer, params, momentum, &pool).ok());
    theta.mutable_grad() = Mean(deltas);
    sgd.step();
    ASSERT_LE(LargestDifference(params, theta.detach()), kTolerance)
        << wanted.workers << " workers, round " << round << ", momentum " << outer.momentum << ", nesterov "
        << outer.nesterov;
  }
  // The comparison would also hold between two that stand still.
  ASSERT_GT(LargestDifference(start, theta.detach()), 0.01);
}

TEST(OuterStepTorchTest, EqualsNesterovSgd) {
  for (const std::size_t workers : {1u, 2u, 5u}) Compare({workers, {.learning_rate = 0.7, .momentum = 0.9}});
}

TEST(OuterStepTorchTest, EqualsMomentumSgd) {
  for (const std::size_t workers : {1u, 2u, 5u}) {
    Compare({workers, {.learning_rate = 0.5, .momentum = 0.8, .nesterov = false}});
  }
}

TEST(OuterStepTorchTest, EqualsPlainSgd) {
  for (const std::size_t workers : {1u, 2u, 5u}) {
    Compare({workers, {.learning_rate = 1, .momentum = 0, .nesterov = false}});
  }
}

TEST(OuterStepTorchTest, APositiveDeltaMakesTheParameterSmaller) {
  WorkPool pool(1);
  std::vector<float> params(3, 1.0f);
  std::vector<float> momentum(3, 0.0f);
  const std::vector<float> delta = {0.5f, 0.0f, -0.5f};
  const std::string payload = EncodeVector(delta, Codec::kFp32, 1);
  const Contribution contribution{std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 1.0};
  ASSERT_TRUE(ApplyOuterStep({&contribution, 1}, {.learning_rate = 1, .momentum = 0}, params, momentum, &pool).ok());

  torch::Tensor theta = torch::ones({3});
  theta.mutable_grad() = torch::tensor(delta);
  torch::optim::SGD(std::vector<torch::Tensor>{theta}, torch::optim::SGDOptions(1)).step();
  const float* wanted = theta.data_ptr<float>();
  EXPECT_EQ(params, std::vector<float>(wanted, wanted + 3));
  EXPECT_EQ(params, (std::vector<float>{0.5f, 1.0f, 1.5f}));
}

}  // namespace
}  // namespace autoloco::server
