// XXH3 digests as the protocol writes them.
#ifndef AUTOLOCO_COMMON_BASE_DIGEST_H_
#define AUTOLOCO_COMMON_BASE_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace autoloco {

// XXH3-64, seed 0.
std::uint64_t Hash64(std::span<const std::byte> bytes);
std::uint64_t Hash64(std::span<const float> values);  // over their little-endian bytes
// The same over `first` and `second`, one after the other.
std::uint64_t Hash64(std::span<const std::byte> first, std::span<const std::byte> second);

// XXH3-128, seed 0, as 32 lower-case hexadecimal digits (the canonical, big-endian form).
std::string Digest128(std::span<const std::byte> bytes);
std::string Digest128(std::span<const float> values);  // params_digest

// The same over bytes that come in pieces. Not thread-safe.
class Digest128Stream {
 public:
  Digest128Stream();
  ~Digest128Stream();
  void Update(std::span<const std::byte> bytes);
  std::string Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_DIGEST_H_
