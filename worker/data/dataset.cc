// The text is the concatenation of the files in name order; a window may cross from one file into the next. Its first
// part trains, its last part is held out, and no window crosses that border.
#include "worker/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/memory_map.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace autoloco::worker {
namespace {

namespace fs = std::filesystem;

// Part of the run's reproducibility: don't change.
constexpr std::uint64_t kShuffleStream = 0x64617461;

// At most 4 MiB of a file go into the fingerprint: all of a file up to that size, else evenly spread pieces.
constexpr std::uint64_t kPieceBytes = 64 << 10;
constexpr std::uint64_t kPieces = 64;

struct MappedFile {
  MemoryMap map;
  std::uint64_t begin = 0;  // of its first byte in the text
};

absl::Status WrapError(const std::string& path, const std::error_code& error) {
  const std::string text = absl::StrCat("data ", path, ": ", error.message());
  return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
}

// The file itself, or the regular files under the folder in the byte order of their relative paths.
absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat("data ", path, ": want a text file or a folder of them, found nothing"));
  }
  if (error) return WrapError(path, error);
  if (status.type() == fs::file_type::regular) return std::vector<std::string>{path};
  if (status.type() != fs::file_type::directory) {
    return absl::InvalidArgumentError(absl::StrCat("data ", path, ": want a text file or a folder, found neither"));
  }
  std::vector<std::string> files;
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;  // a dangling link is no regular file
    if (entry->is_regular_file(unreadable)) files.push_back(entry->path().generic_string());
  }
  if (error) return WrapError(path, error);
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("data ", path, ": want text files in the folder, found none"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void AppendFingerprint(std::span<const std::byte> bytes, std::vector<std::uint64_t>* parts) {
  parts->push_back(bytes.size());
  if (bytes.size() <= kPieces * kPieceBytes) {
    parts->push_back(Hash64(bytes));
    return;
  }
  // From the first piece of the file to the last; the step between them is exact below 2^58 bytes.
  const std::uint64_t span = bytes.size() - kPieceBytes;
  for (std::uint64_t piece = 0; piece < kPieces; ++piece) {
    parts->push_back(Hash64(bytes.subspan(span * piece / (kPieces - 1), kPieceBytes)));
  }
}

class TextDataset final : public Dataset {
 public:
  TextDataset(std::vector<MappedFile> files, const DatasetConfig& config, std::uint64_t byte_count)
      : files_(std::move(files)), context_(config.context), seed_(config.seed), token_count_(byte_count) {
    const double held_out = std::floor(static_cast<double>(byte_count) * config.held_out_fraction);
    training_count_ = byte_count - std::min(byte_count, static_cast<std::uint64_t>(held_out));
    std::vector<std::uint64_t> parts;
    for (const MappedFile& file : files_) AppendFingerprint(file.map.bytes(), &parts);
    fingerprint_ = Hash64(std::as_bytes(std::span<const std::uint64_t>(parts)));
  }

  std::uint64_t token_count() const override { return token_count_; }
  std::uint64_t sample_count() const override { return Windows(training_count_); }
  std::uint64_t held_out_count() const override { return Windows(held_out_size()); }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  std::uint64_t training_size() const { return training_count_; }
  std::uint64_t held_out_size() const { return token_count_ - training_count_; }

  void ReadSample(std::uint64_t index, std::span<std::int32_t> tokens) const override {
    const std::uint64_t epoch = index / sample_count();
    const Permutation order(sample_count(), Mix(seed_, kShuffleStream, epoch));
    Read(order.At(index % sample_count()) * context_, tokens);
  }

  void ReadHeldOut(std::uint64_t index, std::span<std::int32_t> tokens) const override {
    AUTOLOCO_CHECK(index < held_out_count());
    Read(training_count_ + index * context_, tokens);
  }

 private:
  // Windows of context + 1 tokens, each beginning where the targets of the one before end.
  std::uint64_t Windows(std::uint64_t tokens) const { return tokens == 0 ? 0 : (tokens - 1) / context_; }

  // The text from `begin` on.
  void Read(std::uint64_t begin, std::span<std::int32_t> tokens) const {
    AUTOLOCO_CHECK(tokens.size() == std::size_t{context_} + 1);
    AUTOLOCO_CHECK(begin + tokens.size() <= token_count_);
    auto file = std::upper_bound(files_.begin(), files_.end(), begin,
                                 [](std::uint64_t at, const MappedFile& other) { return at < other.begin; });
    --file;  // the last file that begins at or before `begin`; the first begins at 0
    std::size_t done = 0;
    for (; done < tokens.size(); ++file) {
      const std::span<const std::byte> rest = file->map.bytes().subspan(begin + done - file->begin);
      const std::size_t count = std::min(rest.size(), tokens.size() - done);
      std::transform(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count), tokens.begin() + done,
                     [](std::byte byte) { return std::to_integer<std::int32_t>(byte); });
      done += count;
    }
  }

  const std::vector<MappedFile> files_;  // none empty; in text order
  const std::uint32_t context_;
  const std::uint64_t seed_;
  const std::uint64_t token_count_;
  std::uint64_t training_count_ = 0;  // tokens before the held-out part
  std::uint64_t fingerprint_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const DatasetConfig& config) {
  if (config.context == 0) return absl::InvalidArgumentError("data: want a context of at least 1, got 0");
  if (!(config.held_out_fraction >= 0 && config.held_out_fraction < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data: want a held-out fraction in [0, 1), got ", config.held_out_fraction));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListFiles(config.path));
  std::vector<MappedFile> files;
  std::uint64_t byte_count = 0;
  for (const std::string& path : paths) {
    AUTOLOCO_ASSIGN_OR_RETURN(MemoryMap map, MemoryMap::Open(path));
    if (map.bytes().empty()) {
      return absl::InvalidArgumentError(absl::StrCat("data file ", path, ": want text, found an empty file"));
    }
    const std::uint64_t size = map.bytes().size();
    files.push_back({std::move(map), byte_count});
    byte_count += size;
  }
  auto dataset = std::make_unique<TextDataset>(std::move(files), config, byte_count);
  if (dataset->sample_count() == 0 || (config.held_out_fraction > 0 && dataset->held_out_count() == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data ", config.path, ": too short: want at least ", std::uint64_t{config.context} + 1,
        " bytes (one window) for training and, unless the held-out fraction is 0, as many held out; found ",
        dataset->training_size(), " and ", dataset->held_out_size()));
  }
  return std::unique_ptr<Dataset>(std::move(dataset));
}

std::uint64_t SpreadIndex(std::uint64_t i, std::uint64_t wanted, std::uint64_t available) {
  AUTOLOCO_CHECK(i < wanted);
  AUTOLOCO_CHECK(i < available);
  if (available <= wanted) return i;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * available / wanted);
}

}  // namespace autoloco::worker
