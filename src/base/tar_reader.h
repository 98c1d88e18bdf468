// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tacet {

// A member of a tar as it is read.
struct TarMember {
  std::string name;
  std::string bytes;
  int64_t modified_s = 0;
  uint64_t size = 0;  // as told; more than `bytes` where it was larger than wanted
  bool plain = true;  // no link, folder or device
  bool folder = false;
  bool sparse = false;  // holds a map of its holes too, which is not read
  bool cut = false;     // the stream ended inside it
};

// Reads the tar of another machine, member by member: hostile input. `read` fills a buffer and tells how many bytes it
// got, 0 at the end. A member is kept up to `most_bytes`; the rest of it is passed over. With OnDamage::look_further a
// damaged header costs its own member only: the next header is sought.
class TarReader {
 public:
  enum class OnDamage { stop, look_further };
  TarReader(std::function<size_t(char*, size_t)> read, uint64_t most_bytes, OnDamage on_damage = OnDamage::stop)
      : read_(std::move(read)), most_bytes_(most_bytes), on_damage_(on_damage) {}
  bool Next(TarMember* member);
  bool complete() const { return complete_; }  // the end mark was seen
  const std::string& problem() const { return problem_; }
  size_t damaged() const { return damaged_; }  // places where headers were looked for anew

 private:
  bool Fill(char* block, size_t size);
  bool Body(uint64_t size, uint64_t keep, std::string* bytes);

  std::function<size_t(char*, size_t)> read_;
  uint64_t most_bytes_;
  OnDamage on_damage_;
  size_t damaged_ = 0;
  bool complete_ = false;
  std::string problem_;
};

// By its first header: the magic of ustar, GNU and pax, or a sum that fits (older ones).
bool LooksLikeTar(std::string_view bytes);

}  // namespace tacet
