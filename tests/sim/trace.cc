#include "tests/sim/trace.h"

#include "common/base/random.h"

namespace autoloco::sim {

void Trace::Mark(absl::string_view node, absl::string_view what) {
  std::uint64_t line = static_cast<std::uint64_t>(absl::ToUnixNanos(world_->now()));
  for (const absl::string_view text : {node, what}) {
    for (const char c : text) line = line * 1099511628211u + static_cast<unsigned char>(c);
  }
  hash_ = Mix(hash_, line, 0);
}

void Trace::Print(absl::string_view node, absl::string_view what, absl::string_view details) const {
  const double seconds = absl::ToDoubleSeconds(world_->now() - absl::UnixEpoch());
  std::fprintf(out_, "%12.6f  %-10.*s  %-18.*s  %.*s\n", seconds, static_cast<int>(node.size()), node.data(),
               static_cast<int>(what.size()), what.data(), static_cast<int>(details.size()), details.data());
}

}  // namespace autoloco::sim
