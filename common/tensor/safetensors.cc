#include "common/tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace autoloco {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian on disk and in memory");

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr std::uint64_t kHeaderAlignment = 8;

using Json = nlohmann::json;

std::string ShapeText(const std::vector<std::uint64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), ")");
}

// False when the product does not fit 64 bits.
bool CountValues(const std::vector<std::uint64_t>& shape, std::uint64_t* count) {
  *count = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(*count, extent, count)) return false;
  }
  return true;
}

std::string Printable(absl::string_view name) { return absl::CHexEscape(name.substr(0, 300)); }

bool ParseType(const std::string& text, TensorType* type, std::uint64_t* value_bytes) {
  *value_bytes = text == "F32" ? 4 : 2;
  if (text == "F32") *type = TensorType::kF32;
  if (text == "BF16") *type = TensorType::kBf16;
  if (text == "F16") *type = TensorType::kF16;
  return text == "F32" || text == "BF16" || text == "F16";
}

bool ParseNumbers(const Json& array, std::vector<std::uint64_t>* numbers) {
  if (!array.is_array()) return false;
  for (const Json& number : array) {
    if (!number.is_number_unsigned()) return false;
    numbers->push_back(number.get<std::uint64_t>());
  }
  return true;
}

// One entry of the header: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}.
absl::StatusOr<StoredTensor> ParseTensor(const std::string& name, const Json& entry, std::span<const std::byte> data) {
  const auto refuse = [&name](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(name), ": ", what));
  };
  if (!entry.is_object()) return refuse("want an object");
  const auto dtype = entry.find("dtype");
  const auto shape = entry.find("shape");
  const auto offsets_entry = entry.find("data_offsets");
  if (dtype == entry.end() || shape == entry.end() || offsets_entry == entry.end() || entry.size() != 3) {
    return refuse("want dtype, shape and data_offsets");
  }
  StoredTensor tensor{name, TensorType::kF32, {}, 0, {}};
  std::uint64_t value_bytes = 0;
  if (!dtype->is_string() || !ParseType(dtype->get_ref<const std::string&>(), &tensor.type, &value_bytes)) {
    return refuse(absl::StrCat("want dtype F32, BF16 or F16, got ",
                               dtype->is_string() ? Printable(dtype->get_ref<const std::string&>()) : "no text"));
  }
  if (!ParseNumbers(*shape, &tensor.shape)) return refuse("want a shape of whole numbers");
  std::uint64_t bytes = 0;
  if (!CountValues(tensor.shape, &tensor.count) || __builtin_mul_overflow(tensor.count, value_bytes, &bytes)) {
    return refuse(absl::StrCat("shape ", ShapeText(tensor.shape), " is beyond 64 bits"));
  }
  std::vector<std::uint64_t> offsets;
  if (!ParseNumbers(*offsets_entry, &offsets) || offsets.size() != 2) return refuse("want two data_offsets");
  if (offsets[0] > offsets[1] || offsets[1] > data.size()) {
    return refuse(
        absl::StrCat("data_offsets [", offsets[0], ", ", offsets[1], "] leave the data of ", data.size(), " bytes"));
  }
  if (offsets[1] - offsets[0] != bytes) {
    return refuse(absl::StrCat("shape ", ShapeText(tensor.shape), " needs ", bytes, " bytes, data_offsets give ",
                               offsets[1] - offsets[0]));
  }
  tensor.bytes = data.subspan(offsets[0], bytes);
  return tensor;
}

// Parses the header. A key that comes twice is an error (JSON libraries would silently keep one of them), and nesting
// beyond what the format needs is dropped while it is read, so that it cannot size an allocation.
absl::StatusOr<Json> ParseHeader(absl::string_view text) {
  std::set<std::string> keys;
  std::string twice;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens = event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start;
    if (opens && depth > 2) {
      too_deep = true;
      return false;
    }
    if (depth == 1 && event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.insert(key).second) twice = key;
    }
    return true;
  };
  Json header = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object())
    return absl::InvalidArgumentError("the header is not a JSON object");
  if (too_deep) return absl::InvalidArgumentError("the header nests too deep");
  if (!twice.empty()) return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(twice), ": named twice"));
  return header;
}

