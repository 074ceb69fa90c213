// How a round is committed, beside the scalars of its step: plain values of the run's settings, recorded with the
// decision, so that the round is done again alike whatever the settings are by then. server/runtime/apply_commit.h says
// what they mean to the kernels.
#ifndef AUTOLOCO_SERVER_CORE_COMMIT_METHOD_H_
#define AUTOLOCO_SERVER_CORE_COMMIT_METHOD_H_

#include <cstdint>

namespace autoloco::server {

enum class CombineKind : std::uint8_t { kMean, kMedian, kTrimmedMean };

// How what is sent of the new version is coded.
struct BroadcastMethod {
  static constexpr std::uint8_t kLosslessCodec = 1;

  std::uint8_t codec = kLosslessCodec;  // common/codec's number, as on the wire
  double step = 1.5;                    // of the quantizer, in units of the RMS of 4,096 values
  std::int32_t zstd_level = 1;

  // The parameters are the view then, and a new version is sent whole.
  bool lossless() const { return codec == kLosslessCodec; }
  bool operator==(const BroadcastMethod&) const = default;
};

struct CommitMethod {
  CombineKind combination = CombineKind::kMean;
  double trim_share = 0.2;  // kTrimmedMean: cut off at either end
  BroadcastMethod broadcast;
  bool operator==(const CommitMethod&) const = default;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_COMMIT_METHOD_H_
