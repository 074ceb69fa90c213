#include "common/codec/delta_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/codec/block_format.h"
#include "common/codec/byte_planes.h"
#include "common/codec/quantizer.h"
#include "common/codec/zstd_frame.h"

namespace autoloco {
namespace {

absl::Status RefuseNotFinite(std::uint32_t index, std::size_t i) {
  return absl::InvalidArgumentError(
      absl::StrCat("block ", index, ": value ", index * kBlockValues + i, " of the vector is not finite"));
}

// Those of one block.
using Units =
    std::array<float, std::max({UnitCount(Packing::kByte, kBlockValues), UnitCount(Packing::kNibble, kBlockValues),
                                UnitCount(Packing::kTernary, kBlockValues)})>;

constexpr std::size_t kTogether = 8;  // blocks that are added up at once: their symbols fit into a core's own cache

// What a reader may find in front of the symbols of a quantized block.
absl::Status CheckUnits(std::uint32_t index, Codec codec, std::size_t count, const Units& units) {
  if (!IsQuantized(codec)) return absl::OkStatus();
  const Packing packing = PackingOf(codec);
  for (std::size_t i = 0; i < UnitCount(packing, count); ++i) {
    if (!IsUnit(units[i])) {
      return RefuseBlock(index, "want a unit of 0 or from ", kUnitMin, " to ", kUnitMax, ", got ", units[i]);
    }
    if (units[i] != 0 && ValuesOfUnit(packing, count, i).size == 0) {
      return RefuseBlock(index, "want a unit of 0 for a range without values, got ", units[i]);
    }
  }
  return absl::OkStatus();
}

// One block on its way out.
struct Outgoing {
  std::uint32_t index = 0;
  std::span<const float> values = {};
  std::span<const float> residual = {};  // empty: none
  std::span<float> next = {};            // empty: not wanted
  std::span<float> view = {};            // empty: not wanted
  float At(std::size_t i) const { return residual.empty() ? values[i] : values[i] + residual[i]; }
};

const float* DataOrNull(std::span<const float> span) { return span.empty() ? nullptr : span.data(); }
float* DataOrNull(std::span<float> span) { return span.empty() ? nullptr : span.data(); }

// Index of the first v that cannot be sent as a finite value; values.size() if there is none.
std::size_t FirstNotFinite(const Outgoing& block, Codec codec) {
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    if (!std::isfinite(codec == Codec::kBf16 ? Decoded(block.At(i), codec) : block.At(i))) return i;
  }
  return block.values.size();
}

}  // namespace

std::uint64_t MaxPayloadBytes(std::uint64_t value_count, Codec codec) {
  const std::uint64_t full = value_count / kBlockValues;
  const std::uint64_t rest = value_count % kBlockValues;
  const auto body_bytes = [codec](std::uint64_t count) { return PrefixBytes(codec, count) + CodedBytes(codec, count); };
  return BlockCount(value_count) * kBlockHeaderBytes + full * body_bytes(kBlockValues) + body_bytes(rest);
}

struct BlockEncoder::State {
  explicit State(const Coding& to_use)
      : coding(to_use),
        kernels(BestQuantizerKernels()),
        compressor(to_use),
        coded(CodedBytes(to_use.codec, kBlockValues)),
        body(PrefixBytes(to_use.codec, kBlockValues) + coded.size()) {}

  // Fills `units` and the report's signal; the error is that of the ranges whose unit is 0.
  void Measure(const Outgoing& block, CodingReport* report);
  absl::StatusOr<CodingReport> Quantize(const Outgoing& block, Feedback feedback);
  absl::StatusOr<CodingReport> Split(const Outgoing& block, Feedback feedback);
  // The coded bytes become the body of a block.
  void Finish(std::uint32_t index, std::uint64_t value_count, std::string* payload);
  absl::StatusOr<CodingReport> Encode(const Outgoing& block, Feedback feedback, std::string* payload);

  Coding coding;
  const QuantizerKernels& kernels;
  FrameCompressor compressor;
  std::vector<std::uint8_t> coded;
  std::vector<std::byte> body;
  Units units = {};
  // Of a block, for the byte planes.
  std::vector<float> sent;           // v
  std::vector<float> minus_decoded;  // so that sums of v - decoded are sums of v plus this
};

