// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/signal_name.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// What a shell says of a process that a signal ended.
struct ShellNotice {
  int signal = 0;
  int64_t pid = -1;
};
std::optional<ShellNotice> FindShellNotice(std::string_view text);

// A launcher's or a shell's line about a process that ended or was ended.
LineUse ReadLauncherLine(const LogLine& line, RecordList& out);
// "--nnodes=2", "node_rank: 1", "num_machines: 4": the job has several nodes.
void ReadNodeCount(const LogLine& line, RecordList& out);
// The same from srun and slurmstepd.
LineUse ReadBatchLine(const LogLine& line, RecordList& out);
LineUse ReadSlurmLine(const LogLine& line, RecordList& out);
// Of tasks that never began srun tells an end as well.
void DropTasksNotStarted(TorchLog& log);

// torchrun's block at the end: who failed, on which host, with which pid and exit code.
class SummaryReader {
 public:
  // `voice_of` gives the voice of a rank, for a traceback that is quoted in the block.
  LineUse Read(const LogLine& line, const std::function<uint32_t(int32_t)>& voice_of, RecordList& out);
  void Finish(RecordList& out);

 private:
  LineUse ReadField(const LogLine& line, std::string_view name, std::string_view value);
  void Write(RecordList& out);
  void EndTraceback(RecordList& out);

  bool open_ = false, has_code_ = false;
  bool root_ = false;     // behind "Root Cause (first observed failure):"
  bool quoting_ = false;  // inside "traceback : Traceback ..."
  uint32_t quoted_voice_ = 0;
  TorchLogRecord failure_;
  LogLine line_;
  TracebackReader traceback_;
};

}  // namespace tacet
