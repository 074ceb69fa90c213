#include "tests/support/narrow_link.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "tests/support/process.h"

namespace autoloco::test {
namespace {

constexpr int kBurstBytes = 16 * 1024;

absl::Status RunTool(const std::vector<std::string>& arguments) {
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(arguments);
  AUTOLOCO_RETURN_IF_ERROR(process.status());
  AUTOLOCO_ASSIGN_OR_RETURN(const int exit_code, (*process)->Wait());
  if (exit_code == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(absl::StrJoin(arguments, " "), ": ", (*process)->Log()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NarrowLink>> NarrowLink::Make(double bits_per_second, absl::Duration queue) {
  if (geteuid() != 0) return absl::FailedPreconditionError("only root can make network namespaces");
  const std::string name = absl::StrCat("al", getpid());
  // A network of its own, out of those that are for tests.
  const std::string network = absl::StrFormat("198.18.%d.", getpid() % 256);
  std::unique_ptr<NarrowLink> link(new NarrowLink(name, network + "1"));
  const std::string near_end = link->near_end();
  const std::string far_end = name + "f";
  const std::vector<std::string> shape = {"root",    "tbf",
                                          "rate",    absl::StrFormat("%.0fbit", bits_per_second),
                                          "burst",   absl::StrCat(kBurstBytes),
                                          "latency", absl::StrFormat("%.0fms", absl::ToDoubleMilliseconds(queue))};
  const auto shaped = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    return arguments;
  };
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"/usr/sbin/ip", "netns", "add", name},
           {"/usr/sbin/ip", "link", "add", near_end, "type", "veth", "peer", "name", far_end, "netns", name},
           {"/usr/sbin/ip", "addr", "add", network + "1/24", "dev", near_end},
           {"/usr/sbin/ip", "link", "set", near_end, "up"},
           {"/usr/sbin/ip", "-n", name, "addr", "add", network + "2/24", "dev", far_end},
           {"/usr/sbin/ip", "-n", name, "link", "set", far_end, "up"},
           {"/usr/sbin/ip", "-n", name, "link", "set", "lo", "up"},
           shaped({"/usr/sbin/tc", "qdisc", "add", "dev", near_end}),
           shaped({"/usr/sbin/tc", "-n", name, "qdisc", "add", "dev", far_end})}) {
    AUTOLOCO_RETURN_IF_ERROR(RunTool(command));
  }
  return link;
}

NarrowLink::~NarrowLink() {
  RunTool({"/usr/sbin/ip", "netns", "del", name_}).IgnoreError();  // the interfaces go with it
}

std::uint64_t NarrowLink::BytesFromInside() const {
  std::uint64_t bytes = 0;
  std::ifstream("/sys/class/net/" + near_end() + "/statistics/rx_bytes") >> bytes;
  return bytes;
}

std::vector<std::string> NarrowLink::Inside(std::vector<std::string> arguments) const {
  std::vector<std::string> all = {"/usr/sbin/ip", "netns", "exec", name_};
  all.insert(all.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  return all;
}

}  // namespace autoloco::test