absl::Status ParseMetadata(const Json& entry, std::map<std::string, std::string>* metadata) {
  if (!entry.is_object()) return absl::InvalidArgumentError("__metadata__ is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("__metadata__ ", Printable(key), " is not text"));
    }
    (*metadata)[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Splits the file into header text and data.
absl::Status Split(std::span<const std::byte> file, absl::string_view* header, std::span<const std::byte>* data) {
  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof(header_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("want at least 8 bytes, got ", file.size()));
  }
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const std::uint64_t rest = file.size() - sizeof(header_bytes);
  if (header_bytes > rest || header_bytes > kSafetensorsHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a header of ", header_bytes, " bytes; the file has ", rest,
                                                   " after the length, the limit is ", kSafetensorsHeaderBytesMax));
  }
  *header = absl::string_view(reinterpret_cast<const char*>(file.data()) + sizeof(header_bytes), header_bytes);
  *data = file.subspan(sizeof(header_bytes) + header_bytes);
  return absl::OkStatus();
}

// The tensors, sorted by where they lie, must cover the data exactly.
absl::Status CheckTiling(const std::vector<StoredTensor>& tensors, std::span<const std::byte> data) {
  const std::byte* end = data.data();
  for (const StoredTensor& tensor : tensors) {
    if (tensor.bytes.data() != end) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(tensor.name), ": want its bytes at offset ",
                                                     end - data.data(), ", where the one before ends, got ",
                                                     tensor.bytes.data() - data.data()));
    }
    end += tensor.bytes.size();
  }
  if (end != data.data() + data.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors take ", end - data.data(), " bytes, the file has ", data.size()));
  }
  return absl::OkStatus();
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1Fu;
  const std::uint32_t fraction = half & 0x3FFu;
  if (exponent == 0x1Fu) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in fp32
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

absl::StatusOr<std::string> MakeHeader(std::span<const TensorShape> tensors,
                                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  nlohmann::ordered_json& notes = header[std::string(kMetadataKey)];
  notes["format"] = "pt";
  for (const auto& [key, value] : metadata) notes[key] = value;
  std::set<absl::string_view> names = {kMetadataKey};
  std::uint64_t offset = 0;
  for (const TensorShape& tensor : tensors) {
    std::uint64_t count = 0;
    if (!CountValues(tensor.shape, &count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", Printable(tensor.name), ": shape ", ShapeText(tensor.shape), " is too large"));
    }
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Printable(tensor.name), ": named twice"));
    }
    const std::uint64_t end = offset + count * sizeof(float);
    header.emplace(tensor.name,
                   nlohmann::ordered_json{{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string text = header.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  while (text.size() % kHeaderAlignment != 0) text.push_back(' ');  // the format allows trailing spaces
  return text;
}

}  // namespace

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path,
                                                            std::span<const TensorShape> tensors,
                                                            const std::map<std::string, std::string>& metadata) {
  auto header = MakeHeader(tensors, metadata);
  if (!header.ok()) return WithPath(path, header.status());
  const std::uint64_t header_bytes = header->size();
  AUTOLOCO_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  AUTOLOCO_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span<const std::uint64_t>(&header_bytes, 1))));
  AUTOLOCO_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span<const char>(*header))));
  return SafetensorsWriter(std::move(file), sizeof(header_bytes) + header_bytes);
}

absl::Status SafetensorsWriter::Write(std::uint64_t first, std::span<const float> values) {
  return file_.WriteAt(data_offset_ + first * sizeof(float), std::as_bytes(values));
}

std::vector<TensorShape> TensorShapes(const Layout& layout) {
  std::vector<TensorShape> shapes;
  shapes.reserve(layout.tensors().size());
  for (const TensorEntry& tensor : layout.tensors()) shapes.push_back({tensor.spec.name, tensor.spec.shape});
  return shapes;
}

