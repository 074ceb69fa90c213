#include "server/kernels/commit_reference.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "server/kernels/outer_step_reference.h"

namespace autoloco::server {

absl::StatusOr<CommitResult> CommitReference(const CommitInputs& inputs, const CommitBuffers& buffers) {
  CommitResult result;
  AUTOLOCO_ASSIGN_OR_RETURN(result.statistics, ApplyOuterStepReference(inputs.contributions, inputs.coefficients,
                                                                       buffers.params, buffers.momentum,
                                                                       buffers.view));
  std::vector<float> sent(buffers.params.begin(), buffers.params.end());
  for (std::size_t i = 0; i < buffers.view.size(); ++i) sent[i] = buffers.params[i] - buffers.view[i];
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string payload, EncodeVector(sent, *inputs.broadcast, &result.coding));
  std::vector<float> decoded(sent.size());
  AUTOLOCO_RETURN_IF_ERROR(DecodeVector(std::as_bytes(std::span<const char>(payload)), inputs.broadcast->codec, decoded));
  for (std::size_t i = 0; i < buffers.view.size(); ++i) buffers.view[i] = buffers.view[i] + decoded[i];

  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> offsets,
                            IndexBlocks(std::as_bytes(std::span<const char>(payload)), sent.size(), inputs.broadcast->codec));
  for (std::size_t block = 0; block + 1 < offsets.size(); ++block) {
    result.blocks.push_back(payload.substr(offsets[block], offsets[block + 1] - offsets[block]));
  }
  result.params_digest = Digest128(buffers.params);
  result.view_digest = buffers.view.empty() ? result.params_digest : Digest128(buffers.view);
  return result;
}

}  // namespace autoloco::server
