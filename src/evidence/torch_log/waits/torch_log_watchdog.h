// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=200, NumelOut=200, Timeout(ms)=600000)"
struct LoggedWork {
  int64_t seq = -1;
  std::string_view op;
  int64_t elements = -1, elements_out = -1;
  int64_t timeout_ms = -1;
  std::string_view rest;  // what follows it
};
bool FindWork(std::string_view text, LoggedWork* work);

// An exception by which a library says that a collective took too long. A program may catch it, and go on.
bool IsRaisedTimeout(std::string_view text);

// What one voice's watchdog has begun to say.
struct WatchdogState {
  std::vector<TorchLogRecord*> without_group;  // works whose group only the next status line tells
  TorchLogRecord* timed_out = nullptr;         // the work that a stack trace belongs to
};

// Lines of ProcessGroupNCCL about works, dumps, heartbeats and the store.
LineUse ReadWatchdogLine(const LogLine& line, WatchdogState& state, RecordList& out);
// "#2 train_step from /srv/train/train.py:69" of "Stack trace of the failed collective:".
LineUse ReadFailedStack(const LogLine& line, WatchdogState& state);

}  // namespace tacet
