// A slow link of this machine's own: a network namespace behind a pair of virtual interfaces whose rate is limited both
// ways by a token bucket with a queue behind it, as a router's. Needs root and iproute2.
#ifndef AUTOLOCO_TESTS_SUPPORT_NARROW_LINK_H_
#define AUTOLOCO_TESTS_SUPPORT_NARROW_LINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace autoloco::test {

class NarrowLink {
 public:
  // `queue`: how long bytes may wait for their turn; what would wait longer is dropped. FAILED_PRECONDITION: this
  // machine or this user cannot have one.
  static absl::StatusOr<std::unique_ptr<NarrowLink>> Make(double bits_per_second, absl::Duration queue);
  // Takes it down; programs inside have ended.
  ~NarrowLink();
  NarrowLink(const NarrowLink&) = delete;
  NarrowLink& operator=(const NarrowLink&) = delete;

  // The address of this side, as programs inside reach it.
  const std::string& near_address() const { return near_address_; }
  // Bytes that have come out of the link from inside since it was made, headers of all layers included; 0: it cannot be
  // told.
  std::uint64_t BytesFromInside() const;
  // `arguments` as a command line that runs inside.
  std::vector<std::string> Inside(std::vector<std::string> arguments) const;

 private:
  NarrowLink(std::string name, std::string near_address)
      : name_(std::move(name)), near_address_(std::move(near_address)) {}
  std::string near_end() const { return name_ + "n"; }  // the interface of this side

  const std::string name_;
  const std::string near_address_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_NARROW_LINK_H_
