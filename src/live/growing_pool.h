// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace tacet {

// Threads that come when all others are busy and go when there is nothing to do. Work that waits for somebody slow then
// holds up nobody else, up to `most` of it at a time; more has to queue.
class GrowingPool {
 public:
  GrowingPool(size_t least, size_t most) : least_(least), most_(most) {}
  ~GrowingPool() { Finish(); }
  GrowingPool(const GrowingPool&) = delete;
  GrowingPool& operator=(const GrowingPool&) = delete;

  void Add(std::function<void()> work);
  void Finish();  // does all that was added, then ends the threads
  size_t threads() const;

 private:
  void Work();

  const size_t least_, most_;
  mutable std::mutex lock_;
  std::condition_variable wake_, gone_;
  std::deque<std::function<void()>> waiting_;
  size_t threads_ = 0, idle_ = 0;
  bool finish_ = false;
};

}  // namespace tacet
