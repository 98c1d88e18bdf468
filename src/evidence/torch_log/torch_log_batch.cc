// SPDX-License-Identifier: Apache-2.0
// PBS and LSF, at the end of a job's output.
#include <array>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"

namespace tacet {
namespace {

struct BatchLimit {
  std::string_view words, of_what;
};
constexpr std::array<BatchLimit, 6> kBatchLimits{{{"TERM_THREADLIMIT", "threads"},
                                                  {"TERM_PROCESSLIMIT", "processes"},
                                                  {"TERM_CPULIMIT", "CPU time"},
                                                  {"TERM_SWAP", "swap space"},
                                                  {"PBS: job killed: cput ", "CPU time"},
                                                  {"PBS: job killed: ncpus ", "CPUs"}}};

std::string_view LimitIn(std::string_view text) {
  for (const BatchLimit& limit : kBatchLimits)
    if (Contains(text, limit.words)) return limit.of_what;
  return {};
}

// A closed run window and a host under load end a job as a more urgent one does.
bool MakesRoom(std::string_view text) {
  return text.starts_with("TERM_PREEMPT") || text.starts_with("TERM_WINDOW") || text.starts_with("TERM_LOAD");
}

}  // namespace

// =>> PBS: job killed: walltime 3611 exceeded limit 3600
// =>> PBS: job killed: mem 67420160kb exceeded limit 67108864kb
// TERM_RUNLIMIT: job killed after reaching LSF run time limit.
// TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.
// TERM_THREADLIMIT: job killed after reaching LSF thread limit.
// TERM_OWNER: job killed by owner.
LineUse ReadBatchLine(const LogLine& line, RecordList& out) {
  if (!line.has(Keyword::batch_killed)) return LineUse::not_understood;
  const std::string_view text = Trim(line.text);
  // MOAB_INFO:  job exceeded wallclock limit
  // Job exceeded its walltime limit. Job was aborted
  // job preempted (node failure)
  const bool moab = Contains(text, "job exceeded wallclock limit");
  if (moab || text.starts_with("Job exceeded its walltime limit")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::job_time_limit, line, "batch");
    if (is_new) record->subject = moab ? "Moab" : "PBS", record->text = Capped(text, 300);
    AddSchedulerKill(line, SchedulerKill::time_limit, moab ? "Moab" : "PBS", out);
    return LineUse::understood;
  }
  // 04/18/2016 22:55:25;0008;PBS_Server.12149;Job;70.sched1;Job deleted at request of root@sched1
  // Whoever it is: a reason that the same text tells says more.
  if (Contains(text, "ob deleted at request of ")) {
    AddSchedulerKill(line, SchedulerKill::cancelled, "PBS", out);
    return LineUse::understood;
  }
  if (text.starts_with("job preempted")) {
    AddSchedulerKill(line, SchedulerKill::preempted, "PBS", out);
    return LineUse::understood;
  }
  const bool pbs = text.starts_with("=>> PBS: job killed: ");
  if (!pbs && !text.starts_with("TERM_")) return LineUse::not_understood;
  TorchLogKind kind = TorchLogKind::process_killed;
  if (Contains(text, ": walltime ") || text.starts_with("TERM_RUNLIMIT") || text.starts_with("TERM_DEADLINE"))
    kind = TorchLogKind::job_time_limit;
  else if (Contains(text, "mem ") || text.starts_with("TERM_MEMLIMIT"))
    kind = TorchLogKind::oom_kill;
  const auto [record, is_new] = out.AddOnce(kind, line, text);
  if (!is_new) return LineUse::understood;
  if (kind != TorchLogKind::oom_kill && !text.starts_with("TERM_UNKNOWN")) {
    const SchedulerKill why = kind == TorchLogKind::job_time_limit ? SchedulerKill::time_limit
                              : !LimitIn(text).empty()             ? SchedulerKill::limit
                              : MakesRoom(text)                    ? SchedulerKill::preempted
                              : text.starts_with("TERM_REQUEUE")   ? SchedulerKill::requeued
                                                                   : SchedulerKill::cancelled;
    AddSchedulerKill(line, why, pbs ? "PBS" : "LSF", out, LimitIn(text));
  }
  if (kind == TorchLogKind::oom_kill) record->value = 1;
  record->subject = pbs ? "PBS" : "LSF";
  record->text = Capped(text, 300);
  return LineUse::understood;
}

}  // namespace tacet
