// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// Ray, Lightning, MosaicML, accelerate, Open MPI, PALS and Kubernetes about a worker that ended.
LineUse ReadWorkerEnd(const LogLine& line, RecordList& out);

// Errors of libraries that stand in NCCL's place (HCCL, oneCCL, RCCL under ROCm), and Horovod's.
LineUse ReadOtherLibrary(const LogLine& line, RecordList& out);

// Lists of ranks that did not come, some lines long: Horovod's tensors, JAX's barriers, PyTorch's analyser.
class StallReader {
 public:
  LineUse Read(const LogLine& line, RecordList& out);
  // The lines below this one list tasks whose heartbeats stopped.
  void NoteUnhealthy(const LogLine& line);

 private:
  void Name(const LogLine& line, int32_t rank);
  void TakeReady(const LogLine& line, RecordList& out);
  LineUse ReadTasks(const LogLine& line, RecordList& out);

  TorchLogRecord* report_ = nullptr;  // the ranks follow
  TorchLogRecord* tasks_ = nullptr;
  LogLine unhealthy_;  // its text is not valid any more
  bool in_unhealthy_ = false;
};

// torch.multiprocessing.spawn announces the error of a process, and no exit code: where the error follows, that tells.
void DropToldSpawns(TorchLog& log);

// Where a launcher's own line tells how a process ended, what somebody writes of it in a sentence is of no use.
void DropHearsay(TorchLog& log);

// What a launcher raises while it ends the others, below the end that it tells of.
void DropCleanUpErrors(TorchLog& log);

}  // namespace tacet
