#include "common/rpc/bulk_wire.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco {
namespace {

// Protobuf's wire types.
enum class WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr std::size_t kVarintBytesMax = 10;
constexpr std::uint64_t kFieldNumberMax = (std::uint64_t{1} << 29) - 1;

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed message: ", what));
}

// Reads bytes that lie in several pieces, up to an end that may lie before theirs.
class Cursor {
 public:
  explicit Cursor(std::span<const absl::string_view> pieces) : pieces_(pieces) {
    for (const absl::string_view piece : pieces) left_ += piece.size();
  }

  std::uint64_t left() const { return left_; }

  absl::Status ReadVarint(std::uint64_t* value) {
    *value = 0;
    for (std::size_t i = 0; i < kVarintBytesMax; ++i) {
      if (left_ == 0) return Malformed("it ends inside a number");
      const auto byte = static_cast<std::uint8_t>(Next(1)[0]);
      if (i + 1 == kVarintBytesMax && byte > 1) break;
      *value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * i);
      if (byte < 0x80) return absl::OkStatus();
    }
    return Malformed("a number of more than 64 bits");
  }

  // Passes the next `count` bytes to `take`, piece by piece.
  template <typename Take>
  absl::Status Read(std::uint64_t count, const Take& take) {
    if (count > left_) return Malformed("a length beyond its end");
    while (count > 0) {
      const absl::string_view bytes = Next(count);
      take(bytes);
      count -= bytes.size();
    }
    return absl::OkStatus();
  }

  absl::Status Skip(std::uint64_t count) {
    return Read(count, [](absl::string_view) {});
  }

  // A cursor over the next `count` bytes. REQUIRES: so many are left.
  Cursor Part(std::uint64_t count) const {
    Cursor part = *this;
    part.left_ = count;
    return part;
  }

 private:
  // At least one and at most `most` bytes. REQUIRES: left() > 0.
  absl::string_view Next(std::uint64_t most) {
    while (pieces_[piece_].size() == offset_) {
      ++piece_;
      offset_ = 0;
    }
    const absl::string_view rest = pieces_[piece_].substr(offset_);
    const absl::string_view bytes = rest.substr(0, std::min({most, left_, std::uint64_t{rest.size()}}));
    offset_ += bytes.size();
    left_ -= bytes.size();
    return bytes;
  }

  std::span<const absl::string_view> pieces_;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;  // into that piece
  std::uint64_t left_ = 0;
};

struct Tag {
  std::uint64_t field = 0;
  WireType type = WireType::kVarint;
};

absl::Status ReadTag(Cursor* cursor, Tag* tag) {
  std::uint64_t number = 0;
  AUTOLOCO_RETURN_IF_ERROR(cursor->ReadVarint(&number));
  tag->field = number >> 3;
  tag->type = static_cast<WireType>(number & 7);
  if (tag->field == 0 || tag->field > kFieldNumberMax) return Malformed("a field that cannot be");
  return absl::OkStatus();
}

absl::Status SkipField(WireType type, Cursor* cursor) {
  std::uint64_t number = 0;
  switch (type) {
    case WireType::kVarint: return cursor->ReadVarint(&number);
    case WireType::kFixed64: return cursor->Skip(8);
    case WireType::kFixed32: return cursor->Skip(4);
    case WireType::kBytes: AUTOLOCO_RETURN_IF_ERROR(cursor->ReadVarint(&number)); return cursor->Skip(number);
  }
  return Malformed("a field of a type that is not known");
}

// Where the numbers and the data of a Chunk or LiveBlock go; field n is numbers[n - 1], the one after them the data.
struct DataFields {
  std::vector<std::uint64_t*> numbers;
  std::vector<absl::string_view>* data;
  std::size_t* data_bytes;
};

