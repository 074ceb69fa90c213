// A folder of its own for a test, removed with all that is in it.
#ifndef AUTOLOCO_TESTS_SUPPORT_TEMP_FOLDER_H_
#define AUTOLOCO_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "common/base/check.h"

namespace autoloco {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "autoloco_test_XXXXXX";
    AUTOLOCO_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace autoloco

#endif  // AUTOLOCO_TESTS_SUPPORT_TEMP_FOLDER_H_