void BlockEncoder::State::Measure(const Outgoing& block, CodingReport* report) {
  const Packing packing = PackingOf(coding.codec);
  for (std::size_t i = 0; i < UnitCount(packing, block.values.size()); ++i) {
    const ValueRange range = ValuesOfUnit(packing, block.values.size(), i);
    units[i] = 0;
    if (range.size == 0) continue;
    const float* const values = block.values.data() + range.begin;
    const float* const residual = block.residual.empty() ? nullptr : block.residual.data() + range.begin;
    const double squares = kernels.sum_of_squares(values, residual, range.size);
    units[i] = coding.codec == Codec::kInt8 ? MaxAbsUnit(kernels.max_abs(values, residual, range.size))
                                            : RmsUnit(squares, range.size, coding.step);
    report->squared_signal += squares;
    if (units[i] == 0) report->squared_error += squares;
  }
}

absl::StatusOr<CodingReport> BlockEncoder::State::Quantize(const Outgoing& block, Feedback feedback) {
  const std::size_t count = block.values.size();
  CodingReport report = {.values = count};
  Measure(block, &report);
  if (!std::isfinite(report.squared_signal)) return RefuseNotFinite(block.index, FirstNotFinite(block, coding.codec));
  std::memcpy(body.data(), units.data(), PrefixBytes(coding.codec, count));
  const auto packing = static_cast<std::size_t>(PackingOf(coding.codec));
  report.squared_error +=
      kernels.quantize[packing][static_cast<std::size_t>(feedback)]({.values = block.values.data(),
                                                                     .residual_in = DataOrNull(block.residual),
                                                                     .residual_out = DataOrNull(block.next),
                                                                     .view = DataOrNull(block.view),
                                                                     .count = count,
                                                                     .units = units.data(),
                                                                     .packed = coded.data()});
  return report;
}

absl::StatusOr<CodingReport> BlockEncoder::State::Split(const Outgoing& block, Feedback feedback) {
  const std::size_t count = block.values.size();
  CodingReport report = {.values = count};
  report.squared_signal = kernels.sum_of_squares(block.values.data(), DataOrNull(block.residual), count);
  sent.resize(kBlockValues);
  minus_decoded.resize(kBlockValues);
  std::copy(block.values.begin(), block.values.end(), sent.begin());
  for (std::size_t i = 0; i < block.residual.size(); ++i) sent[i] += block.residual[i];
  DecodedNegated({sent.data(), count}, coding.codec, minus_decoded);
  if (coding.codec != Codec::kFp32) {
    report.squared_error = kernels.sum_of_squares(sent.data(), minus_decoded.data(), count);
  }
  if (feedback != Feedback::kNone && !std::isfinite(report.squared_signal + report.squared_error)) {
    return RefuseNotFinite(block.index, FirstNotFinite(block, coding.codec));
  }
  for (std::size_t i = 0; i < block.next.size(); ++i) block.next[i] = sent[i] + minus_decoded[i];
  for (std::size_t i = 0; i < block.view.size(); ++i) block.view[i] -= minus_decoded[i];
  SplitPlanes({sent.data(), count}, coding.codec, coded.data());
  return report;
}

void BlockEncoder::State::Finish(std::uint32_t index, std::uint64_t value_count, std::string* payload) {
  const std::span<const std::uint8_t> ready(coded.data(), CodedBytes(coding.codec, value_count));
  const std::size_t prefix = PrefixBytes(coding.codec, value_count);
  // One byte less than raw: a block that zstd does not shrink is stored as it is.
  std::size_t bytes = compressor.Compress(ready, body.data() + prefix, ready.size() - 1);
  BlockHeader header;
  header.index = index;
  header.codec = static_cast<std::uint8_t>(coding.codec);
  header.stored = bytes == 0 ? kStoredRaw : kStoredZstd;
  if (bytes == 0) {
    bytes = ready.size();
    std::memcpy(body.data() + prefix, ready.data(), bytes);
  }
  AppendBlock(header, {body.data(), prefix + bytes}, payload);
}

