// The entropy coder: one zstd frame over the coded bytes of a block.
#ifndef AUTOLOCO_COMMON_CODEC_ZSTD_FRAME_H_
#define AUTOLOCO_COMMON_CODEC_ZSTD_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/codec/codec.h"

namespace autoloco {

// One zstd frame over coded bytes. Keeps a context; not thread-safe.
class FrameCompressor {
 public:
  explicit FrameCompressor(const Coding& coding);
  ~FrameCompressor();
  FrameCompressor(const FrameCompressor&) = delete;
  FrameCompressor& operator=(const FrameCompressor&) = delete;

  // Bytes written to `frame`, which has room for `capacity`; 0 where the frame would not fit.
  std::size_t Compress(std::span<const std::uint8_t> coded, std::byte* frame, std::size_t capacity);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class FrameDecompressor {
 public:
  FrameDecompressor();
  ~FrameDecompressor();
  FrameDecompressor(const FrameDecompressor&) = delete;
  FrameDecompressor& operator=(const FrameDecompressor&) = delete;

  // Fills `coded` exactly. INVALID_ARGUMENT: `frame` is not one plain zstd frame of that many bytes. Takes no memory,
  // whatever the frame claims.
  absl::Status Decompress(std::span<const std::byte> frame, std::uint64_t index, std::span<std::uint8_t> coded);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_ZSTD_FRAME_H_
