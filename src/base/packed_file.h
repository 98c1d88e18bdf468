// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacet {

// A file that is written through a compressor: zstd for ".zst", gzip for ".gz", else plain. The bytes depend on what is
// written alone. It is removed again unless Finish is reached.
class PackedFile {
 public:
  static Result<std::unique_ptr<PackedFile>> Create(const std::string& path);
  ~PackedFile();
  bool Write(std::string_view bytes);
  // Where it failed: why.
  Result<uint64_t> Finish();

 private:
  struct Inside;
  explicit PackedFile(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace tacet
