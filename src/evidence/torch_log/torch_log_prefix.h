// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/launcher_prefix.h"
#include "evidence/torch_log/torch_log_parse.h"

namespace tacet {

// Prefixes that cannot be told from a job's own text by one line alone ("3: loss 0.1"): the whole file decides.
struct LabelStyle {
  bool tasks = false;  // "3: text", srun --label
  bool pods = false;   // "trainer-3 text", stern
};
LabelStyle FindLabelStyle(std::string_view bytes);

// One line taken apart: who printed it, when, and what is left.
struct LinePrefix {
  LauncherPrefix launcher;     // the outer label, not "[rank3]:"
  int32_t rank = -1;           // of "[rank3]:"
  int32_t head_rank = -1;      // of "[2026-03-09 00:57:15 TP4] ", which stands before the first line of a message only
  char severity = 0;           // I, W, E, F of a C++ or Python log line of PyTorch; 0: no such line
  std::string_view code_file;  // "ProcessGroupNCCL.cpp"
  LogMoment time;
  std::string_view bar;  // an open progress bar that stands before the text
  // What stands before the bar is the mark of whoever draws it; behind it another process may have put its own.
  LauncherPrefix bar_launcher;
  int32_t bar_rank = -1;
  std::string_view text;
};
LinePrefix SplitPrefix(std::string_view line, LabelStyle style);

// A line of PyTorch's logger that is an error's, also one that is cut within its head: "[E427 21:06:40.340571148 Proc".
bool IsErrorLine(const LinePrefix& prefix);

// "(VllmWorker rank=1 pid=2445)", "(VllmWorker TP3 pid=812)", "(Worker_TP3 pid=812)"; -1 where the label names none.
int32_t RankInLabel(std::string_view label);

// "[INFO] [axolotl.train:483] [PID:41207] [RANK:0] text": a logger names the rank among other things before the text.
int32_t RankInHead(std::string_view text);

// "[PG ID 1 PG GUID 1187ab66(mesh_dp) Rank 1] ", "[PG 0 (default_pg) Rank 2] ", "[PG 0 Rank 2] ".
struct GroupPrefix {
  std::string_view name, description;
  int32_t group_rank = -1;
  bool is_default = false;  // then the group rank is the global rank
  bool known() const { return group_rank >= 0; }
};
// The first one in the text, wherever it stands.
GroupPrefix FindGroupPrefix(std::string_view text);

// "host:pid:tid [0] NCCL INFO ...": another format's line.
bool IsNcclLine(std::string_view line);

}  // namespace tacet
