#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace autoloco::test {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void RunChild(char* const* arguments, char* const* environment, int output, int error) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

}  // namespace

std::string ProgramPath(absl::string_view name) { return absl::StrCat(AUTOLOCO_BIN_DIR, "/", name); }

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& arguments,
                                                        const std::vector<std::string>& environment) {
  std::vector<std::string> variables = environment;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> variable_pointers = Pointers(variables);
  int output[2];
  int error[2];
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) return absl::InternalError("pipe2 failed");
  const pid_t pid = fork();
  if (pid == 0) RunChild(argument_pointers.data(), variable_pointers.data(), output[1], error[1]);
  close(output[1]);
  close(error[1]);
  if (pid < 0) {
    close(output[0]);
    close(error[0]);
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  return std::unique_ptr<Process>(new Process(pid, output[0], error[0]));
}

// The reader starts once everything that it uses is there.
Process::Process(pid_t pid, int output, int error) : pid_(pid) {
  reader_ = std::thread([this, output, error] { ReadStreams(output, error); });
}

Process::~Process() {
  Signal(SIGKILL);
  reader_.join();
}

void Process::ReadStreams(int output, int error) {
  pollfd streams[2] = {{output, POLLIN, 0}, {error, POLLIN, 0}};
  int open_streams = 2;
  char buffer[4096];
  while (open_streams > 0) {
    if (poll(streams, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      const ssize_t got = read(streams[i].fd, buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      AddOutput(i == 1, absl::string_view(buffer, got > 0 ? got : 0));
      if (got > 0) continue;
      close(streams[i].fd);
      streams[i].fd = -1;
      --open_streams;
    }
  }
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  MutexLock lock(&mutex_);  // from here on Signal() finds the child ended: its number may belong to another one
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  changed_.NotifyAll();
}

void Process::AddOutput(bool is_error, absl::string_view text) {
  MutexLock lock(&mutex_);
  if (!is_error) {
    absl::StrAppend(&output_, text);
    return;
  }
  if (text.empty()) error_closed_ = true;
  absl::StrAppend(&log_rest_, text);
  for (std::size_t end = log_rest_.find('\n'); end != std::string::npos; end = log_rest_.find('\n')) {
    log_.push_back(log_rest_.substr(0, end));
    log_rest_.erase(0, end + 1);
  }
  changed_.NotifyAll();
}

absl::StatusOr<std::string> Process::WaitForLog(absl::string_view text, absl::Duration timeout, std::size_t from) {
  const Instant deadline = MonotonicClock()->Now() + timeout;
  MutexLock lock(&mutex_);
  std::size_t next = from;
  while (true) {
    for (; next < log_.size(); ++next) {
      if (absl::string_view(log_[next]).find(text) != absl::string_view::npos) return log_[next];
    }
    const absl::Duration left = deadline - MonotonicClock()->Now();
    if (error_closed_ || left <= absl::ZeroDuration()) {
      return absl::NotFoundError(absl::StrCat("no log line with '", text, "' in:\n", absl::StrJoin(log_, "\n")));
    }
    changed_.WaitFor(&mutex_, left);
  }
}

std::size_t Process::log_lines() {
  MutexLock lock(&mutex_);
  return log_.size();
}

std::string Process::Log() {
  MutexLock lock(&mutex_);
  return absl::StrCat(absl::StrJoin(log_, "\n"), "\n", log_rest_);
}

std::string Process::Output() {
  MutexLock lock(&mutex_);
  return output_;
}

void Process::Signal(int signal) {
  MutexLock lock(&mutex_);
  if (!ended_) kill(pid_, signal);
}

absl::StatusOr<int> Process::Wait(absl::Duration timeout) {
  const Instant deadline = MonotonicClock()->Now() + timeout;
  MutexLock lock(&mutex_);
  while (!ended_) {
    const absl::Duration left = deadline - MonotonicClock()->Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("process ", pid_, " still runs; its log:\n", absl::StrJoin(log_, "\n")));
    }
    changed_.WaitFor(&mutex_, left);
  }
  return exit_code_;
}

absl::StatusOr<ServerProcess> ServerProcess::Start(const std::string& state_folder,
                                                   const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {ProgramPath("autoloco-server"),
                                        "--state-dir",
                                        state_folder,
                                        "--listen",
                                        "127.0.0.1:0",
                                        "--metrics-listen",
                                        "127.0.0.1:0"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  ServerProcess server;
  AUTOLOCO_ASSIGN_OR_RETURN(server.process, Process::Start(arguments));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string line, server.process->WaitForLog(" serving "));
  server.address = LogValue(line, "listen");
  server.metrics = LogValue(line, "metrics");
  server.run_id = LogValue(line, "run_id");
  return server;
}

std::uint64_t ResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t PeakResidentBytes(pid_t pid) {
  constexpr absl::string_view kKey = "VmHWM:";
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, kKey.size(), kKey.data()) == 0)
      return std::strtoull(line.c_str() + kKey.size(), nullptr, 10) * 1024;
  }
  return 0;
}

std::string LogValue(absl::string_view line, absl::string_view key) {
  const std::string needle = absl::StrCat(" ", key, "=");
  const std::size_t at = line.find(needle);
  if (at == absl::string_view::npos) return "";
  absl::string_view value = line.substr(at + needle.size());
  const bool quoted = !value.empty() && value[0] == '"';
  if (quoted) value.remove_prefix(1);
  return std::string(value.substr(0, value.find(quoted ? '"' : ' ')));
}

}  // namespace autoloco::test
