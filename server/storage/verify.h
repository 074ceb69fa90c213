// Looks a state folder through, without changing it: the work behind `autoloco verify`.
#ifndef AUTOLOCO_SERVER_STORAGE_VERIFY_H_
#define AUTOLOCO_SERVER_STORAGE_VERIFY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parallel.h"

namespace autoloco::server {

struct VerifyReport {
  std::vector<std::string> checked;   // one line each: what was looked at, and how it is
  std::vector<std::string> problems;  // one line each; empty: all is as recorded
};

// Checks that
//   - the state database is whole, and every token of the ledger has exactly one fate,
//   - every payload that is still needed lies in the spool and has the digest it was accepted with,
//   - every file of every checkpoint has its digest, and its version the digest that was recorded,
//   - the recorded rounds, done again from the oldest checkpoint that has its payloads, give the recorded digests.
// A server may run on the folder meanwhile. An error: there is nothing to look at, or it cannot be opened.
absl::StatusOr<VerifyReport> VerifyState(const std::string& state_dir, WorkPool* pool);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_VERIFY_H_
