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
//     Process name: worker-2[0]      (horovodrun)
//     Exit code: 137
//   =   RANK 6 PID 2447372 RUNNING AT node0009
//   =   KILLED BY SIGNAL: 9 (Killed)
// And of a node or a peer whose connection broke:
//   ORTE has lost communication with a remote daemon.
//     Remote daemon: [[43015,0],20] on node node20      ([[job,0],n] is a daemon of the launcher, and no rank)
//   An MPI communication peer process has unexpectedly disconnected.
//     Peer host:  node316
// And of a connection that could not be made, in a block or on one line:
//   WARNING: Open MPI failed to TCP connect to a peer MPI process.  This should not happen.
//     Local host: node02
//     PID:        20783
//     Message:    connect() to 169.254.9.13:1026 failed
//     Error:      Resource temporarily unavailable (11)
//   [node1][[5512,1],2][btl_tcp_endpoint.c:626:mca_btl_tcp_endpoint_complete_connect] connect() to 10.0.0.7 failed:
//   No route to host (113)
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
    bool first = false;  // "The first process to do so was:" stands above it
  };
  LineUse ReadEnd(const LogLine& line, RecordList& out);
  LineUse Begin(const LogLine& line, Notice notice);
  static void Add(const Notice& notice, RecordList& out);

  LineUse ReadLoss(const LogLine& line, RecordList& out);
  LineUse ReadConnect(const LogLine& line, RecordList& out);
  LineUse ReadHorovodName(std::string_view name, const LogLine& line);

  TorchLogRecord* loss_ = nullptr;     // whose host has yet to be told
  int loss_lines_ = 0;                 // in which it must be
  TorchLogRecord* connect_ = nullptr;  // whose address has yet to be told
  int connect_lines_ = 0;
  Notice open_;
  int lines_left_ = 0;  // in which the end must be told
  bool hydra_ = false;  // the open notice is one of Hydra's
  std::vector<Notice> hydras_;
};

}  // namespace tacet
