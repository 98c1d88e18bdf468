// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "live/agent/ras_client.h"

namespace tacet {

struct RasAnswer {
  std::string text;  // empty: it did not answer
  std::string error;
  int64_t uid = -1;  // whose process listens there; -1 unknown, or another host's
  int64_t wall_ns = 0;
};

// Asks NCCL RAS of this node now and then, in a thread of its own: an answer for a large job takes seconds. Every 30 s
// while jobs run, and at once when a hang is suspected.
class RasWatch {
 public:
  explicit RasWatch(HttpAddress address);
  ~RasWatch();
  void Update(bool jobs_run, bool hang_suspected);
  std::shared_ptr<const RasAnswer> latest() const;  // null before the first question

 private:
  void Run();

  HttpAddress address_;
  mutable std::mutex lock_;
  std::condition_variable wake_;
  bool jobs_run_ = false, suspected_ = false, ask_now_ = false, stop_ = false;
  std::shared_ptr<const RasAnswer> latest_;
  std::thread thread_;
};

}  // namespace tacet
