// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacet {

// A regular file mapped read-only. Directories, fifos, sockets and devices are refused with a clear message and never
// opened for reading, so that a fifo among the evidence cannot block the tool.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  std::string_view bytes() const { return {data_, size_}; }
  int64_t modified_wall_ns() const { return modified_wall_ns_; }

 private:
  MappedFile() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_wall_ns_ = 0;
};

// Lets go of the whole pages of a mapping's part that was read: they come back from the file if they are asked for again.
// For heap memory this would lose its content.
void GiveBackPages(std::string_view part_of_mapping);

}  // namespace tacet
