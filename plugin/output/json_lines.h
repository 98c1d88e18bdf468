// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include "plugin/output/finished_op.h"
#include "plugin/settings.h"

// TACET_JSON_DIR: one JSON line for each finished operation in <dir>/<host>-pid<pid>.log, with the keys of NCCL
// Inspector's format v4.0 in its order, and the times of its verbose form (when the host called NCCL, when the kernel
// was seen to start and to stop): without these nobody can tell which waits the hosts hide. What cannot be written
// (disk full, no permission) is counted and dropped; half a line is taken back. A file or folder that was removed is
// made again.
namespace tacet::plugin {

class JsonLines {
 public:
  void Open(const OpenBox& box, const Settings& settings);
  bool asked() const { return path_[0] != 0; }
  void Add(OpenBox& box, const FinishedOp& finished);
  void Flush(OpenBox& box);

 private:
  bool Reopen(struct stat* seen);
  int OpenOwn();

  box::ClockPair clocks_ = {};  // read once for the lines of one write
  char path_[768] = {}, dir_[512] = {};
  uint64_t min_bytes_ = 0;
  int fd_ = -1;
  uint32_t used_ = 0, lines_ = 0;
  char buffer_[64 * 1024];
};

}  // namespace tacet::plugin
