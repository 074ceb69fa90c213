// Child processes for end-to-end tests: start a program, read what it says as it says it, kill it, wait for its end. No
// sleeping: waiting ends with the line, the exit, or the limit.
#ifndef AUTOLOCO_TESTS_SUPPORT_PROCESS_H_
#define AUTOLOCO_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace autoloco::test {

// The path of one of the project's programs, e.g. "autoloco-server".
std::string ProgramPath(absl::string_view name);

// Thread-safe.
class Process {
 public:
  // Runs `arguments` (the program's path first) with this process's environment and `environment` (NAME=VALUE) added.
  // The child dies with this process.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& arguments,
                                                        const std::vector<std::string>& environment = {});
  // Kills the child with SIGKILL if it still runs.
  ~Process();

  pid_t pid() const { return pid_; }

  // The first line of standard error that holds `text`, from line `from` on (so far or to come). NOT_FOUND with all
  // that was said when the child's error stream closes or `timeout` passes first.
  absl::StatusOr<std::string> WaitForLog(absl::string_view text, absl::Duration timeout = absl::Seconds(60),
                                         std::size_t from = 0);
  // Lines of standard error so far.
  std::size_t log_lines();
  std::string Log();     // all of standard error so far
  std::string Output();  // all of standard output so far

  void Signal(int signal);
  // The exit code, or 128 + signal; both streams have been read to their end. DEADLINE_EXCEEDED after `timeout`.
  absl::StatusOr<int> Wait(absl::Duration timeout = absl::Seconds(60));

 private:
  Process(pid_t pid, int output, int error);
  void ReadStreams(int output, int error);
  void AddOutput(bool is_error, absl::string_view text);

  const pid_t pid_;
  std::thread reader_;

  Mutex mutex_;
  CondVar changed_;
  std::string output_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);  // whole lines
  std::string log_rest_ ABSL_GUARDED_BY(mutex_);          // the line that is not whole yet
  bool error_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int exit_code_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A server that serves.
struct ServerProcess {
  std::unique_ptr<Process> process;
  std::string address;  // host:port of the gRPC services
  std::string metrics;  // host:port of the Prometheus endpoint
  std::string run_id;

  // Starts autoloco-server on free ports with `flags` added and waits until it serves.
  static absl::StatusOr<ServerProcess> Start(const std::string& state_folder, const std::vector<std::string>& flags);
};

// Resident memory of a process of this machine, in bytes, now and at its peak; 0 when it is gone.
std::uint64_t ResidentBytes(pid_t pid);
std::uint64_t PeakResidentBytes(pid_t pid);

// The value of `key` in a log line ("key=value"), without quotes; empty when there is none.
std::string LogValue(absl::string_view line, absl::string_view key);

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_PROCESS_H_
