// The payloads of pushes on the disk.
//
//   spool/incoming/7                       one that is coming in; gone after a restart
//   spool/0000000012/dc1#3-0               the delta of worker dc1, incarnation 3, for round 12, fragment 0
//
// A file gets its second name by a rename, after its bytes are on the disk: under that name it is whole. Room is taken
// before the first byte comes, so a full disk is an error there. Bytes are written through the file and read through a
// mapping that is never written to: the disk takes pages of such a mapping without a fault or a flush of address
// translations for each.
#ifndef AUTOLOCO_SERVER_STORAGE_SPOOL_H_
#define AUTOLOCO_SERVER_STORAGE_SPOOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/memory_map.h"
#include "server/core/types.h"

namespace autoloco::server {

// One payload: a file, and its bytes as memory. They stay readable for as long as it lives, whatever becomes of the
// file. One thread at a time, but for Write and StartWriting.
class SpoolFile {
 public:
  // Removes the file unless it was accepted.
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  std::span<const std::byte> bytes() const { return map_.bytes(); }

  // It has its key, and stays when this object goes.
  bool accepted() const { return path_.empty(); }

  // Puts `bytes` at `offset`; threads may write different places at once. Errors as FileError.
  // REQUIRES: it lies inside, and the file was not accepted.
  absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes);

  // The disk begins to write what is there; Accept waits for the rest. Does not wait for the disk, but tells it of
  // every page: tens of milliseconds for 100 MB. What goes wrong Accept says.
  void StartWriting();

 private:
  friend class Spool;
  SpoolFile(std::string path, int descriptor, MemoryMap map)
      : path_(std::move(path)), descriptor_(descriptor), map_(std::move(map)) {}
  // Puts the bytes on the disk; whoever fails may try again.
  absl::Status Sync();

  std::string path_;  // empty: accepted
  const int descriptor_;
  MemoryMap map_;
  bool sync_failed_ = false;
};

// Immutable; thread-safe, but for two calls about the same key.
class Spool {
 public:
  struct Acceptance {
    PushKey key;
    SpoolFile* file = nullptr;
  };
  struct Entry {
    PushKey key;
    std::uint64_t bytes = 0;
  };

  // Makes `folder` where it is missing and removes what was coming in when the process before ended. Errors as
  // FileError.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& folder);
  // Looks at what is there and changes nothing.
  static std::unique_ptr<Spool> OpenForReading(const std::string& folder);

  // Room for a payload of `bytes`. RESOURCE_EXHAUSTED: the disk is full, or memory; the same trouble has the same text.
  // REQUIRES: bytes > 0.
  absl::StatusOr<std::unique_ptr<SpoolFile>> Create(std::uint64_t bytes);
  // Gives the files their keys, durably: they survive whatever happens after OK. A file that is there under the same
  // key is replaced. After an error some may have their keys; the same call may be made again.
  absl::Status Accept(std::span<const Acceptance> files);

  // The payload of `key`. NOT_FOUND when there is none; errors as FileError.
  absl::StatusOr<MemoryMap> Read(const PushKey& key) const;
  // All accepted ones, in no order. What has another form of name is not looked at.
  absl::StatusOr<std::vector<Entry>> List() const;

  // Removes one payload, or all of rounds below `round`; fine where there is none.
  absl::Status Drop(const PushKey& key);
  absl::Status DropBefore(Round round);

 private:
  explicit Spool(std::string folder) : folder_(std::move(folder)) {}
  std::string RoundFolder(Round round) const;
  std::string PathOf(const PushKey& key) const;
  absl::Status Publish(const Acceptance& acceptance);

  const std::string folder_;
  std::atomic<std::uint64_t> next_{0};  // name of the next incoming file
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_SPOOL_H_
