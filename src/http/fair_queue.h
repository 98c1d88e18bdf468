// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tacet {

// Threads that do work for many askers, each asker in turn: who asks a thousand times waits for itself.
class FairQueue {
 public:
  FairQueue(unsigned threads, size_t most, size_t most_of_one);
  ~FairQueue() { Finish(); }
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // False when too much waits already, of this asker or of all.
  bool Add(const std::string& asker, std::function<void()> work);
  void Finish();  // ends after the work under way; what still waits is dropped

 private:
  void Work();

  const size_t most_, most_of_one_;
  std::mutex lock_;
  std::condition_variable wake_;
  std::map<std::string, std::deque<std::function<void()>>> waiting_;  // no empty queues
  std::string last_;                                                  // whose turn it was
  size_t count_ = 0;
  bool finish_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tacet
