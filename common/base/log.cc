#include "common/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "nlohmann/json.hpp"

namespace autoloco {
namespace {

std::atomic<LogLevel> least_level{LogLevel::kInfo};
std::atomic<LogFormat> log_format{LogFormat::kText};

struct Output {
  Mutex mutex;
  LogHook* hook ABSL_GUARDED_BY(mutex) = nullptr;
};

Output& TheOutput() {
  static Output* const output = new Output;  // never destroyed: threads may log while statics are
  return *output;
}

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "UNKNOWN";
}

bool IsJson() { return log_format.load(std::memory_order_relaxed) == LogFormat::kJson; }

std::string JsonQuoted(absl::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// As it is when it is one plain word, quoted and escaped otherwise.
std::string TextValue(absl::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) {
    if (c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '\\' || c == '=') plain = false;
  }
  return plain ? std::string(text) : absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

void WriteAll(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDERR_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nowhere left to complain
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void ConfigureLog(LogLevel least, LogFormat format) {
  least_level.store(least, std::memory_order_relaxed);
  log_format.store(format, std::memory_order_relaxed);
}

bool LogEnabled(LogLevel level) { return level >= least_level.load(std::memory_order_relaxed); }

void SetLogHook(LogHook* hook) {
  Output& output = TheOutput();
  MutexLock lock(&output.mutex);
  output.hook = hook;
}

Log::Log(LogLevel level, absl::string_view event) : level_(level), enabled_(LogEnabled(level)), json_(IsJson()) {
  if (!enabled_) return;
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  if (json_) {
    line_ =
        absl::StrCat("{\"time\":\"", time, "\",\"level\":\"", LevelName(level_), "\",\"event\":", JsonQuoted(event));
  } else {
    line_ = absl::StrCat(time, " ", LevelName(level_), " ", event);
  }
}

Log::~Log() {
  if (!enabled_) return;
  absl::StrAppend(&line_, json_ ? "}\n" : "\n");
  Output& output = TheOutput();
  MutexLock lock(&output.mutex);
  if (output.hook != nullptr) output.hook->BeforeLine();
  WriteAll(line_);
  if (output.hook != nullptr) output.hook->AfterLine();
}

Log& Log::Add(absl::string_view key, absl::string_view value) {
  if (enabled_) AddRaw(key, json_ ? JsonQuoted(value) : TextValue(value));
  return *this;
}

Log& Log::Add(absl::string_view key, double value) {
  if (!enabled_) return *this;
  const std::string text = absl::StrFormat("%.7g", value);
  AddRaw(key, json_ && !std::isfinite(value) ? JsonQuoted(text) : text);  // JSON has no nan and no inf
  return *this;
}

Log& Log::Add(absl::string_view key, bool value) {
  if (enabled_) AddRaw(key, value ? "true" : "false");
  return *this;
}

Log& Log::AddSigned(absl::string_view key, std::int64_t value) {
  if (enabled_) AddRaw(key, absl::StrCat(value));
  return *this;
}

Log& Log::AddUnsigned(absl::string_view key, std::uint64_t value) {
  if (enabled_) AddRaw(key, absl::StrCat(value));
  return *this;
}

void Log::AddRaw(absl::string_view key, absl::string_view value) {
  if (json_) {
    absl::StrAppend(&line_, ",", JsonQuoted(key), ":", value);
  } else {
    absl::StrAppend(&line_, " ", key, "=", value);
  }
}

}  // namespace autoloco
