// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tacet {

unsigned CoreCount() { return std::max(1u, std::thread::hardware_concurrency()); }

void ParallelFor(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  if (threads == 0) threads = CoreCount();
  const size_t workers = std::min<size_t>(threads, count);
  std::atomic<size_t> next{0};
  auto loop = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<std::thread> pool;
  for (size_t i = 1; i < workers; ++i) pool.emplace_back(loop);
  if (count > 0) loop();
  for (auto& thread : pool) thread.join();
}

}  // namespace tacet