absl::StatusOr<CodingReport> BlockEncoder::State::Encode(const Outgoing& block, Feedback feedback,
                                                         std::string* payload) {
  AUTOLOCO_CHECK(!block.values.empty());
  AUTOLOCO_CHECK(block.values.size() <= kBlockValues);
  AUTOLOCO_ASSIGN_OR_RETURN(CodingReport report,
                            IsQuantized(coding.codec) ? Quantize(block, feedback) : Split(block, feedback));
  const std::size_t before = payload->size();
  Finish(block.index, block.values.size(), payload);
  report.bytes = payload->size() - before;
  return report;
}

BlockEncoder::BlockEncoder(const Coding& coding) {
  AUTOLOCO_CHECK(IsKnown(coding.codec));
  AUTOLOCO_CHECK(coding.step >= kStepMin && coding.step <= kStepMax);
  state_ = std::make_unique<State>(coding);
}

BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::Append(std::uint32_t index, std::span<const float> values, std::string* payload) {
  AUTOLOCO_CHECK(!values.empty());
  AUTOLOCO_CHECK(values.size() <= kBlockValues);
  AUTOLOCO_CHECK(!IsQuantized(state_->coding.codec));
  SplitPlanes(values, state_->coding.codec, state_->coded.data());
  state_->Finish(index, values.size(), payload);
}

absl::StatusOr<CodingReport> BlockEncoder::Encode(std::uint32_t index, std::span<const float> values,
                                                  std::string* payload) {
  return state_->Encode({.index = index, .values = values}, Feedback::kNone, payload);
}

absl::StatusOr<CodingReport> BlockEncoder::EncodeWithResidual(std::uint32_t index, std::span<const float> values,
                                                              std::span<const float> residual, std::span<float> next,
                                                              std::string* payload) {
  AUTOLOCO_CHECK(residual.size() == values.size());
  AUTOLOCO_CHECK(next.size() == values.size());
  return state_->Encode({.index = index, .values = values, .residual = residual, .next = next}, Feedback::kResidual,
                        payload);
}

absl::StatusOr<CodingReport> BlockEncoder::EncodeAndAdd(std::uint32_t index, std::span<const float> values,
                                                        std::span<float> view, std::string* payload) {
  AUTOLOCO_CHECK(view.size() == values.size());
  return state_->Encode({.index = index, .values = values, .view = view}, Feedback::kAdded, payload);
}

// Where a block lies between zstd and its values.
struct BlockDecoder::Slot {
  std::vector<std::uint8_t> coded;  // grows to what the largest block so far took
  Units units = {};
};

struct BlockDecoder::Coded {
  const std::uint8_t* bytes = nullptr;
  const float* units = nullptr;  // of a quantized block
  float weight = 1;
};

struct BlockDecoder::State {
  const QuantizerKernels& kernels = BestQuantizerKernels();
  FrameDecompressor decompressor;
  std::array<Slot, kTogether> slots;
};

BlockDecoder::BlockDecoder() : state_(std::make_unique<State>()) {}

BlockDecoder::~BlockDecoder() = default;

absl::StatusOr<BlockDecoder::Coded> BlockDecoder::Open(std::span<const std::byte> block, Codec codec,
                                                       std::uint32_t index, std::size_t count, Slot* slot) {
  AUTOLOCO_CHECK(count > 0);
  AUTOLOCO_CHECK(count <= kBlockValues);
  if (!IsKnown(codec)) return RefuseBlock(index, "unknown codec ", static_cast<int>(codec));
  BlockHeader header;
  AUTOLOCO_ASSIGN_OR_RETURN(const std::span<const std::byte> body, OpenBlock(block, codec, index, count, &header));
  const std::size_t prefix = PrefixBytes(codec, count);
  std::memcpy(slot->units.data(), body.data(), prefix);
  AUTOLOCO_RETURN_IF_ERROR(CheckUnits(index, codec, count, slot->units));
  const std::span<const std::byte> stored = body.subspan(prefix);
  const std::size_t bytes = CodedBytes(codec, count);
  Coded coded = {.units = slot->units.data()};
  if (header.stored == kStoredRaw) {
    coded.bytes = reinterpret_cast<const std::uint8_t*>(stored.data());
  } else {
    if (slot->coded.size() < bytes) slot->coded.resize(bytes);
    AUTOLOCO_RETURN_IF_ERROR(state_->decompressor.Decompress(stored, index, {slot->coded.data(), bytes}));
    coded.bytes = slot->coded.data();
  }
  if (codec == Codec::kTernary && !IsTernary(coded.bytes, bytes)) {
    return RefuseBlock(index, "want bytes of five ternary symbols, 0 to 242, got a larger one");
  }
  return coded;
}

