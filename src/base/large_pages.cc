// SPDX-License-Identifier: Apache-2.0
#include "base/large_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace tacet {

void PreferLargePages(void* data, size_t bytes) {
  constexpr uintptr_t kLarge = uintptr_t{2} << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + kLarge - 1) / kLarge * kLarge;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / kLarge * kLarge;
  if (begin + kLarge < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace tacet
