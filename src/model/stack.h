// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/source_ref.h"
#include "base/string_table.h"
#include "model/ids.h"

namespace tacet {

struct Frame {
  StringId function{};
  StringId file{};
  uint32_t line = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};

// Every distinct stack once, innermost frame first.
class StackTable {
 public:
  StackTable() { Intern({}); }
  StackId Intern(std::vector<Frame> frames);
  const std::vector<Frame>& Get(StackId id) const { return stacks_[static_cast<uint32_t>(id)]; }
  size_t size() const { return stacks_.size(); }

 private:
  std::vector<std::vector<Frame>> stacks_;
  std::unordered_multimap<uint64_t, StackId> by_hash_;
};

// What a frame is, told by its file and function name.
enum class FrameKind : uint8_t {
  user,           // the user's own code
  communication,  // torch.distributed, c10d, NCCL, MPI: the frame issues communication or waits for it
  device_wait,    // waits for the GPU: cuda synchronize, .item(), cudaStreamSynchronize
  framework,      // other torch or library code
  interpreter,    // threading, importlib, runpy
  lock,           // waits for a lock, a condition, a queue, a child process, the GIL, a timer
  io,             // reads or writes files or sockets
};
FrameKind ClassifyFrame(std::string_view function, std::string_view file);

// One thread as seen by faulthandler, py-spy or gdb at one moment.
struct ThreadStack {
  uint32_t speaker = 0;  // index into Fragment::speakers, later into Incident::processes
  Rank rank;             // filled by the assembly
  SourceRef source;
  std::string thread_name;  // empty where unknown
  std::string thread_id;
  std::string state;        // "active+gil", "idle", as written
  bool is_main = false;     // the main Python thread, as far as can be told
  bool has_python = false;  // Python frames are known
  StackId stack{};
  uint32_t first_line = 0;                    // line of the innermost frame
  int32_t group_rank = -1, group_ranks = -1;  // of the communicator that it sets up, where a frame's arguments tell
  int64_t timer_s = -1;     // faulthandler's timer had run for so long ("Timeout (0:00:30)!"); -1: no timer
  bool looked_at = false;   // taken by a tool from outside the process: py-spy, gdb
  bool last_words = false;  // nothing but stacks follows in its file
  uint32_t dump = 0;        // which dump of its speaker in this file, from 0: the highest is the latest
};

}  // namespace tacet
