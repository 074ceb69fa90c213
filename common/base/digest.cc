#include "common/base/digest.h"

#include <bit>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#define XXH_STATIC_LINKING_ONLY  // XXH3_state_t by value
#include "xxhash.h"
#ifdef __x86_64__
#include "xxh_x86dispatch.h"  // the same functions for the processor at hand, up to three times as fast
#endif

namespace autoloco {
namespace {

static_assert(std::endian::native == std::endian::little, "digests are over little-endian values");

std::string ToHex(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  const auto* text = reinterpret_cast<const char*>(canonical.digest);
  return absl::BytesToHexString(absl::string_view(text, sizeof(canonical.digest)));
}

}  // namespace

std::uint64_t Hash64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t Hash64(std::span<const float> values) { return Hash64(std::as_bytes(values)); }

std::uint64_t Hash64(std::span<const std::byte> first, std::span<const std::byte> second) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, first.data(), first.size());
  XXH3_64bits_update(&state, second.data(), second.size());
  return XXH3_64bits_digest(&state);
}

std::string Digest128(std::span<const std::byte> bytes) { return ToHex(XXH3_128bits(bytes.data(), bytes.size())); }

std::string Digest128(std::span<const float> values) { return Digest128(std::as_bytes(values)); }

struct Digest128Stream::State {
  XXH3_state_t xxh;
};

Digest128Stream::Digest128Stream() : state_(std::make_unique<State>()) {
  AUTOLOCO_CHECK(XXH3_128bits_reset(&state_->xxh) == XXH_OK);
}

Digest128Stream::~Digest128Stream() = default;

void Digest128Stream::Update(std::span<const std::byte> bytes) {
  AUTOLOCO_CHECK(XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

std::string Digest128Stream::Finish() const { return ToHex(XXH3_128bits_digest(&state_->xxh)); }

}  // namespace autoloco
