// Reads and writes safetensors files (Hugging Face's format): u64 header length, a JSON header, the tensors' bytes.
// Files come from other people: every size is checked before it is used.
#ifndef AUTOLOCO_COMMON_TENSOR_SAFETENSORS_H_
#define AUTOLOCO_COMMON_TENSOR_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/memory_map.h"
#include "common/tensor/layout.h"

namespace autoloco {

// Largest header that is read: the limit of the reference implementation.
inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;

// A tensor to be written: borrowed values, row-major fp32.
struct TensorValues {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::span<const float> values;
};

// A tensor whose values come later.
struct TensorShape {
  std::string name;
  std::vector<std::uint64_t> shape;  // row-major fp32
};

// Writes a file whose values come in pieces and in any order. Movable. Not thread-safe.
class SafetensorsWriter {
 public:
  // Begins a new `path`; the old one stays until Commit (see AtomicFileWriter). The tensors' values make one vector, in
  // the given order. `metadata` and errors as WriteSafetensors.
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path, std::span<const TensorShape> tensors,
                                                  const std::map<std::string, std::string>& metadata);
  // Values [first, first + values.size()) of that vector. REQUIRES: inside it.
  absl::Status Write(std::uint64_t first, std::span<const float> values);
  // Puts the file in its place, durably. REQUIRES: all values have been written.
  absl::Status Commit() { return file_.Commit(); }

 private:
  SafetensorsWriter(AtomicFileWriter file, std::uint64_t data_offset)
      : file_(std::move(file)), data_offset_(data_offset) {}

  AtomicFileWriter file_;
  std::uint64_t data_offset_;  // of the first value
};

// The tensors of `layout`, whose flat vector the values are.
std::vector<TensorShape> TensorShapes(const Layout& layout);

// Replaces `path` in one atomic step (see WriteFileAtomically). Tensors are written as F32 in the given order.
// `metadata` goes into __metadata__ next to {"format": "pt"}. INVALID_ARGUMENT: a shape that does not fit its values,
// a name used twice or "__metadata__"; errors of the file system as FileError.
absl::Status WriteSafetensors(const std::string& path, std::span<const TensorValues> tensors,
                              const std::map<std::string, std::string>& metadata);

// The tensors of `layout`, whose flat vector is `values`. REQUIRES: values.size() == layout.value_count().
absl::Status SaveParameters(const std::string& path, const Layout& layout, std::span<const float> values,
                            const std::map<std::string, std::string>& metadata);

enum class TensorType { kF32, kBf16, kF16 };

// A tensor of an open file.
struct StoredTensor {
  std::string name;
  TensorType type;
  std::vector<std::uint64_t> shape;  // may be empty (a scalar) or hold zeros, as the format allows
  std::uint64_t count;               // values
  std::span<const std::byte> bytes;  // lives as long as the file
};

// An open, memory-mapped file whose header has been checked: sizes in bounds, tensors tile the data without gap or
// overlap. Movable. Immutable; thread-safe.
class SafetensorsFile {
 public:
  // INVALID_ARGUMENT naming the file and what is wrong with it; errors of the file system as FileError.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of their bytes
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is none of that name.
  const StoredTensor* Find(absl::string_view name) const;

 private:
  SafetensorsFile() = default;

  MemoryMap map_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t> index_by_name_;
  std::map<std::string, std::string> metadata_;
};

// Converts to fp32 (exact for every type). REQUIRES: values.size() == tensor.count.
void CopyValues(const StoredTensor& tensor, std::span<float> values);

// Fills `values` (layout order) from a file that has exactly the tensors of `layout`, in any order. INVALID_ARGUMENT
// naming file and tensor at the first that is missing, unknown or of another shape; `values` is then unchanged.
// REQUIRES: values.size() == layout.value_count().
absl::Status LoadParameters(const std::string& path, const Layout& layout, std::span<float> values);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_SAFETENSORS_H_
