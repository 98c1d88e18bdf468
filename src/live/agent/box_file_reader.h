// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "evidence/black_box/black_box_parse.h"

namespace tacet {

// A box that somebody may be writing right now. Read with pread, not mapped: another user may cut the file at any
// moment, and touching a mapping beyond its end would end the agent.
class BoxFileReader {
 public:
  static Result<BoxFileReader> Open(const std::string& path);
  // Below an open folder. What it is and whose is asked of the open file, never of the name.
  static Result<BoxFileReader> OpenAt(int folder, const std::string& file);
  BoxFileReader(BoxFileReader&& other) noexcept;
  BoxFileReader& operator=(BoxFileReader&& other) noexcept;
  BoxFileReader(const BoxFileReader&) = delete;
  BoxFileReader& operator=(const BoxFileReader&) = delete;
  ~BoxFileReader();

  // A small box with the same header, the communicators, peers, the operations and network operations in flight with
  // their groups, and up to `newest` of the latest ring records: a valid box, to be read by ParseBlackBox. Where the
  // header cannot be trusted, the header alone, for which ParseBlackBox says what is wrong.
  std::string Copy(uint32_t newest) const;

  // Where a reader is in the ring.
  struct RingPlace {
    uint64_t next = 0;
    uint64_t stalled_at = UINT64_MAX;  // was not whole when last looked at
    uint64_t lapped = 0;               // overwritten before they were read
    uint64_t torn = 0;                 // never became whole
  };
  // Calls use(op) for every record published since the last time, each once.
  void Follow(RingPlace& place, const std::function<void(const box::Op&)>& use,
              uint64_t most_bytes = kMostRingBytes) const;
  static constexpr uint64_t kMostRingBytes = uint64_t{48} << 20;  // a look; the rest is read the next time

  // What a look has to read of the tables; 0 where the header tells no box. `sparse` becomes true for a file in memory
  // (tmpfs) whose pages were never written: the plugin reserves all of them, so such a box is made up.
  uint64_t TableBytes(bool* sparse) const;
  int64_t uid() const { return uid_; }  // the file's owner when it was opened

  bool IsStillAt(int folder, const std::string& path) const;  // false when another file has taken the name

 private:
  BoxFileReader() = default;
  std::string Read(uint64_t offset, uint64_t bytes) const;  // as much as there is

  int fd_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  int64_t uid_ = -1;
};

// The start of the header as ParseBlackBox judges it: trouble, or a header that can be trusted.
BlackBox ReadBoxHeader(std::string_view header_bytes);

}  // namespace tacet
