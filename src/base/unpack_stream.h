// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/decompress.h"

namespace tacet {

// Compressed bytes, unpacked piece by piece as they are asked for. `raw` is deflate without any head, as in a zip.
class UnpackStream {
 public:
  enum class Kind { none, gzip, zstd, raw };
  UnpackStream(std::string_view bytes, Kind kind, uint64_t most_output);
  ~UnpackStream();
  UnpackStream(const UnpackStream&) = delete;
  UnpackStream& operator=(const UnpackStream&) = delete;

  // How many bytes were put into `buffer`; 0 at the end, for whatever reason it ends.
  size_t Read(char* buffer, size_t size);

  bool cut() const { return cut_; }          // the input ended in the middle
  bool corrupt() const { return corrupt_; }  // bad data: what came before was given out
  bool limited() const { return limited_; }  // there was more than `most_output`
  uint64_t output_bytes() const { return output_bytes_; }

  static Kind KindOf(Compression compression);

 private:
  struct Inside;
  size_t Unpack(char* buffer, size_t size);
  size_t Inflate(char* buffer, size_t size);
  size_t Unzstd(char* buffer, size_t size);

  std::string_view rest_;
  Kind kind_;
  uint64_t most_output_;
  uint64_t output_bytes_ = 0;
  bool inside_ = false;  // a member or frame was begun and is not yet at its end
  bool done_ = false, cut_ = false, corrupt_ = false, limited_ = false;
  std::unique_ptr<Inside> state_;
};

}  // namespace tacet