absl::Status ReadData(Cursor cursor, const DataFields& to) {
  for (std::uint64_t* number : to.numbers) *number = 0;
  to.data->clear();
  *to.data_bytes = 0;
  while (cursor.left() > 0) {
    Tag tag;
    AUTOLOCO_RETURN_IF_ERROR(ReadTag(&cursor, &tag));
    if (tag.field <= to.numbers.size() && tag.type == WireType::kVarint) {
      AUTOLOCO_RETURN_IF_ERROR(cursor.ReadVarint(to.numbers[tag.field - 1]));
    } else if (tag.field == to.numbers.size() + 1 && tag.type == WireType::kBytes) {
      std::uint64_t size = 0;
      AUTOLOCO_RETURN_IF_ERROR(cursor.ReadVarint(&size));
      to.data->clear();
      *to.data_bytes = size;
      AUTOLOCO_RETURN_IF_ERROR(cursor.Read(size, [&](absl::string_view bytes) { to.data->push_back(bytes); }));
    } else {
      AUTOLOCO_RETURN_IF_ERROR(SkipField(tag.type, &cursor));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadKind(BulkKind kind, Cursor part, BulkFields* fields) {
  fields->kind = kind;
  switch (kind) {
    case BulkKind::kHeader:
      if (part.left() > kBulkHeaderBytesMax) return Malformed(absl::StrCat("a header of ", part.left(), " bytes"));
      fields->header.clear();
      return part.Read(part.left(),
                       [&](absl::string_view bytes) { fields->header.append(bytes.data(), bytes.size()); });
    case BulkKind::kChunk: return ReadData(part, {{&fields->offset}, &fields->data, &fields->data_bytes});
    case BulkKind::kLiveBlock:
      return ReadData(part, {{&fields->block, &fields->version}, &fields->data, &fields->data_bytes});
    case BulkKind::kNone: break;
  }
  return absl::OkStatus();
}

void AppendVarint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendTag(std::uint64_t field, WireType type, std::string* out) {
  AppendVarint(field << 3 | static_cast<std::uint64_t>(type), out);
}

// As protobuf does, a number that is 0 is left out.
void AppendNumber(std::uint64_t field, std::uint64_t value, std::string* out) {
  if (value == 0) return;
  AppendTag(field, WireType::kVarint, out);
  AppendVarint(value, out);
}

// `inner`, and then `data_bytes` bytes as field `data_field`, as the message of this kind; without the data itself.
std::string Prefix(BulkKind kind, std::string inner, std::uint64_t data_field, std::uint64_t data_bytes) {
  if (data_bytes > 0) {
    AppendTag(data_field, WireType::kBytes, &inner);
    AppendVarint(data_bytes, &inner);
  }
  std::string prefix;
  AppendTag(static_cast<std::uint64_t>(kind), WireType::kBytes, &prefix);
  AppendVarint(inner.size() + data_bytes, &prefix);
  return prefix + inner;
}

}  // namespace

absl::Status ParseBulk(std::span<const absl::string_view> pieces, BulkFields* fields) {
  fields->kind = BulkKind::kNone;
  Cursor cursor(pieces);
  while (cursor.left() > 0) {
    Tag tag;
    AUTOLOCO_RETURN_IF_ERROR(ReadTag(&cursor, &tag));
    const bool known = tag.field <= static_cast<std::uint64_t>(BulkKind::kLiveBlock);
    if (!known || tag.type != WireType::kBytes) {
      AUTOLOCO_RETURN_IF_ERROR(SkipField(tag.type, &cursor));
      continue;
    }
    std::uint64_t size = 0;
    AUTOLOCO_RETURN_IF_ERROR(cursor.ReadVarint(&size));
    if (size > cursor.left()) return Malformed("a length beyond its end");
    AUTOLOCO_RETURN_IF_ERROR(ReadKind(static_cast<BulkKind>(tag.field), cursor.Part(size), fields));
    AUTOLOCO_RETURN_IF_ERROR(cursor.Skip(size));
  }
  return absl::OkStatus();
}

std::string ChunkPrefix(std::uint64_t offset, std::uint64_t data_bytes) {
  std::string inner;
  AppendNumber(1, offset, &inner);
  return Prefix(BulkKind::kChunk, std::move(inner), 2, data_bytes);
}

std::string LiveBlockPrefix(std::uint64_t block, std::uint64_t version, std::uint64_t data_bytes) {
  std::string inner;
  AppendNumber(1, block, &inner);
  AppendNumber(2, version, &inner);
  return Prefix(BulkKind::kLiveBlock, std::move(inner), 3, data_bytes);
}

std::string HeaderMessage(absl::string_view header) {
  std::string message;
  AppendTag(static_cast<std::uint64_t>(BulkKind::kHeader), WireType::kBytes, &message);
  AppendVarint(header.size(), &message);
  message.append(header.data(), header.size());
  return message;
}

}  // namespace autoloco
