// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tacet {

enum class Compression { none, gzip, zstd };

// From the magic bytes, never from the name.
Compression DetectCompression(std::string_view bytes);

struct DecompressOutcome {
  uint64_t output_bytes = 0;
  bool cut = false;       // the stream ended in the middle: what came before is delivered
  bool corrupt = false;   // bad data: what came before is delivered
  bool limited = false;   // stopped at max_output
  uint64_t unread_bytes = 0;  // trailing compressed bytes that were not used (garbage after the last member)
};

// Decompresses into chunks handed to `sink` (return false to stop early). Concatenated members and frames are read on.
// `passed`, where given, hears after every chunk how many compressed bytes will not be looked at again.
DecompressOutcome Decompress(std::string_view compressed, Compression kind, uint64_t max_output,
                             const std::function<bool(std::string_view)>& sink,
                             const std::function<void(size_t)>& passed = nullptr);

// The same into one string.
DecompressOutcome DecompressAll(std::string_view compressed, Compression kind, uint64_t max_output, std::string* out);

}  // namespace tacet
