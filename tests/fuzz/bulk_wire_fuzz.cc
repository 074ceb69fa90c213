// One bulk message, in pieces as the network gives them: refused, or fields that lie inside it.
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/rpc/bulk_wire.h"
#include "tests/fuzz/fuzz_input.h"

namespace autoloco::test {
namespace {

void Parse(const std::string& message, std::size_t piece_bytes) {
  std::vector<absl::string_view> pieces;
  for (std::size_t offset = 0; offset < message.size(); offset += piece_bytes) {
    pieces.push_back(absl::string_view(message).substr(offset, piece_bytes));
  }
  BulkFields fields;
  if (!ParseBulk(pieces, &fields).ok()) return;
  AUTOLOCO_CHECK(fields.header.size() <= kBulkHeaderBytesMax);
  if (fields.kind != BulkKind::kChunk && fields.kind != BulkKind::kLiveBlock) return;
  std::size_t data_bytes = 0;
  for (const absl::string_view data : fields.data) {
    AUTOLOCO_CHECK(!data.empty());
    AUTOLOCO_CHECK(data.data() >= message.data());
    AUTOLOCO_CHECK(data.data() + data.size() <= message.data() + message.size());
    data_bytes += data.size();
  }
  AUTOLOCO_CHECK(data_bytes == fields.data_bytes);
}

}  // namespace
}  // namespace autoloco::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  autoloco::test::FuzzInput input(data, size);
  const std::size_t piece_bytes = input.Byte() % 16 + 1;
  autoloco::test::Parse(input.Rest(), piece_bytes);
  return 0;
}
