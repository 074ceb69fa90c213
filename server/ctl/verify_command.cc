#include "server/ctl/verify_command.h"

#include <algorithm>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/parallel.h"
#include "server/storage/verify.h"

namespace autoloco::server {
namespace {

constexpr char kUsage[] =
    "Usage: autoloco verify STATE_DIR\n\n"
    "Checks, without changing anything, that what a server has stored in STATE_DIR is as it was recorded: the state\n"
    "database, the balance of the token ledger, the digest of every delta and of every file of every checkpoint; and "
    "does\n"
    "the recorded rounds again from the oldest checkpoint that has its deltas, comparing the digest of every version. "
    "It\n"
    "needs no server, may run beside one, and takes the memory of one model and its momentum.\n\n"
    "Prints what was checked. Exit code 0: all is as recorded; 1: it is not, one line each.\n";

int Verify(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  if (arguments.size() != 1 || arguments[0].empty() || arguments[0][0] == '-') {
    err << "autoloco verify: want one STATE_DIR; see `autoloco verify --help`\n";
    return kExitUsage;
  }
  WorkPool pool(std::max(1u, std::thread::hardware_concurrency()));
  const absl::StatusOr<VerifyReport> report = VerifyState(arguments[0], &pool);
  if (!report.ok()) {
    err << "autoloco verify: " << report.status().message() << "\n";
    return kExitFailed;
  }
  for (const std::string& line : report->checked) out << line << "\n";
  for (const std::string& line : report->problems) err << "autoloco verify: " << line << "\n";
  out << (report->problems.empty() ? "ok" : "FAILED") << "\n";
  return report->problems.empty() ? kExitOk : kExitFailed;
}

}  // namespace

const Command kVerifyCommand = {"verify", "checks what a server has stored, offline", kUsage, Verify};

}  // namespace autoloco::server
