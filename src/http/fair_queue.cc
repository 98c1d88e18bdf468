// SPDX-License-Identifier: Apache-2.0
#include "http/fair_queue.h"

#include <utility>

namespace tacet {

FairQueue::FairQueue(unsigned threads, size_t most, size_t most_of_one) : most_(most), most_of_one_(most_of_one) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

bool FairQueue::Add(const std::string& asker, std::function<void()> work) {
  {
    const std::lock_guard lock(lock_);
    const auto found = waiting_.find(asker);
    if (finish_ || count_ >= most_ || (found != waiting_.end() && found->second.size() >= most_of_one_)) return false;
    (found != waiting_.end() ? found->second : waiting_[asker]).push_back(std::move(work));
    ++count_;
  }
  wake_.notify_one();
  return true;
}

void FairQueue::Finish() {
  {
    const std::lock_guard lock(lock_);
    finish_ = true;
    waiting_.clear();
    count_ = 0;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void FairQueue::Work() {
  std::unique_lock held(lock_);
  for (;;) {
    wake_.wait(held, [&] { return finish_ || count_ > 0; });
    if (finish_) return;
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    last_ = next->first;
    const std::function<void()> work = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) waiting_.erase(next);
    --count_;
    held.unlock();
    work();
    held.lock();
  }
}

}  // namespace tacet
