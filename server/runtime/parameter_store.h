// The global parameters, the outer momentum, and, where broadcasts are lossy, the view: flat fp32 vectors in layout
// order.
#ifndef AUTOLOCO_SERVER_RUNTIME_PARAMETER_STORE_H_
#define AUTOLOCO_SERVER_RUNTIME_PARAMETER_STORE_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/flat_buffer.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/tensor/layout.h"
#include "server/runtime/encoded_payload.h"
#include "server/runtime/live_view.h"

namespace autoloco::server {

// One thread at a time: main's until the loop starts, the commit thread's afterwards.
class ParameterStore {
 public:
  // Zeros, no view. RESOURCE_EXHAUSTED when the memory cannot be had.
  static absl::StatusOr<ParameterStore> Allocate(const Layout& layout);

  const Layout& layout() const { return layout_; }
  std::span<float> params() { return params_.values(); }
  std::span<float> momentum() { return momentum_.values(); }

  // Null: the parameters are the view.
  const std::shared_ptr<LiveView>& view() const { return view_; }
  std::span<float> view_values() { return view_ == nullptr ? std::span<float>() : view_->values(); }
  // Where there is no view of its own, one that equals the parameters as they are. RESOURCE_EXHAUSTED as Allocate.
  absl::Status MakeView();
  // From here on the parameters are the view.
  void DropView() { view_.reset(); }

  // Of the values as they are now: one pass over memory.
  std::string ParamsDigest() const;
  std::string ViewDigest() const;

  // The parameters as they are now, encoded losslessly for pulls, in parallel over `pool`. REQUIRES: `params_digest` is
  // theirs.
  std::shared_ptr<const EncodedPayload> Encode(Version version, std::string params_digest, int zstd_level,
                                               WorkPool* pool) const;

 private:
  ParameterStore(const Layout& layout, FlatBuffer params, FlatBuffer momentum);

  Layout layout_;
  FlatBuffer params_;
  FlatBuffer momentum_;
  std::shared_ptr<LiveView> view_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PARAMETER_STORE_H_
