// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace tacet {

// Calls work(index) for every index below count on up to `threads` threads (0 = one per core), in order of index as
// far as threads allow. Returns when all are done. Where the system gives fewer threads, fewer do the work, the
// caller's own at least. An exception of `work` ends the rest early and is thrown again here, the first one if there
// are several.
void ParallelFor(size_t count, unsigned threads, const std::function<void(size_t)>& work);

// Work in two steps, of which the second has an order: produce(index) runs on the caller's thread and on those cores
// that ParallelFor leaves idle, consume(index) after it, one at a time and in order of index. produce stays less than
// `window` indices ahead of consume, so that results can be kept in that many places. Exceptions as above.
void ParallelInOrder(size_t count, size_t window, const std::function<void(size_t)>& produce,
                     const std::function<void(size_t)>& consume);

unsigned CoreCount();

}  // namespace tacet
