// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "base/decompress.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t kLimit = 1 << 20;
  tacet::DetectCompression(bytes);
  for (const auto kind : {tacet::Compression::gzip, tacet::Compression::zstd, tacet::Compression::none}) {
    std::string out;
    const tacet::DecompressOutcome outcome = tacet::DecompressAll(bytes, kind, kLimit, &out);
    if (outcome.output_bytes != out.size() || out.size() > kLimit || outcome.unread_bytes > size) std::abort();
  }
  return 0;
}
