// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// A file inside a zip, still packed: a view into the zip's own bytes.
struct ZipMember {
  std::string name;
  std::string_view packed;
  uint16_t method = 0;
  uint32_t sum = 0;
  bool sum_known = true;
  bool encrypted = false;
  bool cut = false;         // the zip ends inside it
  bool lost = false;        // the list names it, but it is not where the list says
  int64_t modified_s = -1;  // -1: not told in a way that has a time zone
};

struct ZipList {
  std::vector<ZipMember> members;
  bool cut = false;      // the list at its end is missing: members were sought one by one
  bool limited = false;  // more than were asked for
};

bool LooksLikeZip(std::string_view bytes);

// Memory follows the zip's bytes, never what they claim.
ZipList ListZip(std::string_view bytes, size_t most_members);

struct ZipContent {
  std::string bytes;
  bool known_method = true;  // false: nothing was unpacked
  bool cut = false, corrupt = false, limited = false;
};

ZipContent UnpackZipMember(const ZipMember& member, uint64_t most_bytes);

}  // namespace tacet
