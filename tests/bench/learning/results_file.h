// The results of finished runs on disk, one JSON object a line, appended as they come: an interrupted benchmark goes on
// where it was, and another preset takes over the runs they have in common.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_RESULTS_FILE_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_RESULTS_FILE_H_

#include <fstream>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "tests/bench/learning/run_result.h"

namespace autoloco::bench {

// Thread-safe.
class ResultsFile {
 public:
  ResultsFile() = default;
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  // Reads what is there and appends to it from now on. Without it results are kept in memory only. A last line that was
  // cut off is left out. INVALID_ARGUMENT: the file cannot be opened, or another line is not a result.
  // REQUIRES: called before the other methods, at most once.
  absl::Status Open(const std::string& path);

  // The result of the run that this text describes (DescribeRun); null: none yet. Valid as long as the file.
  const RunResult* Find(const std::string& run) const;
  // Keeps the result; what is kept already stays. UNAVAILABLE: it could not be written (it is kept in memory).
  absl::Status Add(const std::string& run, const RunResult& result);

 private:
  mutable Mutex mutex_;
  std::map<std::string, RunResult> results_ ABSL_GUARDED_BY(mutex_);  // never erased
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::ofstream file_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_RESULTS_FILE_H_
