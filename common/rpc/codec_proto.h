// The run's codec setting <-> what common/codec encodes and decodes by. Used by both ends, which must agree.
#ifndef AUTOLOCO_COMMON_RPC_CODEC_PROTO_H_
#define AUTOLOCO_COMMON_RPC_CODEC_PROTO_H_

#include "autoloco/v1/run_config.pb.h"
#include "common/codec/codec.h"

namespace autoloco {

// How deltas are encoded. REQUIRES: a named delta and a step in its range, as every loaded config has.
Coding ToCoding(const v1::CodecConfig& config);
// How broadcasts are encoded; a lossless one: whole parameters are sent instead. REQUIRES as ToCoding, of `broadcast`.
Coding ToBroadcastCoding(const v1::CodecConfig& config);
// What a reader of deltas needs: the codec of ToCoding.
Codec ToCodec(const v1::CodecConfig& config);

// The setting that gives `codec`. REQUIRES: a known codec.
v1::CodecConfig::Delta ToProto(Codec codec);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_CODEC_PROTO_H_
