// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tacet {

// Asks for large pages under a big array that is about to be filled from front to back: a page fault for each 4 KiB
// costs more than filling them does. Only advice; small arrays are left alone.
void PreferLargePages(void* data, size_t bytes);

}  // namespace tacet
