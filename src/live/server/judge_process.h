// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "live/server/job_verdict.h"

namespace tacet {

// What a job is judged by.
struct JudgeTask {
  std::vector<FetchedBox> boxes;
  std::vector<HangSuspicion> suspicions;
  std::string ras;
  bool runs_on = false;  // nothing hangs: only what ranks did differently counts
};

// A verdict in the forms in which it is asked for.
struct JudgedReport {
  std::string status, cause, headline;
  std::vector<int> ranks;
  bool wrong = false;      // the job runs on and computes nonsense
  std::string json, text;  // the whole report
};

struct JudgeOptions {
  std::vector<std::string> program;             // with its arguments; empty: in this process
  uint64_t least_memory = uint64_t{256} << 20;  // address space; eight times the boxes come on top
  int64_t limit_ms = 60000;
};

// Runs the rules over the boxes of a job in a process of its own, with bounded memory and time: boxes come from
// anybody, and what they do to that process they do to it alone. Ends early when `stop` becomes true.
Result<JudgedReport> JudgeApart(JudgeTask task, const JudgeOptions& options, const std::atomic<bool>& stop);

// The other end: reads a task from standard input and writes the verdict to standard output. An exit code.
int RunJudge(uint64_t most_memory, uint64_t cpu_seconds);

JudgedReport JudgeHere(JudgeTask task);

// "{...}\n" and then the bytes that it announces.
std::string WriteJudgeHead(const JudgeTask& task);
Result<JudgeTask> ReadJudgeTask(std::string_view bytes);
std::string WriteJudged(const JudgedReport& report);
Result<JudgedReport> ReadJudged(std::string_view bytes);

}  // namespace tacet
