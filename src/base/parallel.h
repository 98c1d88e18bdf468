// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace tacet {

// Calls work(index) for every index below count on up to `threads` threads (0 = one per core), in order of index as
// far as threads allow. Returns when all are done. `work` must not throw.
void ParallelFor(size_t count, unsigned threads, const std::function<void(size_t)>& work);

unsigned CoreCount();

}  // namespace tacet
