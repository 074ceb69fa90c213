// What a storm measured, and whether that is good enough.
#ifndef AUTOLOCO_TESTS_E2E_STORM_REPORT_H_
#define AUTOLOCO_TESTS_E2E_STORM_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/e2e/storm_options.h"

namespace autoloco::test {

// Rounds as the server's log tells them, over all its lives.
class RoundCount {
 public:
  // The next line of the log.
  void Read(absl::string_view line);

  // A round that is opened again after it was lost counts again. The last one opened does not count while it is open.
  std::uint64_t opened() const { return opened_ - (open_ ? 1 : 0); }
  std::uint64_t committed() const { return committed_; }

 private:
  std::uint64_t opened_ = 0;
  std::uint64_t committed_ = 0;
  bool open_ = false;
};

struct MemorySample {
  double seconds = 0;  // since the storm began
  std::uint64_t bytes = 0;
};

struct StormResults {
  std::uint64_t rounds_opened = 0;
  std::uint64_t rounds = 0;             // committed
  std::vector<double> shares;           // contributors over assigned workers, of every committed round
  std::vector<double> restart_seconds;  // from a worker's restart to its first accepted delta
  bool ledger_balanced = false;         // by `autoloco verify`
  std::vector<MemorySample> memory;     // of the server, resident
  std::uint64_t worker_kills = 0;
  std::uint64_t server_kills = 0;
  std::vector<std::string> faults;  // processes that ended by themselves, a run that did not go on
};

struct StormVerdict {
  bool passed = true;
  std::vector<std::string> lines;  // one a bound
};

double CommittedShare(const StormResults& results);
double Participation(const StormResults& results);
double MedianOf(std::vector<double> values);  // infinity of nothing
// Largest sample of the first and of the last third of the time.
std::uint64_t FirstMemory(const StormResults& results);
std::uint64_t LastMemory(const StormResults& results);

StormVerdict Judge(const StormResults& results, const StormBounds& bounds);
std::string StormJson(const StormOptions& options, const StormResults& results, bool passed);

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_E2E_STORM_REPORT_H_
