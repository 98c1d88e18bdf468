// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/shrink_guard.h"

namespace tacet {

// The bytes of a regular file as they were when it was opened. Directories, fifos, sockets and devices are refused with a
// clear message and never opened for reading, so that a fifo among the evidence cannot block the tool; so are the
// kernel's own files (/proc/kmsg), which have no size and may have no end.
//
// Most files are read into memory, and larger ones too if they were written to a moment ago: a log may be cut or written
// anew while it is looked at. The others are mapped under a ShrinkGuard: that costs no copy, and memory follows what is
// touched.
class MappedFile {
 public:
  static constexpr size_t kMostInMemory = size_t{16} << 20, kMostInMemoryIfFresh = size_t{64} << 20;
  static constexpr int64_t kFreshSeconds = 120;

  static Result<MappedFile> Open(const std::string& path);
  static Result<MappedFile> Open(const std::string& path, size_t most_in_memory);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::string_view bytes() const { return {data_, size_}; }
  // A large file that is mostly holes is read without them: so many bytes are missing from bytes().
  uint64_t hole_bytes() const { return hole_bytes_; }
  bool mapped() const { return fd_ >= 0; }
  // The file became shorter while it was read: the end of bytes() is missing, or zeros.
  bool Shrunk() const;
  int64_t modified_wall_ns() const { return modified_wall_ns_; }

 private:
  MappedFile() = default;
  static Result<MappedFile> Open(const std::string& path, size_t most_in_memory, size_t most_if_fresh);
  Result<bool> ReadAll(int fd, size_t size);
  Result<bool> ReadAroundHoles(int fd, size_t size, size_t most_bytes);
  Result<bool> Map(int fd, size_t size);

  std::unique_ptr<char[]> memory_;  // or else a mapping
  const char* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;  // of a mapping only, to ask for its size again
  ShrinkGuard guard_;
  bool short_read_ = false;
  uint64_t hole_bytes_ = 0;
  int64_t modified_wall_ns_ = 0;
};

// Lets go of the whole pages of a mapping's part that was read: they come back from the file if they are asked for again.
// For heap memory this would lose its content.
void GiveBackPages(std::string_view part_of_mapping);

}  // namespace tacet
