// Assertions that stay on in every build. For programmer errors only: never on bytes from the network or the disk.
#ifndef AUTOLOCO_COMMON_BASE_CHECK_H_
#define AUTOLOCO_COMMON_BASE_CHECK_H_

namespace autoloco {

// Writes one line to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace autoloco

#define AUTOLOCO_CHECK(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::autoloco::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // AUTOLOCO_COMMON_BASE_CHECK_H_
