// A safetensors file: opened or refused; what is opened can be read to its last value.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/safetensors.h"

namespace autoloco::test {
namespace {

// The whole file lies in memory; the path names it.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(memfd_create("safetensors", 0)) {
    AUTOLOCO_CHECK(descriptor_ >= 0);
    AUTOLOCO_CHECK(write(descriptor_, data, size) == static_cast<ssize_t>(size));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

 private:
  int descriptor_;
};

void ReadAll(const SafetensorsFile& file, std::size_t file_bytes) {
  for (const StoredTensor& tensor : file.tensors()) {
    AUTOLOCO_CHECK(tensor.count <= file_bytes);
    AUTOLOCO_CHECK(file.Find(tensor.name) != nullptr);
    std::vector<float> values(tensor.count);
    CopyValues(tensor, values);
  }
}

}  // namespace
}  // namespace autoloco::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const autoloco::test::MemoryFile memory(data, size);
  const auto file = autoloco::SafetensorsFile::Open(memory.path());
  if (file.ok()) autoloco::test::ReadAll(*file, size);
  return 0;
}
