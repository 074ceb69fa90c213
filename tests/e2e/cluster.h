// A server with its state folder, its data and its workers, as real processes on loopback: what every end-to-end test
// starts from. Whatever does not start ends the test program with what the process said.
//
// Waiting is always for a condition, with a limit that a loaded machine under a sanitizer still keeps.
#ifndef AUTOLOCO_TESTS_E2E_CLUSTER_H_
#define AUTOLOCO_TESTS_E2E_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoloco/v1/admin.pb.h"
#include "common/tensor/layout.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace autoloco::test {

// Limit of one wait.
inline constexpr absl::Duration kPatience = absl::Seconds(90);

using Arguments = std::vector<std::string>;

inline constexpr char kServer[] = "autoloco-server";
inline constexpr char kWorker[] = "autoloco-worker";                    // LibTorch
inline constexpr char kFakeWorker[] = "../tests/autoloco-fake-worker";  // a formula instead of a model
inline constexpr char kOperator[] = "autoloco";

struct WorkerSetup {
  std::string name;
  int step_ms = 0;       // least time of an inner step; fake workers only
  Arguments flags = {};  // more flags
  Arguments environment = {};
  const char* program = kFakeWorker;
  std::string server = {};  // host:port; empty: the cluster's server itself
};

// Whether the tests of cases run in full length (ctest label `long`) instead of scaled down.
bool FullCases();

// How a program ended.
struct Ended {
  int exit_code = 0;
  std::string output;
  std::string log;
};

// Runs a program of the project to its end.
Ended RunProgram(const char* program, const Arguments& arguments);

// A nano decoder, small batches, little evaluation; `total_steps` inner steps in intervals of `steps`.
Arguments SmallRun(int total_steps, int steps, int workers);

// A metrics endpoint on a free port. Without it there is none: stopping one takes its library up to two seconds.
inline const Arguments& WithMetrics() {
  static const Arguments& flags = *new Arguments{"--metrics-listen", "127.0.0.1:0"};
  return flags;
}

// The layout of that decoder.
Layout NanoLayout();

Arguments Concat(Arguments first, const Arguments& second);

class Cluster {
 public:
  // Makes the folders; starts nothing.
  Cluster();

  const std::string& folder() const { return folder_.path(); }
  std::string state_dir() const { return folder_.File("state"); }
  std::string data_dir() const { return folder_.File("data"); }  // the project's README and licence: English text

  // Starts the server and waits until it serves. Again: on the same port and state folder. The process before must have
  // ended.
  void StartServer(const Arguments& flags, const Arguments& environment = {});
  // The command line of a server on this cluster's state folder, on free ports.
  Arguments ServerArguments(const Arguments& flags) const;

  std::unique_ptr<Process> StartWorker(const WorkerSetup& setup) const;

  Process& server() { return *server_; }
  const std::string& address() const { return address_; }
  const std::string& metrics() const { return metrics_; }
  const std::string& serving() const { return serving_; }  // the log line

  // Asks until `holds` does; fails the test with the last status, naming `what`, after kPatience.
  v1::Status WaitFor(absl::string_view what, const std::function<bool(const v1::Status&)>& holds) const;
  v1::Status WaitForVersion(std::uint64_t version) const;

  // Lines of the server's log that hold `text`, so far.
  std::vector<std::string> ServerLines(absl::string_view text);

 private:
  const TempFolder folder_;
  std::unique_ptr<Process> server_;
  std::string listen_ = "127.0.0.1:0";
  std::string address_;
  std::string metrics_;
  std::string serving_;
};

// The worker's line of a status; an empty one when it is not there.
v1::WorkerStatus FindWorker(const v1::Status& status, absl::string_view name);
// Whether the worker is in an interval of the open round and has not delivered.
bool IsTraining(const v1::Status& status, absl::string_view name);

// Lines of a process's log that hold `text`, so far.
std::vector<std::string> LinesOf(Process* process, absl::string_view text);

// Waits for the end of a process and gives its exit code; -1, and a failed test with its log, when it does not end.
int ExitCode(Process* process, absl::Duration timeout = kPatience);

// Body of an HTTP GET of /metrics at host:port; empty when that fails.
std::string ScrapeMetrics(const std::string& address);
// Scrapes until `series` has `value`, 10 s at most: what the event loop tells of the run's state shows within 100 ms.
std::string ScrapeMetricsUntil(const std::string& address, absl::string_view series, double value);
// Value of a series as written ("name{label=\"x\"}"); -1 when it is not there.
double MetricValue(const std::string& metrics, absl::string_view series);

struct StoredModel {
  std::uint64_t inner_step = 0;
  std::string path;             // of the folder
  std::string manifest_digest;  // what the manifest says of the parameters
  std::string digest;           // of the parameters in the file
};
// The newest checkpoint in the state folder.
StoredModel NewestCheckpoint(const std::string& state_dir);

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_E2E_CLUSTER_H_
