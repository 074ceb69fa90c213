#include <cstring>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/codec/block_format.h"
#include "common/codec/delta_codec.h"
#include "common/codec/zstd_frame.h"
#include "tests/bench/codec/arm.h"
#include "zstd.h"

namespace autoloco::bench {
namespace {

// Everything one arm works on.
struct Work {
  explicit Work(const Coding& to_use) : coding(to_use), encoder(to_use), compressor(to_use) {}
  ~Work() { ZSTD_freeDCtx(context); }

  std::span<const std::byte> Block() const { return std::as_bytes(std::span<const char>(payload)); }

  Coding coding;
  BlockEncoder encoder;
  BlockDecoder decoder;
  FrameCompressor compressor;
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<float> values;
  std::vector<float> residual;
  std::vector<float> next;
  std::vector<float> sum;
  std::string payload;
  std::string scratch;
  std::vector<std::uint8_t> coded;  // the block's bytes before zstd
  std::vector<std::byte> frame;
  std::size_t frame_bytes = 0;
};

// The coded bytes of the encoded block, out of its own frame.
void TakeCodedBytes(Work* work) {
  const std::size_t prefix = kBlockHeaderBytes + PrefixBytes(work->coding.codec, work->values.size());
  const auto stored = work->Block().subspan(prefix);
  const unsigned long long bytes = ZSTD_getFrameContentSize(stored.data(), stored.size());
  AUTOLOCO_CHECK(bytes < (1U << 20));  // every arm's block shrinks
  work->coded.resize(bytes);
  AUTOLOCO_CHECK(ZSTD_decompress(work->coded.data(), bytes, stored.data(), stored.size()) == bytes);
  work->frame.resize(ZSTD_compressBound(bytes));
  work->frame_bytes = work->compressor.Compress(work->coded, work->frame.data(), work->frame.size());
  AUTOLOCO_CHECK(work->frame_bytes == stored.size());  // the same parameters give the same frame
}

}  // namespace

Arm MakeCodecArm(const std::string& name, std::span<const float> values, const Coding& coding) {
  const auto work = std::make_shared<Work>(coding);
  work->values.assign(values.begin(), values.end());
  work->residual.assign(values.size(), 0.0F);
  work->next.assign(values.size(), 0.0F);
  work->sum.assign(values.size(), 0.0F);
  const absl::StatusOr<CodingReport> report =
      work->encoder.EncodeWithResidual(0, work->values, work->residual, work->next, &work->payload);
  AUTOLOCO_CHECK(report.ok());
  work->residual = work->next;  // what a residual looks like
  TakeCodedBytes(work.get());

  Arm arm;
  arm.name = name;
  arm.bits_per_value = report->bits_per_value();
  arm.snr_db = report->snr_db();
  arm.encode = [work] {
    work->scratch.clear();
    AUTOLOCO_CHECK(work->encoder.Encode(0, work->values, &work->scratch).ok());
  };
  arm.encode_with_residual = [work] {
    work->scratch.clear();
    AUTOLOCO_CHECK(work->encoder.EncodeWithResidual(0, work->values, work->residual, work->next, &work->scratch).ok());
  };
  arm.decode_add = [work] {
    AUTOLOCO_CHECK(work->decoder.DecodeAdd(work->Block(), work->coding.codec, 0, 0.125F, work->sum).ok());
  };
  arm.zstd_encode = [work] {
    AUTOLOCO_CHECK(work->compressor.Compress(work->coded, work->frame.data(), work->frame.size()) > 0);
  };
  arm.zstd_decode = [work] {
    AUTOLOCO_CHECK(ZSTD_decompressDCtx(work->context, work->coded.data(), work->coded.size(), work->frame.data(),
                                       work->frame_bytes) == work->coded.size());
  };
  return arm;
}

}  // namespace autoloco::bench
