#include "worker/train/torch_generate.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "worker/train/torch_decoder.h"
#include "worker/train/torch_status.h"

namespace autoloco::worker {
namespace {

constexpr std::uint32_t kByteVocabulary = 256;
constexpr std::uint64_t kSampleStream = 0x746f6b656e;

absl::Status CheckArguments(const DecoderShape& shape, const Layout& layout, std::span<const float> parameters,
                            const GenerateOptions& options) {
  if (shape.vocab_size != kByteVocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat("text generation: want a vocabulary of the 256 bytes, got ", shape.vocab_size, " tokens"));
  }
  if (parameters.size() != layout.value_count()) {
    return absl::InvalidArgumentError(absl::StrCat("text generation: want ", layout.value_count(),
                                                   " parameters for this shape, got ", parameters.size()));
  }
  if (!(options.sampler.temperature >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("text generation: want a temperature of at least 0, got ", options.sampler.temperature));
  }
  return absl::OkStatus();
}

// Logits of the token after `text`, of which the model sees the last `context`.
at::Tensor NextLogits(const TorchDecoder& decoder, std::vector<std::int64_t>* text, std::size_t context) {
  const std::size_t seen = std::min(text->size(), context);
  const auto columns = static_cast<std::int64_t>(seen);
  const at::Tensor tokens = at::from_blob(text->data() + (text->size() - seen), {1, columns}, at::kLong);
  return decoder.Logits(tokens).select(1, columns - 1).contiguous();
}

}  // namespace

absl::StatusOr<std::string> GenerateText(const DecoderShape& shape, std::span<const float> parameters,
                                         const GenerateOptions& options) {
  AUTOLOCO_ASSIGN_OR_RETURN(const Layout layout, MakeDecoderLayout(shape));
  AUTOLOCO_RETURN_IF_ERROR(CheckArguments(shape, layout, parameters, options));
  return CatchTorch("text generation", [&]() -> absl::StatusOr<std::string> {
    if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
    const c10::InferenceMode inference;
    const at::Tensor values = at::from_blob(const_cast<float*>(parameters.data()),  // NOLINT: only read
                                            {static_cast<std::int64_t>(parameters.size())}, at::kFloat);
    const TorchDecoder decoder(shape, layout, values, at::Tensor());
    const RandomStream random(options.seed, kSampleStream);
    std::vector<std::int64_t> text;
    for (const char byte : options.prompt) text.push_back(static_cast<unsigned char>(byte));
    if (text.empty()) text.push_back('\n');
    std::string generated;
    for (std::uint32_t i = 0; i < options.tokens; ++i) {
      const at::Tensor next = NextLogits(decoder, &text, shape.context);
      const std::span<const float> logits(next.const_data_ptr<float>(), kByteVocabulary);
      if (!std::all_of(logits.begin(), logits.end(), [](float value) { return std::isfinite(value); })) {
        return absl::FailedPreconditionError("text generation: the model's output is not finite");
      }
      const std::size_t token = SampleToken(logits, options.sampler, random.Uniform(i));
      text.push_back(static_cast<std::int64_t>(token));
      generated.push_back(static_cast<char>(token));
    }
    return generated;
  });
}

}  // namespace autoloco::worker
