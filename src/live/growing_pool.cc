// SPDX-License-Identifier: Apache-2.0
#include "live/growing_pool.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace tacet {

void GrowingPool::Add(std::function<void()> work) {
  const std::lock_guard lock(lock_);
  waiting_.push_back(std::move(work));
  if (waiting_.size() <= idle_ || threads_ >= most_) return wake_.notify_one();
  try {
    std::thread([this] { Work(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    // No more threads to be had: those that are there will come to it.
  }
}

void GrowingPool::Work() {
  constexpr auto kIdle = std::chrono::seconds(10);
  std::unique_lock held(lock_);
  for (;;) {
    ++idle_;
    const bool woken = wake_.wait_for(held, kIdle, [&] { return finish_ || !waiting_.empty(); });
    --idle_;
    if (!waiting_.empty()) {
      const auto work = std::move(waiting_.front());
      waiting_.pop_front();
      held.unlock();
      work();
      held.lock();
    } else if (finish_ || (!woken && threads_ > least_)) {
      break;
    }
  }
  --threads_;
  gone_.notify_all();  // with the lock held: the pool may be gone right after
}

void GrowingPool::Finish() {
  std::unique_lock held(lock_);
  finish_ = true;
  wake_.notify_all();
  gone_.wait(held, [&] { return threads_ == 0; });
}

size_t GrowingPool::threads() const {
  const std::lock_guard lock(lock_);
  return threads_;
}

}  // namespace tacet
