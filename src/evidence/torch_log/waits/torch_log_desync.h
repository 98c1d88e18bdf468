// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// The report of TORCH_NCCL_DESYNC_DEBUG, about a dozen lines of which only the first has a prefix.
class DesyncReader {
 public:
  // not_understood: the line is no part of a report.
  LineUse Read(const LogLine& line, RecordList& out);
  void End() { report_ = nullptr; }

 private:
  enum class Part : uint8_t { head, culprits, snapshot };
  void ReadCulprits(const LogLine& line);
  void ReadSnapshot(std::string_view text);

  TorchLogRecord* report_ = nullptr;
  Part part_ = Part::head;
  int64_t snapshot_seq_ = -1;
  bool have_absent_ = false;  // somebody did not join at all: who joined and waits is no culprit then
};

}  // namespace tacet
