// The storm: a real server and its workers, killed and started again by the clock.
#ifndef AUTOLOCO_TESTS_E2E_STORM_RUN_H_
#define AUTOLOCO_TESTS_E2E_STORM_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tests/e2e/storm_options.h"
#include "tests/e2e/storm_report.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace autoloco::test {

// Not thread-safe. Prints its progress to standard output.
class Storm {
 public:
  explicit Storm(const StormOptions& options);

  // Blocks until the storm is over and one more round has been committed. An error: it could not begin.
  absl::StatusOr<StormResults> Run();

 private:
  struct Worker {
    std::string name;
    std::unique_ptr<Process> process;  // none while it is down
    std::optional<Instant> start_at;   // when it is down
    std::optional<Instant> restarted;  // until its first accepted delta
  };

  std::vector<std::string> ServerArguments() const;
  absl::Status StartServer();
  absl::Status StartWorker(Worker* worker);
  absl::Status StartFirst();
  // Kills, restarts and measures until `end`; kills only while `killing`.
  absl::Status RunUntil(Instant end, bool killing, const std::optional<std::uint64_t>& until_committed);
  void Kill();
  void KillServer();
  void KillWorker(Worker* worker);
  absl::Status RestartDue();
  void Observe();
  void ReadServerLog();
  void NoteContributions();
  void NoteUnexpectedEnds();
  void PrintProgress();
  absl::Status TakeRounds();
  void StopServer();
  void CheckLedger();

  const StormOptions options_;
  const TempFolder folder_;
  std::string address_;
  std::unique_ptr<Process> server_;
  std::optional<Instant> server_start_at_;
  std::size_t server_lines_read_ = 0;
  std::vector<Worker> workers_;
  std::uint64_t kills_ = 0;
  Instant began_;
  Instant next_kill_;
  Instant next_print_;
  RoundCount rounds_;
  StormResults results_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_E2E_STORM_RUN_H_
