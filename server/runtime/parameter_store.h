// The global parameters and the outer momentum: two flat fp32 vectors in layout order, and their encoded form.
#ifndef AUTOLOCO_SERVER_RUNTIME_PARAMETER_STORE_H_
#define AUTOLOCO_SERVER_RUNTIME_PARAMETER_STORE_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/flat_buffer.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/tensor/layout.h"
#include "server/runtime/encoded_snapshot.h"

namespace autoloco::server {

// One thread at a time: main's until the loop starts, the commit thread's afterwards.
class ParameterStore {
 public:
  // Zeros. RESOURCE_EXHAUSTED when the memory cannot be had.
  static absl::StatusOr<ParameterStore> Allocate(const Layout& layout);

  const Layout& layout() const { return layout_; }
  std::span<float> params() { return params_.values(); }
  std::span<float> momentum() { return momentum_.values(); }

  // Of the parameters as they are now: one pass over memory.
  std::string ParamsDigest() const;

  // The parameters as they are now, encoded losslessly for pulls, in parallel over `pool`. REQUIRES: `params_digest` is
  // theirs.
  std::shared_ptr<const EncodedSnapshot> Encode(Version version, std::string params_digest, int zstd_level,
                                                WorkPool* pool) const;

 private:
  ParameterStore(const Layout& layout, FlatBuffer params, FlatBuffer momentum);

  Layout layout_;
  FlatBuffer params_;
  FlatBuffer momentum_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PARAMETER_STORE_H_
