// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tacet {
namespace {

// Threads at work beyond a caller's own. Only ParallelInOrder is modest: it may run inside ParallelFor, many at once.
std::atomic<unsigned> helpers_at_work{0};

bool TakeIdleCore() {
  unsigned now = helpers_at_work.load();
  while (now + 1 < CoreCount())
    if (helpers_at_work.compare_exchange_weak(now, now + 1)) return true;
  return false;
}

class InOrder {
 public:
  InOrder(size_t count, size_t window, const std::function<void(size_t)>& produce,
          const std::function<void(size_t)>& consume)
      : count_(count), produce_(produce), consume_(consume), ready_(window, false) {}

  void Run() {
    while (Step()) {
      // A core may become idle at any time, as other files are done.
      if (pool_.size() + 1 < ready_.size() && produced_ < count_ && TakeIdleCore())
        pool_.emplace_back([this] {
          while (Step()) {
          }
          --helpers_at_work;
        });
    }
    for (auto& thread : pool_) thread.join();
  }

 private:
  // Does whatever can be done now, or waits until something can. False when all is done.
  bool Step() {
    std::unique_lock lock(mutex_);
    const size_t window = ready_.size();
    if (consumed_ == count_) return false;
    if (!consuming_ && ready_[consumed_ % window]) {
      consuming_ = true;
      lock.unlock();
      consume_(consumed_);  // only the consuming thread changes it
      lock.lock();
      ready_[consumed_ % window] = false;
      ++consumed_;
      consuming_ = false;
      changed_.notify_all();
    } else if (produced_ < count_ && produced_ < consumed_ + window) {
      const size_t index = produced_++;
      lock.unlock();
      produce_(index);
      lock.lock();
      ready_[index % window] = true;
      changed_.notify_all();
    } else {
      changed_.wait(lock);
    }
    return true;
  }

  const size_t count_;
  const std::function<void(size_t)>& produce_;
  const std::function<void(size_t)>& consume_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> ready_;
  std::atomic<size_t> produced_{0}, consumed_{0};  // changed under the mutex only
  bool consuming_ = false;
  std::vector<std::thread> pool_;
};

}  // namespace

unsigned CoreCount() { return std::max(1u, std::thread::hardware_concurrency()); }

void ParallelFor(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  if (threads == 0) threads = CoreCount();
  const size_t workers = std::min<size_t>(threads, count);
  std::atomic<size_t> next{0};
  auto loop = [&] {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<std::thread> pool;
  for (size_t i = 1; i < workers; ++i) {
    ++helpers_at_work;
    pool.emplace_back([&] {
      loop();
      --helpers_at_work;
    });
  }
  if (count > 0) loop();
  for (auto& thread : pool) thread.join();
}

void ParallelInOrder(size_t count, size_t window, const std::function<void(size_t)>& produce,
                     const std::function<void(size_t)>& consume) {
  InOrder(count, std::max<size_t>(1, window), produce, consume).Run();
}

}  // namespace tacet
