// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/message_facts.h"

#include "base/text_scan.h"

namespace tacet {
// ... next state RTR, local GID index 0, local GID fe80::5aa2:e1ff:fe1c:70b2, remote GID fe80::...
int64_t ReadLinkLocalGidIndex(std::string_view warning) {
  if (!ContainsAny(warning, {"local GID fe80:", "remote GID fe80:"})) return -1;
  return IntAfter(warning, "local GID index ").value_or(-1);
}

int64_t ReadEmptyGidIndex(std::string_view warning) {
  return ContainsAny(warning, {"local GID ::,", "local GID :: "}) ? IntAfter(warning, "local GID index ").value_or(-1)
                                                                  : -1;
}

// ... before timing out. [repeated 6x across cluster] (Ray deduplicates logs by default. ...
int64_t ReadFoldedLines(std::string_view line) {
  auto rest = After(line, "[repeated ");
  int64_t count = 0;
  if (!rest || !TakeNumber(*rest, &count) || !rest->starts_with("x across cluster]")) return 0;
  return count > 0 && count < 1'000'000 ? count : 0;
}

}  // namespace tacet
