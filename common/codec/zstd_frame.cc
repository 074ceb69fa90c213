#include "common/codec/zstd_frame.h"

#include <bit>

#include "common/base/check.h"
#include "common/codec/block_format.h"
#include "zstd.h"

namespace autoloco {
namespace {

// Byte 4 of a frame, without the two bits that say how long the content size is: one segment (the window is the
// content), no checksum, no dictionary.
constexpr std::size_t kDescriptorByte = 4;
constexpr unsigned kDescriptorMask = 0x3F;
constexpr unsigned kPlainDescriptor = 0x20;

void Set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  AUTOLOCO_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0);
}

// Symbols of a quantizer resemble nothing before them: what zstd finds in looking for repeats costs more than it saves.
// The smallest table and the longest shortest match leave nearly pure Huffman coding. (Debian's zstd 1.5.4 on Gaussian
// values, step 1.5: 1.606 bits a value instead of 1.69 with plain level 1, at nearly three times the speed.)
void SetForSymbols(ZSTD_CCtx* context, std::size_t coded_bytes_max) {
  Set(context, ZSTD_c_strategy, ZSTD_fast);
  Set(context, ZSTD_c_minMatch, 7);
  Set(context, ZSTD_c_hashLog, 6);
  Set(context, ZSTD_c_windowLog, static_cast<int>(std::bit_width(coded_bytes_max - 1)));
}

}  // namespace

struct FrameCompressor::State {
  ZSTD_CCtx* context;
};

FrameCompressor::FrameCompressor(const Coding& coding) : state_(std::make_unique<State>()) {
  state_->context = ZSTD_createCCtx();
  AUTOLOCO_CHECK(state_->context != nullptr);
  // zstd clamps the level to what it knows. The content size is in every frame: ZSTD_compress2 knows it.
  Set(state_->context, ZSTD_c_compressionLevel, coding.zstd_level);
  Set(state_->context, ZSTD_c_contentSizeFlag, 1);
  Set(state_->context, ZSTD_c_checksumFlag, 0);
  if (IsQuantized(coding.codec) && coding.zstd_level <= 1) {
    SetForSymbols(state_->context, CodedBytes(coding.codec, kBlockValues));
  }
}

FrameCompressor::~FrameCompressor() { ZSTD_freeCCtx(state_->context); }

std::size_t FrameCompressor::Compress(std::span<const std::uint8_t> coded, std::byte* frame, std::size_t capacity) {
  const std::size_t bytes = ZSTD_compress2(state_->context, frame, capacity, coded.data(), coded.size());
  return ZSTD_isError(bytes) != 0 ? 0 : bytes;
}

struct FrameDecompressor::State {
  ZSTD_DCtx* context;
};

FrameDecompressor::FrameDecompressor() : state_(std::make_unique<State>()) {
  state_->context = ZSTD_createDCtx();
  AUTOLOCO_CHECK(state_->context != nullptr);
}

FrameDecompressor::~FrameDecompressor() { ZSTD_freeDCtx(state_->context); }

absl::Status FrameDecompressor::Decompress(std::span<const std::byte> frame, std::uint64_t index,
                                           std::span<std::uint8_t> coded) {
  // The frame must be one, whole, and own up to the size that the layout says. It is decoded straight into a buffer of
  // that size: its window takes no memory.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != coded.size()) {
    return RefuseBlock(index, "the zstd frame does not declare ", coded.size(), " bytes");
  }
  if (frame.size() <= kDescriptorByte ||
      (static_cast<unsigned>(frame[kDescriptorByte]) & kDescriptorMask) != kPlainDescriptor) {
    return RefuseBlock(index, "the zstd frame is not of one segment without checksum and dictionary");
  }
  if (ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return RefuseBlock(index, "the body is not exactly one zstd frame");
  }
  const std::size_t got = ZSTD_decompressDCtx(state_->context, coded.data(), coded.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) != 0) return RefuseBlock(index, "zstd: ", ZSTD_getErrorName(got));
  if (got != coded.size()) return RefuseBlock(index, "want ", coded.size(), " bytes from zstd, got ", got);
  return absl::OkStatus();
}

}  // namespace autoloco
