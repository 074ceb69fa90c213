// What the header of a pull may say, given what was asked.
#ifndef AUTOLOCO_WORKER_CLIENT_PULL_HEADER_H_
#define AUTOLOCO_WORKER_CLIENT_PULL_HEADER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "autoloco/v1/parameter_server.pb.h"
#include "common/codec/codec.h"
#include "worker/core/types.h"
#include "worker/runtime/base_buffer.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// What one stream asks for: some blocks, of a transfer that is known or of whatever the server decides on.
struct PullAsk {
  std::optional<PullForm> form;
  Version version = 0;  // with a form; live: as of the beginning
  std::uint64_t first_block = 0;
  std::uint64_t end_block = 0;
};

// A header that fits.
struct PullPlan {
  PullForm form = PullForm::kNothing;
  Version version = 0;
  std::string view_digest;  // live: empty
  Codec codec = Codec::kFp32;
  std::uint64_t payload_bytes = 0;  // live: not known
  std::uint64_t first_block = 0;
  std::uint64_t end_block = 0;
};

// `held`: by the base when the pull began. FAILED_PRECONDITION: another layout. DATA_LOSS: the rest does not fit that,
// the run's coding of broadcasts or what was asked for.
absl::StatusOr<PullPlan> ReadPullHeader(const v1::PullHeader& header, const PullJob& job, const BaseBuffer::Held& held,
                                        const PullAsk& ask);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_PULL_HEADER_H_
