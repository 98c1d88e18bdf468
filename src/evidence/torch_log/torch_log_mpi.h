// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What mpirun, prterun and Hydra say of a process that ended. It takes them several lines:
//   mpiexec noticed that process rank 0 with PID 10313 on node proton exited on
//   signal 6 (Aborted).
//     Process name: [[56171,1],6]
//     Exit code:    3
//   =   RANK 6 PID 2447372 RUNNING AT node0009
//   =   KILLED BY SIGNAL: 9 (Killed)
class MpiNoticeReader {
 public:
  LineUse Read(const LogLine& line, RecordList& out);
  // Hydra kills all others once one has ended, and then tells of all alike.
  void Finish(RecordList& out);

 private:
  struct Notice {
    LogLine line;
    std::string text, host;
    int32_t rank = -1;
    int64_t pid = -1, code = 0;
  };
  LineUse ReadEnd(const LogLine& line, RecordList& out);
  LineUse Begin(const LogLine& line, Notice notice);
  static void Add(const Notice& notice, RecordList& out);

  Notice open_;
  int lines_left_ = 0;  // in which the end must be told
  bool hydra_ = false;  // the open notice is one of Hydra's
  std::vector<Notice> hydras_;
};

}  // namespace tacet
