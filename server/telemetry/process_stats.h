// What this process uses, read from /proc.
#ifndef AUTOLOCO_SERVER_TELEMETRY_PROCESS_STATS_H_
#define AUTOLOCO_SERVER_TELEMETRY_PROCESS_STATS_H_

namespace autoloco::server {

// What cannot be read stays 0.
struct ProcessStats {
  double cpu_seconds = 0;  // user and system
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double start_time_seconds = 0;  // Unix time
};

// Thread-safe.
ProcessStats ReadProcessStats();

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_TELEMETRY_PROCESS_STATS_H_