absl::Status WriteSafetensors(const std::string& path, std::span<const TensorValues> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<TensorShape> shapes;
  for (const TensorValues& tensor : tensors) {
    std::uint64_t count = 0;
    if (!CountValues(tensor.shape, &count) || count != tensor.values.size()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor ", Printable(tensor.name), ": shape ",
                                                     ShapeText(tensor.shape), " for ", tensor.values.size(),
                                                     " values"));
    }
    shapes.push_back({tensor.name, tensor.shape});
  }
  AUTOLOCO_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, shapes, metadata));
  std::uint64_t first = 0;
  for (const TensorValues& tensor : tensors) {
    AUTOLOCO_RETURN_IF_ERROR(writer.Write(first, tensor.values));
    first += tensor.values.size();
  }
  return writer.Commit();
}

absl::Status SaveParameters(const std::string& path, const Layout& layout, std::span<const float> values,
                            const std::map<std::string, std::string>& metadata) {
  AUTOLOCO_CHECK(values.size() == layout.value_count());
  AUTOLOCO_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, TensorShapes(layout), metadata));
  AUTOLOCO_RETURN_IF_ERROR(writer.Write(0, values));
  return writer.Commit();
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  SafetensorsFile file;
  AUTOLOCO_ASSIGN_OR_RETURN(file.map_, MemoryMap::Open(path));
  absl::string_view header_text;
  std::span<const std::byte> data;
  const absl::Status split = Split(file.map_.bytes(), &header_text, &data);
  if (!split.ok()) return WithPath(path, split);
  auto header = ParseHeader(header_text);
  if (!header.ok()) return WithPath(path, header.status());
  for (const auto& [name, entry] : header->items()) {
    if (absl::string_view(name) == kMetadataKey) {
      const absl::Status status = ParseMetadata(entry, &file.metadata_);
      if (!status.ok()) return WithPath(path, status);
      continue;
    }
    auto tensor = ParseTensor(name, entry, data);
    if (!tensor.ok()) return WithPath(path, tensor.status());
    file.tensors_.push_back(*std::move(tensor));
  }
  std::stable_sort(file.tensors_.begin(), file.tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  const absl::Status tiling = CheckTiling(file.tensors_, data);
  if (!tiling.ok()) return WithPath(path, tiling);
  for (std::size_t i = 0; i < file.tensors_.size(); ++i) file.index_by_name_[file.tensors_[i].name] = i;
  return file;
}

const StoredTensor* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = index_by_name_.find(std::string(name));
  return found == index_by_name_.end() ? nullptr : &tensors_[found->second];
}

void CopyValues(const StoredTensor& tensor, std::span<float> values) {
  AUTOLOCO_CHECK(values.size() == tensor.count);
  if (tensor.type == TensorType::kF32) {
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), values.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + 2 * i, sizeof(bits));  // the file does not align its tensors
    values[i] = tensor.type == TensorType::kBf16 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)
                                                 : HalfToFloat(bits);
  }
}

absl::Status LoadParameters(const std::string& path, const Layout& layout, std::span<float> values) {
  AUTOLOCO_CHECK(values.size() == layout.value_count());
  AUTOLOCO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::set<absl::string_view> known;
  for (const TensorEntry& tensor : layout.tensors()) {
    known.insert(tensor.spec.name);
    const StoredTensor* const stored = file.Find(tensor.spec.name);
    if (stored == nullptr) return absl::InvalidArgumentError(absl::StrCat(path, ": no tensor ", tensor.spec.name));
    if (stored->shape != tensor.spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor ", tensor.spec.name, ": want shape ",
                                                     ShapeText(tensor.spec.shape), ", got ", ShapeText(stored->shape)));
    }
  }
  for (const StoredTensor& stored : file.tensors()) {
    if (known.count(stored.name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", Printable(stored.name), " is not part of the model"));
    }
  }
  for (const TensorEntry& tensor : layout.tensors()) {
    CopyValues(*file.Find(tensor.spec.name), values.subspan(tensor.offset, tensor.count));
  }
  return absl::OkStatus();
}

}  // namespace autoloco
