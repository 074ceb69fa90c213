// What happened, one line an event, in columns of fixed width:
//
//   seconds      node        what             details
//   12.345678    worker-b    push             round=3 ...
//
// Every line also goes into a hash: two runs are the same if their hashes are.
#ifndef AUTOLOCO_TESTS_SIM_TRACE_H_
#define AUTOLOCO_TESTS_SIM_TRACE_H_

#include <cstdint>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/sim/world.h"

namespace autoloco::sim {

class Trace {
 public:
  // `out`: where the lines go; null: nowhere. Borrowed.
  Trace(const World* world, std::FILE* out) : world_(world), out_(out) {}

  // The details are only put together where somebody reads them.
  template <typename... Parts>
  void Line(absl::string_view node, absl::string_view what, const Parts&... parts) {
    Mark(node, what);
    if (out_ != nullptr) Print(node, what, absl::StrCat(parts...));
  }
  std::uint64_t hash() const { return hash_; }

 private:
  void Mark(absl::string_view node, absl::string_view what);
  void Print(absl::string_view node, absl::string_view what, absl::string_view details) const;

  const World* const world_;
  std::FILE* const out_;
  std::uint64_t hash_ = 0;
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_TRACE_H_
