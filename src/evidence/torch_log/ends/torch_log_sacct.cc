// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_sacct.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"

namespace tacet {
namespace {

// As sacct prints them; in a narrow column cut short, with a "+" behind.
constexpr std::array<std::string_view, 9> kStates{"CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "PREEMPTED",
                                                  "COMPLETED", "FAILED",    "RUNNING", "DEADLINE"};

std::string_view StateOf(std::string_view word) {
  const bool cut = word.size() > 6 && word.ends_with('+');
  if (word.ends_with('+')) word.remove_suffix(1);
  for (const std::string_view state : kStates)
    if (word == state || (cut && state.starts_with(word))) return state;
  return {};
}

// 2024-07-24T09:30:44, 02:00:00, 1-02:00:00
bool IsTimeColumn(std::string_view word) {
  const size_t colon = word.find(':');
  return colon != std::string_view::npos && word.size() >= 8 &&
         word.find_first_not_of("0123456789-:T.") == std::string_view::npos && word.find(':', colon + 1) == colon + 3;
}

// 0:15, 137:0
bool IsExitColumn(std::string_view word) {
  int64_t code = 0, signal = 0;
  return TakeNumber(word, &code) && TakeLiteral(word, ":") && TakeNumber(word, &signal) && word.empty();
}

struct Row {
  std::string_view job, state;
};

// The number of the job or step first, a state, and a time; sentences have neither.
Row RowOf(std::string_view text) {
  text = Trim(text);
  const std::string_view id = TakeWord(text);
  const std::string_view job = id.substr(0, id.find_first_of("._+"));
  if (job.size() < 2 || job.find_first_not_of("0123456789") != std::string_view::npos) return {};
  Row row;
  bool timed = false;
  while (!text.empty()) {
    const std::string_view word = TakeWord(text);
    if (word.empty()) break;
    if (row.state.empty()) row.state = StateOf(word);
    timed = timed || IsTimeColumn(word) || (!row.state.empty() && IsExitColumn(word));
  }
  if (!row.state.empty() && timed) row.job = job;
  return row;
}

}  // namespace

bool IsSacctRow(std::string_view text) { return !RowOf(text).job.empty(); }

LineUse SacctReader::Read(const LogLine& line) {
  const Row row = RowOf(line.text);
  if (row.job.empty()) return LineUse::not_understood;
  if (job_.empty()) {
    job_ = row.job;
    state_ = row.state;
    text_ = Capped(Trim(line.text), 300);
    line_ = line;
    line_.text = line_.label = line_.code_file = {};  // they do not outlive the line
  } else if (row.job != job_) {
    several_ = true;
  }
  return LineUse::understood;
}

void SacctReader::Finish(RecordList& out) const {
  if (job_.empty() || several_) return;
  LogLine line = line_;
  line.text = text_;
  if (state_ == "CANCELLED") AddSchedulerKill(line, SchedulerKill::cancelled, "Slurm", out);
  if (state_ == "PREEMPTED") AddSchedulerKill(line, SchedulerKill::preempted, "Slurm", out);
  if (state_ == "TIMEOUT" || state_ == "DEADLINE") AddSchedulerKill(line, SchedulerKill::time_limit, "Slurm", out);
  if (state_ == "NODE_FAIL") out.AddOnce(TorchLogKind::node_failed, line, "sacct").first->text = text_;
  if (state_ == "OUT_OF_MEMORY") {
    TorchLogRecord& record = *out.AddOnce(TorchLogKind::oom_kill, line, "sacct").first;
    record.value = 1;
    record.text = text_;
  }
}

}  // namespace tacet
