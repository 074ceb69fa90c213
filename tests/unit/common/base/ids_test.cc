#include "common/base/ids.h"

#include <string>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(IdsTest, WorkerNames) {
  for (const std::string name : {"w0", "a", "Rack-3_gpu.1", "...", "0"}) EXPECT_TRUE(IsValidWorkerName(name)) << name;
  EXPECT_TRUE(IsValidWorkerName(std::string(64, 'x')));
  EXPECT_FALSE(IsValidWorkerName(std::string(65, 'x')));
  for (const std::string name : {"", " ", "a b", "a/b", "a\n", "caf\xc3\xa9", "a=b", "\"", "a:b"}) {
    EXPECT_FALSE(IsValidWorkerName(name)) << name;
  }
}

}  // namespace
}  // namespace autoloco
