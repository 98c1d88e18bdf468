// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace tacet {

// A member of a tar as it is read.
struct TarMember {
  std::string name;
  std::string bytes;
  int64_t modified_s = 0;
  uint64_t size = 0;  // as told; more than `bytes` where it was larger than wanted
  bool plain = true;  // no link, folder or device
  bool cut = false;   // the stream ended inside it
};

// Reads the tar of another machine, member by member: hostile input. `read` fills a buffer and tells how many bytes it
// got, 0 at the end. A member is kept up to `most_bytes`; the rest of it is passed over.
class TarReader {
 public:
  TarReader(std::function<size_t(char*, size_t)> read, uint64_t most_bytes)
      : read_(std::move(read)), most_bytes_(most_bytes) {}
  bool Next(TarMember* member);
  bool complete() const { return complete_; }  // the end mark was seen
  const std::string& problem() const { return problem_; }

 private:
  bool Fill(char* block, size_t size);
  bool Body(uint64_t size, uint64_t keep, std::string* bytes);

  std::function<size_t(char*, size_t)> read_;
  uint64_t most_bytes_;
  bool complete_ = false;
  std::string problem_;
};

}  // namespace tacet