double BlockDecoder::SquaredNorm(const Coded& coded, Codec codec, std::size_t count) const {
  if (!IsQuantized(codec)) return SquaredPlanes(coded.bytes, codec, count);
  const auto packing = static_cast<std::size_t>(PackingOf(codec));
  return state_->kernels.squared_norm[packing](coded.bytes, coded.units, count);
}

void BlockDecoder::AddUp(std::span<const Coded> blocks, Codec codec, bool add, std::span<float> sum) const {
  if (IsQuantized(codec)) {
    std::array<WeightedSymbols, kTogether> symbols;
    for (std::size_t i = 0; i < blocks.size(); ++i) symbols[i] = {blocks[i].bytes, blocks[i].units, blocks[i].weight};
    const auto packing = static_cast<std::size_t>(PackingOf(codec));
    state_->kernels.dequantize[packing]({symbols.data(), blocks.size()}, add, sum.size(), sum.data());
    return;
  }
  const Coded& block = blocks.front();
  if (add) return AddPlanes(block.bytes, codec, block.weight, sum);
  JoinPlanes(block.bytes, codec, sum);
  if (block.weight == 1) return;
  for (float& value : sum) value *= block.weight;
}

absl::Status BlockDecoder::Check(std::span<const std::byte> block, Codec codec, std::uint32_t index, std::size_t count,
                                 double* squared_norm) {
  AUTOLOCO_ASSIGN_OR_RETURN(const Coded coded, Open(block, codec, index, count, state_->slots.data()));
  *squared_norm = SquaredNorm(coded, codec, count);
  return absl::OkStatus();
}

absl::Status BlockDecoder::Decode(std::span<const std::byte> block, Codec codec, std::uint32_t index,
                                  std::span<float> values, double* squared_norm) {
  AUTOLOCO_ASSIGN_OR_RETURN(const Coded coded, Open(block, codec, index, values.size(), state_->slots.data()));
  if (squared_norm != nullptr) *squared_norm = SquaredNorm(coded, codec, values.size());
  AddUp({&coded, 1}, codec, /*add=*/false, values);
  return absl::OkStatus();
}

absl::Status BlockDecoder::DecodeAdd(std::span<const std::byte> block, Codec codec, std::uint32_t index, float weight,
                                     std::span<float> sum, double* squared_norm) {
  AUTOLOCO_ASSIGN_OR_RETURN(Coded coded, Open(block, codec, index, sum.size(), state_->slots.data()));
  if (squared_norm != nullptr) *squared_norm = SquaredNorm(coded, codec, sum.size());
  coded.weight = weight;
  AddUp({&coded, 1}, codec, /*add=*/true, sum);
  return absl::OkStatus();
}

