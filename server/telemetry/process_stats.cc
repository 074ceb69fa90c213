#include "server/telemetry/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace autoloco::server {
namespace {

// Positions in /proc/self/stat after the name in parentheses (proc(5) counts from 1 with pid and name before).
constexpr std::size_t kStartTicks = 22 - 3;
constexpr std::size_t kVirtualBytes = 23 - 3;
constexpr std::size_t kResidentPages = 24 - 3;

double NumberAt(const std::vector<absl::string_view>& fields, std::size_t index) {
  double number = 0;
  if (index >= fields.size() || !absl::SimpleAtod(fields[index], &number)) return 0;
  return number;
}

double CpuSeconds() {
  struct rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Unix time at which the machine started.
double BootSeconds() {
  std::ifstream stat("/proc/stat");
  std::string line;
  while (std::getline(stat, line)) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    if (fields[0] == "btime") return NumberAt(fields, 1);
  }
  return 0;
}

double OpenFds() {
  double count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

double MaxFds() {
  struct rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  stats.cpu_seconds = CpuSeconds();
  stats.open_fds = OpenFds();
  stats.max_fds = MaxFds();
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return stats;
  const std::vector<absl::string_view> fields = absl::StrSplit(absl::string_view(line).substr(name_end + 2), ' ');
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  stats.virtual_bytes = NumberAt(fields, kVirtualBytes);
  stats.resident_bytes = NumberAt(fields, kResidentPages) * static_cast<double>(sysconf(_SC_PAGESIZE));
  stats.start_time_seconds = BootSeconds() + NumberAt(fields, kStartTicks) / ticks_per_second;
  return stats;
}

}  // namespace autoloco::server
