#include "common/base/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "common/base/check.h"

namespace autoloco {
namespace {

constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15u;  // SplitMix64's increment: 2^64 / golden ratio, odd

// SplitMix64's output function.
std::uint64_t Scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t Mix(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return RandomStream(seed, stream).Bits(counter);
}

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t stream)
    : state_(Scramble(Scramble(seed + kGamma) ^ Scramble(stream + 2 * kGamma))) {
  state_ = Scramble(state_ + kGamma);  // (a, b) and (b, a) differ by the gammas, near seeds by the scrambling
}

std::uint64_t RandomStream::Bits(std::uint64_t counter) const { return Scramble(state_ + (counter + 1) * kGamma); }

double RandomStream::Uniform(std::uint64_t counter) const {
  return static_cast<double>(Bits(counter) >> 11) * 0x1.0p-53;
}

std::pair<double, double> RandomStream::NormalPair(std::uint64_t pair) const {
  const double u = static_cast<double>((Bits(2 * pair) >> 11) + 1) * 0x1.0p-53;  // in (0, 1]: log is finite
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * Uniform(2 * pair + 1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double RandomStream::Normal(std::uint64_t index) const {
  const auto [even, odd] = NormalPair(index / 2);
  return index % 2 == 0 ? even : odd;
}

Permutation::Permutation(std::uint64_t n, std::uint64_t seed) : n_(n) {
  AUTOLOCO_CHECK(n >= 1);
  AUTOLOCO_CHECK(n <= std::uint64_t{1} << 62);
  half_bits_ = std::max(1, static_cast<int>((std::bit_width(n - 1) + 1) / 2));
  for (int round = 0; round < kRounds; ++round) keys_[round] = Mix(seed, n, static_cast<std::uint64_t>(round));
}

std::uint64_t Permutation::At(std::uint64_t index) const {
  AUTOLOCO_CHECK(index < n_);
  std::uint64_t value = Encrypt(index);
  while (value >= n_) value = Encrypt(value);  // ends: the cycle of `index` contains `index`, which is below n
  return value;
}

std::uint64_t Permutation::Encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (Scramble(right * kGamma + key) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

}  // namespace autoloco