absl::Status BlockDecoder::Sum(std::span<const WeightedBlock> blocks, std::uint32_t index, std::span<float> sum,
                               std::span<double> squared_norms, std::size_t* damaged) {
  AUTOLOCO_CHECK(!blocks.empty());
  AUTOLOCO_CHECK(squared_norms.size() == blocks.size());
  for (std::size_t first = 0; first < blocks.size();) {
    const Codec codec = blocks[first].codec;
    const std::size_t most = IsQuantized(codec) ? std::min(kTogether, blocks.size() - first) : 1;
    std::array<Coded, kTogether> opened;
    std::size_t count = 0;
    for (; count < most && blocks[first + count].codec == codec; ++count) {
      *damaged = first + count;
      const WeightedBlock& block = blocks[*damaged];
      AUTOLOCO_ASSIGN_OR_RETURN(opened[count], Open(block.bytes, codec, index, sum.size(), &state_->slots[count]));
      opened[count].weight = block.weight;
      squared_norms[*damaged] = SquaredNorm(opened[count], codec, sum.size());
    }
    AddUp({opened.data(), count}, codec, first > 0, sum);
    first += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint64_t>> IndexBlocks(std::span<const std::byte> payload, std::uint64_t value_count,
                                                       Codec codec) {
  if (!IsKnown(codec)) return absl::InvalidArgumentError(absl::StrCat("unknown codec ", static_cast<int>(codec)));
  const std::uint64_t block_count = BlockCount(value_count);
  if (payload.size() / kBlockHeaderBytes < block_count) {  // before memory is taken for the offsets
    return absl::InvalidArgumentError(
        absl::StrCat("a payload of ", payload.size(), " bytes cannot hold ", block_count, " blocks"));
  }
  std::vector<std::uint64_t> offsets;
  offsets.reserve(block_count + 1);
  std::uint64_t offset = 0;
  for (std::uint64_t index = 0; index < block_count; ++index) {
    const std::uint64_t rest = payload.size() - offset;
    if (rest < kBlockHeaderBytes) {
      return RefuseBlock(index, "the payload ends at byte ", payload.size(), ", in its header");
    }
    const BlockHeader header = ReadHeader(payload.data() + offset);
    AUTOLOCO_RETURN_IF_ERROR(CheckHeader(header, codec, index, BlockSize(value_count, index)));
    if (rest - kBlockHeaderBytes < header.body_bytes) {
      return RefuseBlock(index, "the payload ends at byte ", payload.size(), ", in its body");
    }
    offsets.push_back(offset);
    offset += kBlockHeaderBytes + header.body_bytes;
  }
  if (offset != payload.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want ", offset, " bytes in ", block_count, " blocks, got ", payload.size()));
  }
  offsets.push_back(offset);
  return offsets;
}

std::optional<Codec> CodecOf(std::span<const std::byte> payload) {
  if (payload.size() < kBlockHeaderBytes) return std::nullopt;
  const auto codec = static_cast<Codec>(ReadHeader(payload.data()).codec);
  if (!IsKnown(codec)) return std::nullopt;
  return codec;
}

std::string EncodeVector(std::span<const float> values, Codec codec, int zstd_level) {
  BlockEncoder encoder(codec, zstd_level);
  std::string payload;
  for (std::uint64_t index = 0; index < BlockCount(values.size()); ++index) {
    encoder.Append(static_cast<std::uint32_t>(index),
                   values.subspan(index * kBlockValues, BlockSize(values.size(), index)), &payload);
  }
  return payload;
}

absl::StatusOr<std::string> EncodeVector(std::span<const float> values, const Coding& coding, CodingReport* report) {
  BlockEncoder encoder(coding);
  std::string payload;
  for (std::uint64_t index = 0; index < BlockCount(values.size()); ++index) {
    AUTOLOCO_ASSIGN_OR_RETURN(
        const CodingReport block,
        encoder.Encode(static_cast<std::uint32_t>(index),
                       values.subspan(index * kBlockValues, BlockSize(values.size(), index)), &payload));
    if (report != nullptr) *report += block;
  }
  return payload;
}

absl::Status DecodeVector(std::span<const std::byte> payload, Codec codec, std::span<float> values) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> offsets, IndexBlocks(payload, values.size(), codec));
  BlockDecoder decoder;
  for (std::uint64_t index = 0; index + 1 < offsets.size(); ++index) {
    AUTOLOCO_RETURN_IF_ERROR(decoder.Decode(payload.subspan(offsets[index], offsets[index + 1] - offsets[index]), codec,
                                            static_cast<std::uint32_t>(index),
                                            values.subspan(index * kBlockValues, BlockSize(values.size(), index))));
  }
  return absl::OkStatus();
}

}  // namespace autoloco
