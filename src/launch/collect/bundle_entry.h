// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tacet {

// One file on its way into a bundle.
struct BundleEntry {
  std::string name;  // in the bundle, safe to unpack anywhere
  std::string bytes;
  int64_t modified_s = 0;
  uint64_t original_bytes = 0;
  std::map<std::string, uint64_t> redacted;  // kinds of secrets and how many were taken out
  std::string changed;                       // "cut in the middle", "unpacked"; empty: only redacted
};

// A name that neither leaves the folder it is unpacked in nor tricks a terminal: "../" and a leading "/" are gone,
// control characters, quotes, backslashes, bytes that are no UTF-8 and characters that cannot be seen stand as %0A.
// Different names stay different. `keep_percent`: the name was made safe before, and its escapes stay.
std::string SafeName(std::string_view path, bool keep_percent = false);

// Takes secrets out. Text is shortened where a secret was; in binary files (records, black boxes, tables) it is
// overwritten, so that they can still be read. Compressed files are unpacked first, up to `most_bytes`.
void CleanEntry(BundleEntry& entry, uint64_t most_bytes);

// The first and the last part of a text that is too large, with a line in between that says what is missing.
void CutText(BundleEntry& entry, uint64_t most_bytes);

bool IsBinaryText(std::string_view bytes);

}  // namespace tacet
