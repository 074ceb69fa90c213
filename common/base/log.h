// Structured logs: one event, one line, `key=value`, on standard error.
//
//   Log(LogLevel::kInfo, "round_closed").Add("round", round).Add("applied", 8);
//   -> 2026-01-31T12:00:00.123Z INFO round_closed round=12 applied=8
//
// Fixed keys: round, version, worker, incarnation, ticket, reason. Text with spaces, quotes or control characters is
// quoted and escaped, so that a line stays a line. The core never logs: it returns decisions, the shell logs them.
#ifndef AUTOLOCO_COMMON_BASE_LOG_H_
#define AUTOLOCO_COMMON_BASE_LOG_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace autoloco {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// Process-wide; thread-safe. Set once at start.
void ConfigureLog(LogLevel least, LogFormat format);
bool LogEnabled(LogLevel level);

// Called before and after a line is written, with the log's lock held, so that a live progress line of a terminal can
// be wiped and drawn again. `hook` must live as long as the process logs; null: none.
class LogHook {
 public:
  virtual ~LogHook() = default;
  virtual void BeforeLine() = 0;
  virtual void AfterLine() = 0;
};
void SetLogHook(LogHook* hook);

// One line, written by the destructor in one write. Use as a temporary.
class Log {
 public:
  Log(LogLevel level, absl::string_view event);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  Log& Add(absl::string_view key, absl::string_view value);
  Log& Add(absl::string_view key, const char* value) { return Add(key, absl::string_view(value)); }
  Log& Add(absl::string_view key, const std::string& value) { return Add(key, absl::string_view(value)); }
  Log& Add(absl::string_view key, double value);
  Log& Add(absl::string_view key, bool value);
  template <typename Integer>
  requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>) Log& Add(absl::string_view key,
                                                                                   Integer value) {
    if constexpr (std::is_signed_v<Integer>) {
      return AddSigned(key, static_cast<std::int64_t>(value));
    } else {
      return AddUnsigned(key, static_cast<std::uint64_t>(value));
    }
  }

 private:
  Log& AddSigned(absl::string_view key, std::int64_t value);
  Log& AddUnsigned(absl::string_view key, std::uint64_t value);
  void AddRaw(absl::string_view key, absl::string_view value);

  const LogLevel level_;
  const bool enabled_;
  const bool json_;
  std::string line_;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_LOG_H_
