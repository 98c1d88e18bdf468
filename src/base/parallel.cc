// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
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

// Starts one more thread for the work, if the system has one: a limit on processes or memory must not end the program.
template <typename Work>
bool StartHelper(std::vector<std::thread>& pool, Work work) {
  try {
    pool.emplace_back(std::move(work));
    return true;
  } catch (const std::exception&) {
    --helpers_at_work;
    return false;
  }
}

// The first exception of several threads.
class FirstFailure {
 public:
  void Take() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    failed_ = true;
  }
  bool failed() const { return failed_; }
  void Rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
};

class InOrder {
 public:
  InOrder(size_t count, size_t window, const std::function<void(size_t)>& produce,
          const std::function<void(size_t)>& consume)
      : count_(count), produce_(produce), consume_(consume), ready_(window, false) {}

  void Run() {
    bool may_grow = true;
    while (SafeStep()) {
      // A core may become idle at any time, as other files are done.
      if (may_grow && pool_.size() + 1 < ready_.size() && produced_ < count_ && TakeIdleCore())
        may_grow = StartHelper(pool_, [this] {
          while (SafeStep()) {
          }
          --helpers_at_work;
        });
    }
    for (auto& thread : pool_) thread.join();
    failure_.Rethrow();
  }

 private:
  bool SafeStep() {
    try {
      return Step();
    } catch (...) {
      failure_.Take();
      // Under the mutex, so that nobody who has just looked goes to sleep without seeing it.
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
      return false;
    }
  }

  // Does whatever can be done now, or waits until something can. False when all is done.
  bool Step() {
    std::unique_lock lock(mutex_);
    const size_t window = ready_.size();
    if (consumed_ == count_ || failure_.failed()) return false;
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
  FirstFailure failure_;
};

}  // namespace

unsigned CoreCount() { return std::max(1u, std::thread::hardware_concurrency()); }

void ParallelFor(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  if (threads == 0) threads = CoreCount();
  const size_t workers = std::min<size_t>(threads, count);
  std::atomic<size_t> next{0};
  FirstFailure failure;
  const auto loop = [&] {
    try {
      for (size_t i = next.fetch_add(1); i < count && !failure.failed(); i = next.fetch_add(1)) work(i);
    } catch (...) {
      failure.Take();
    }
  };
  std::vector<std::thread> pool;
  bool more = true;
  for (size_t i = 1; i < workers && more; ++i) {
    ++helpers_at_work;
    more = StartHelper(pool, [&] {
      loop();
      --helpers_at_work;
    });
  }
  if (count > 0) loop();
  for (auto& thread : pool) thread.join();
  failure.Rethrow();
}

void ParallelInOrder(size_t count, size_t window, const std::function<void(size_t)>& produce,
                     const std::function<void(size_t)>& consume) {
  InOrder(count, std::max<size_t>(1, window), produce, consume).Run();
}

}  // namespace tacet
