// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_launch_failure.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {

void AddLaunchFailure(const LogLine& line, LaunchProblem problem, std::string_view reason, std::string_view host,
                      RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, "launch");
  record->repeats = 1;  // the same failure, told again
  if (!is_new) return;
  record->subject = "launcher";
  record->count = static_cast<int64_t>(problem);
  record->object = Capped(Trim(reason), 200);
  record->host = Capped(host, 200);
  record->text = Capped(Trim(line.text), 600);
}

// bash: orted: command not found
// bash: line 1: prted: command not found
// bash: line 1: /opt/openmpi/bin/orted: No such file or directory
LineUse ReadMissingDaemon(const LogLine& line, RecordList& out) {
  for (const std::string_view name : {"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy"}) {
    const size_t at = line.text.find(name);
    if (at == std::string_view::npos || at == 0 || (line.text[at - 1] != ' ' && line.text[at - 1] != '/')) continue;
    const std::string_view rest = line.text.substr(at + name.size());
    if (!rest.starts_with(": command not found") && !rest.starts_with(": No such file or directory") &&
        !rest.starts_with(": not found"))
      continue;
    AddLaunchFailure(line, LaunchProblem::no_program, name, "", out);
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// srun: error: Task launch for StepId=88120.0 failed on node gpu07: Invalid job credential
// srun: error: Application launch failed: Invalid job credential
// srun: error: task 809 launch failed: Unspecified error
// srun: error: Unable to create step for job 5512: Memory required by task is not available
// srun: error:  mpi/pmix_v4: init: (null) [0]: mpi_pmix.c:193: pmi/pmix: can not load PMIx library
// srun: error: Couldn't load specified plugin name for mpi/pmix_v4: Plugin init() callback failed
// srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types
LineUse ReadSrunFailure(const LogLine& line, std::string_view text, RecordList& out) {
  text = Trim(text);
  if (ContainsAny(text, {"can not load PMIx library", "plugin name for mpi/", "Invalid MPI type "})) {
    AddLaunchFailure(line, LaunchProblem::mpi_plugin, text, "", out);
    return LineUse::understood;
  }
  std::string_view reason, host;
  if (text.starts_with("Task launch for ")) {
    // A failed prolog is the node's own state, and read as that.
    if (Contains(text, "rolog")) return LineUse::not_understood;
    auto node = After(text, " failed on node ");
    const size_t colon = node ? node->find(": ") : std::string_view::npos;
    if (colon == std::string_view::npos) return LineUse::not_understood;
    host = node->substr(0, colon);
    reason = node->substr(colon + 2);
  } else if (text.starts_with("Application launch failed: ") || text.starts_with("Unable to create step for job ") ||
             (text.starts_with("task ") && Contains(text.substr(0, 40), " launch failed: "))) {
    const size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return LineUse::not_understood;
    reason = text.substr(colon + 2);
  } else {
    return LineUse::not_understood;
  }
  AddLaunchFailure(line, LaunchProblem::step, reason, host, out);
  return LineUse::understood;
}

void DropPassedLaunches(TorchLog& log) {
  const bool started = std::any_of(log.records.begin(), log.records.end(),
                                   [](const TorchLogRecord& record) { return record.kind == TorchLogKind::progress; });
  if (!started) return;
  std::erase_if(log.records, [](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::rendezvous_incomplete && record.subject == "launcher";
  });
}

}  // namespace tacet
