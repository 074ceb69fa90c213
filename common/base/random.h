// Random numbers without state: a pure function of (seed, stream, counter), the same on every machine, in any order,
// from any thread. A restart or another number of threads cannot change what is drawn.
#ifndef AUTOLOCO_COMMON_BASE_RANDOM_H_
#define AUTOLOCO_COMMON_BASE_RANDOM_H_

#include <cstdint>
#include <utility>

namespace autoloco {

// 64 random bits. For one (seed, stream) the counters 0, 1, ... give the sequence of SplitMix64 (Steele, Lea, Flood
// 2014) that starts from a state hashed out of both. Part of the run's reproducibility: golden values in the tests.
std::uint64_t Mix(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter);

// One stream of random numbers, addressed by counter. Immutable; thread-safe.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream);

  // 64 uniform bits; equals Mix(seed, stream, counter).
  std::uint64_t Bits(std::uint64_t counter) const;
  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform(std::uint64_t counter) const;
  // Two independent N(0, 1) values, by Box and Muller in fp64 from the bits of counters 2 pair and 2 pair + 1. Equal
  // on machines with one libm; other libms may differ in the last bit. |value| < 8.6.
  std::pair<double, double> NormalPair(std::uint64_t pair) const;
  // Value `index` of the sequence that the pairs 0, 1, ... make.
  double Normal(std::uint64_t index) const;

 private:
  std::uint64_t state_;
};

// A seeded bijection of [0, n), computed entry by entry without a table: a Feistel network of 6 rounds over the next
// even number of bits, walked until the value falls below n (fewer than 4 steps on average). Immutable; thread-safe.
class Permutation {
 public:
  // REQUIRES: 1 <= n <= 2^62.
  Permutation(std::uint64_t n, std::uint64_t seed);

  // Where `index` goes. REQUIRES: index < n().
  std::uint64_t At(std::uint64_t index) const;
  std::uint64_t n() const { return n_; }

 private:
  static constexpr int kRounds = 6;
  std::uint64_t Encrypt(std::uint64_t value) const;

  std::uint64_t n_;
  int half_bits_;
  std::uint64_t keys_[kRounds];
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_RANDOM_H_
