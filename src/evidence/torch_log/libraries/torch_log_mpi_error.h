// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "evidence/torch_log/errors/torch_log_backtrace.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What MPI libraries, and programs that use them, say as they fail. Open MPI takes several lines, each with host and
// pid:
//   [node7:4121] *** An error occurred in MPI_Recv
//   [node7:4121] *** reported by process [3691035461,5]
//   [node7:4121] *** MPI_ERR_TRUNCATE: message truncated
//   [node7:4121] *** Process received signal ***
//   [node7:4121] Signal: Segmentation fault (11)
//   MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD
//   with errorcode 7.
// MPICH, Intel MPI and Cray MPI one:
//   Abort(1734410) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Bcast: Message truncated, error stack:
//   application called MPI_Abort(MPI_COMM_WORLD, 7) - process 3
// and below the first of them the calls from the outermost to the one that failed, with its reason:
//   PMPI_Recv(177)...................: MPI_Recv(buf=0x7f, count=1, ...) failed
//   MPIDI_OFI_handle_cq_error(1075)..: OFI poll failed (ofi_events.c:1077:...:Input/output error)
class MpiErrorReader {
 public:
  LineUse Read(const LogLine& line, RecordList& out);

 private:
  LineUse ReadAbort(const LogLine& line, RecordList& out);
  LineUse ReadBlock(const LogLine& line, RecordList& out);
  LineUse ReadErrorStack(const LogLine& line);
  LineUse AddSignal(const LogLine& line, int64_t signal, std::string_view host, int64_t pid, int32_t rank,
                    RecordList& out);
  LineUse ReadCaughtSignal(const LogLine& line, RecordList& out);

  TorchLogRecord* aborted_ = nullptr;                           // whose error code follows
  int abort_lines_ = 0;                                         // in which it must
  std::map<std::string, TorchLogRecord*, std::less<>> blocks_;  // by "[node7:4121]"
  TorchLogRecord* stack_ = nullptr;                             // whose calls follow
  std::string stack_head_;                                      // what MPI calls the error
  int signal_lines_ = 0;                                        // in which the signal must be told
  BacktraceReader backtrace_;
};

}  // namespace tacet
