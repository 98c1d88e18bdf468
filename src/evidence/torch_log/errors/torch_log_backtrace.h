// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// The frames that a signal handler prints below "Caught signal 11" or "Signal: Segmentation fault (11)":
//   ==== backtrace (tid: 197811) ====
//    0  /usr/lib/libucs.so.0(ucs_handle_error+0x2d4) [0x7f3ac1a5c274]                 UCX
//    3  /opt/nccl/lib/libnccl.so(+0x120057) [0x7f3eba0c1057]
//    0 0x0000000000042520 __sigaction()  ???:0                                        UCX with symbols
//   [node7:4121] [ 1] /usr/lib/libfoo.so(run+0x1a)[0x7f2e1c0c1a]                      Open MPI
// The first frame below the handler's own is where the process was.
class BacktraceReader {
 public:
  void Begin(TorchLogRecord* record);
  // False where the line is no frame of it.
  bool Read(std::string_view text);

 private:
  TorchLogRecord* record_ = nullptr;  // whose frames follow
  int lines_left_ = 0;                // in which the first one must come
};

}  // namespace tacet
