#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace autoloco {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "check failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace autoloco
