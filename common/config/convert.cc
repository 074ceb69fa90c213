#include "common/config/convert.h"

#include "common/base/check.h"

namespace autoloco {

DecoderShape ToDecoderShape(const v1::ModelConfig& model) {
  DecoderShape shape;
  shape.vocab_size = model.vocab_size();
  shape.width = model.width();
  shape.layers = model.layers();
  shape.heads = model.heads();
  shape.kv_heads = model.kv_heads();
  shape.mlp_hidden = model.mlp_hidden();
  shape.context = model.context();
  shape.tied_head = model.tied_head();
  shape.rope_theta = model.rope_theta();
  shape.norm_epsilon = model.norm_epsilon();
  return shape;
}

LogLevel ToLogLevel(v1::LogLevel level) {
  switch (level) {
    case v1::LOG_LEVEL_DEBUG: return LogLevel::kDebug;
    case v1::LOG_LEVEL_INFO: return LogLevel::kInfo;
    case v1::LOG_LEVEL_WARNING: return LogLevel::kWarning;
    default: AUTOLOCO_CHECK(level == v1::LOG_LEVEL_ERROR); return LogLevel::kError;
  }
}

LogFormat ToLogFormat(v1::LogFormat format) {
  if (format == v1::LOG_FORMAT_JSON) return LogFormat::kJson;
  AUTOLOCO_CHECK(format == v1::LOG_FORMAT_TEXT);
  return LogFormat::kText;
}

}  // namespace autoloco
