#include "common/rpc/layout_proto.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco {

v1::LayoutProto ToProto(const Layout& layout) {
  v1::LayoutProto proto;
  for (const TensorEntry& entry : layout.tensors()) {
    v1::LayoutProto::Tensor* tensor = proto.add_tensors();
    tensor->set_name(entry.spec.name);
    for (const std::uint64_t extent : entry.spec.shape) tensor->add_shape(extent);
  }
  proto.set_hash(layout.hash());
  return proto;
}

absl::StatusOr<Layout> FromProto(const v1::LayoutProto& proto) {
  std::vector<TensorSpec> tensors;
  tensors.reserve(proto.tensors_size());  // bounded by the message that carried it
  for (const v1::LayoutProto::Tensor& tensor : proto.tensors()) {
    tensors.push_back({tensor.name(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  AUTOLOCO_ASSIGN_OR_RETURN(Layout layout, Layout::Make(std::move(tensors)));
  if (layout.hash() != proto.hash()) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout hash: want ", layout.hash(), " for these tensors, got ", proto.hash()));
  }
  return layout;
}

}  // namespace autoloco
