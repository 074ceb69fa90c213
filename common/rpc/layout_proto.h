// Layout <-> LayoutProto. Used by the worker to send its layout and by the server to read it.
#ifndef AUTOLOCO_COMMON_RPC_LAYOUT_PROTO_H_
#define AUTOLOCO_COMMON_RPC_LAYOUT_PROTO_H_

#include "absl/status/statusor.h"
#include "autoloco/v1/parameter_server.pb.h"
#include "common/tensor/layout.h"

namespace autoloco {

v1::LayoutProto ToProto(const Layout& layout);

// INVALID_ARGUMENT: not a layout (Layout::Make says why), or its hash is not the one it carries.
absl::StatusOr<Layout> FromProto(const v1::LayoutProto& proto);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_LAYOUT_PROTO_H_
