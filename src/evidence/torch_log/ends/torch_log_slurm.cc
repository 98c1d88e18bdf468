// SPDX-License-Identifier: Apache-2.0
// srun and slurmstepd.
#include <algorithm>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launch_failure.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "evidence/torch_log/torch_log_time.h"

namespace tacet {
namespace {

constexpr std::string_view kCannotStart = "slurmstepd cannot start ";

constexpr size_t kMaxTasks = 65536;

// "2,4-5,7" -> 2 4 5 7
std::vector<int32_t> TakeTasks(std::string_view& text) {
  std::vector<int32_t> tasks;
  int32_t first = 0;
  while (TakeNumber(text, &first) && first >= 0) {
    int32_t last = first;
    if (text.starts_with('-')) {
      std::string_view ahead = text.substr(1);
      if (!TakeNumber(ahead, &last)) break;
      text = ahead;
    }
    for (int64_t task = first; task <= last && tasks.size() < kMaxTasks; ++task)
      tasks.push_back(static_cast<int32_t>(task));
    if (!TakeLiteral(text, ",")) break;
  }
  return tasks;
}

// srun: error: node7: task 3: Exited with exit code 1
// srun: error: node7: task 3: Out Of Memory
// srun: error: nid01934: tasks 2,4-5,7: Terminated
// srun: error: node7: task 0: Segmentation fault (core dumped)
LineUse ReadTaskEnd(const LogLine& line, std::string_view text, RecordList& out) {
  const size_t at = text.find(": task");
  std::string_view rest = text.substr(at + 6);
  TakeLiteral(rest, "s");
  SkipBlanks(rest);
  std::vector<int32_t> tasks = TakeTasks(rest);
  if (tasks.empty() || !TakeLiteral(rest, ": ")) return LineUse::not_understood;
  const std::string_view host = Trim(text.substr(0, at));
  int64_t code = 0;
  const bool out_of_memory = rest.starts_with("Out Of Memory");
  if (const auto exit = IntAfter(rest, "Exited with exit code "))
    code = *exit > 128 && *exit < 160 ? 128 - *exit : *exit;  // a shell in between adds 128 to a signal
  else if (out_of_memory)
    code = -9;
  else
    code = -SignalNumber(rest);
  if (code == 0) return LineUse::not_understood;
  const auto add = [&](TorchLogKind kind) {
    TorchLogRecord& record = out.Add(kind, line);
    out.KeepRanks(record, tasks);
    record.host = Capped(host, 200);
    record.text = Capped(line.text, 300);
    return &record;
  };
  TorchLogRecord* record = add(code == -15 ? TorchLogKind::process_killed : TorchLogKind::process_exited);
  record->value = code;
  record->subject = out_of_memory ? "Out Of Memory" : std::string(code < 0 ? SignalName(-code) : "");
  if (out_of_memory) add(TorchLogKind::oom_kill)->value = 1;
  return LineUse::understood;
}

// slurmstepd: error: *** STEP 494583.0 ON node7 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***
// slurmstepd: error: *** JOB 608 ON node7 CANCELLED AT 2022-08-12T02:06:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR
// DETAILS ***
LineUse ReadCancelled(const LogLine& line, RecordList& out) {
  const auto told_reason = After(line.text, "DUE TO ");
  std::string_view reason = told_reason.value_or("CANCELLED");
  reason = Trim(reason.substr(0, std::min(reason.find("***"), reason.find(','))));
  TorchLogKind kind = TorchLogKind::process_killed;
  if (reason.starts_with("TIME LIMIT")) kind = TorchLogKind::job_time_limit;
  if (reason.starts_with("NODE FAIL")) kind = TorchLogKind::node_failed;
  const auto [record, is_new] = out.AddOnce(kind, line, reason);
  if (!is_new) return LineUse::understood;
  if (auto time = After(line.text, "CANCELLED AT ")) TakeDatedTime(*time, &record->time);
  record->with_step = kind == TorchLogKind::process_killed && !told_reason;
  if (auto host = After(line.text, " ON ")) record->host = Capped(TakeWord(*host), 200);
  // The node before "CANCELLED" is the one that prints, not the one that failed.
  record->subject = kind == TorchLogKind::node_failed ? std::string() : Capped(reason, 100);
  record->text = Capped(line.text, 600);
  if (kind == TorchLogKind::node_failed) return LineUse::understood;
  LogLine told = line;
  told.time = record->time;
  const SchedulerKill why = kind == TorchLogKind::job_time_limit ? SchedulerKill::time_limit
                            : reason.starts_with("PREEMPT")      ? SchedulerKill::preempted
                            : Contains(reason, "REQUEUE")        ? SchedulerKill::requeued
                                                                 : SchedulerKill::cancelled;
  // A step is also cancelled, without a reason, when one of its tasks failed (--kill-on-bad-exit).
  const bool step = why == SchedulerKill::cancelled && Contains(line.text, "*** STEP ");
  AddSchedulerKill(told, why, step ? "step" : "Slurm", out);
  return LineUse::understood;
}

// slurmstepd: error: *** STEP 63532.0 STEPD TERMINATED ON cn106 AT 2020-12-14T09:44:56 DUE TO JOB NOT ENDING WITH
// SIGNALS ***
LineUse ReadUnkillable(const LogLine& line, RecordList& out) {
  auto host = After(line.text, "TERMINATED ON ");
  AddSchedulerKill(line, SchedulerKill::unkillable, host ? TakeWord(*host) : std::string_view(), out);
  return LineUse::understood;
}

// [2020-12-14T09:43:55.500] [63532.0] error: *** STEP 63532.0 ON cn106 CANCELLED AT 2020-12-14T09:43:55 ***
// The same as slurmstepd prints, in the log of slurmd; nothing but its own heads may stand before it.
LineUse ReadDaemonLine(const LogLine& line, RecordList& out) {
  std::string_view before = Trim(line.text.substr(0, line.text.find("error: *** ")));
  while (before.starts_with('[')) {
    const size_t close = before.find(']');
    if (close == std::string_view::npos) return LineUse::not_understood;
    before = Trim(before.substr(close + 1));
  }
  if (!before.empty()) return LineUse::not_understood;
  if (Contains(line.text, "CANCELLED AT ")) return ReadCancelled(line, out);
  if (Contains(line.text, "STEPD TERMINATED ")) return ReadUnkillable(line, out);
  return LineUse::not_understood;
}

}  // namespace

// slurmstepd: error: execve(): torchrun: No such file or directory
// srun: error: node3: task 0: Exited with exit code 2
// What could not be started ends with the number of the system's error: that is the same failure, told again.
void DropTasksNotStarted(TorchLog& log) {
  const auto is_start = [](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::process_exited && record.subject.starts_with(kCannotStart);
  };
  if (std::none_of(log.records.begin(), log.records.end(), is_start)) return;
  std::erase_if(log.records, [](const TorchLogRecord& record) {
    const bool of_start = record.value == 2 || record.value == 8 || record.value == 13 || record.value == 127;
    return record.kind == TorchLogKind::process_exited && of_start && Contains(record.text, "srun: error: ");
  });
}

LineUse ReadSlurmLine(const LogLine& line, RecordList& out) {
  if (!line.has(Keyword::srun) && !line.has(Keyword::slurmstepd))
    return line.has(Keyword::slurmd) ? ReadDaemonLine(line, out) : LineUse::not_understood;
  // A progress bar may stand before it on the same line; a mention in the middle of a sentence is not it.
  const size_t at = std::min({line.text.find("srun: "), line.text.find("salloc: "), line.text.find("slurmstepd")});
  if (at == std::string_view::npos) return LineUse::not_understood;
  auto error = After(line.text.substr(at), "error: ");
  // slurmstepd: *** JOB 830 CANCELLED AT 2018-08-06T17:21:44 DUE TO TIME LIMIT on n447 ***, before Slurm 17.11
  if (!error && at == 0) error = After(line.text, "slurmstepd: *** ");
  if (!error) return at == 0 ? LineUse::ignored : LineUse::not_understood;
  const std::string_view text = *error;
  if (Contains(text, "CANCELLED AT ")) return ReadCancelled(line, out);
  if (Contains(text, "STEPD TERMINATED ")) return ReadUnkillable(line, out);
  if (Contains(text, ": task")) return ReadTaskEnd(line, text, out);
  // slurmstepd: error: Detected 1 oom_kill event in StepId=1234.0. Some of the step tasks have been OOM Killed.
  if (Contains(text, "oom_kill event") || Contains(text, "oom-kill event")) {
    TorchLogRecord& record = out.Add(TorchLogKind::oom_kill, line);
    record.value = 1;
    record.count = IntAfter(text, "Detected ").value_or(-1);
    record.text = Capped(line.text, 600);
    return LineUse::understood;
  }
  // slurmstepd: error: execve(): /opt/run/train.sh: No such file or directory
  if (const auto program = After(text, "execve(): ")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "execve");
    if (!is_new) return LineUse::understood;
    record->value = 1;
    record->subject = std::string(kCannotStart) + Capped(Trim(*program), 160);
    record->text = Capped(line.text, 600);
    record->by_path = program->substr(0, program->find(": ")).find('/') != std::string_view::npos;
    record->of_script = Contains(*program, "/slurm_script:");
    return LineUse::understood;
  }
  // srun: error: Node failure on node7
  if (auto node = After(text, "Node failure on ")) {
    TorchLogRecord& record = out.Add(TorchLogKind::node_failed, line);
    const std::string_view name = TakeWord(*node);
    record.subject = record.host = Capped(name.substr(0, name.find_first_of("`'\",;")), 200);
    record.text = Capped(line.text, 600);
    return LineUse::understood;
  }
  // slurmstepd: error: NVML: Failed to get usage(15): GPU is lost
  if (Contains(text, "NVML: ") && Contains(text, "GPU is lost")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "GPU is lost");
    if (is_new) record->subject = "GPU is lost", record->text = Capped(line.text, 600);
    return LineUse::understood;
  }
  const LineUse failure = ReadSrunFailure(line, text, out);
  return failure == LineUse::not_understood ? LineUse::ignored : failure;
}

}  // namespace tacet
