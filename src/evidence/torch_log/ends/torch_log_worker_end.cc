// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_worker_end.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launch_failure.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/ends/torch_log_pod.h"
#include "evidence/torch_log/errors/torch_log_usage.h"
#include "evidence/torch_log/libraries/torch_log_ray.h"

namespace tacet {
namespace {

LineUse AddEnd(const LogLine& line, int64_t code, int64_t pid, int32_t rank, RecordList& out) {
  // Who is ended by SIGTERM was ended by its launcher.
  const auto kind = code == -15 ? TorchLogKind::process_killed : TorchLogKind::process_exited;
  const std::string key = std::to_string(code) + '/' + std::to_string(pid) + '/' + std::to_string(rank);
  const auto [record, is_new] = out.AddOnce(kind, line, key);
  if (!is_new) return LineUse::understood;
  record->value = code;
  if (code < 0) record->subject = std::string(SignalName(-code));
  record->pid = pid;
  record->rank = rank;
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// ... code 1 log log/workerlog.0
LineUse AddEndWithLog(const LogLine& line, int64_t code, int32_t rank, std::optional<std::string_view> path,
                      RecordList& out) {
  const LineUse use = AddEnd(line, code, -1, rank, out);
  const std::string key = std::to_string(code) + "/-1/" + std::to_string(rank);
  if (TorchLogRecord* record = out.Said(TorchLogKind::process_exited, line, key); record && path)
    record->file = Capped(TakeWord(*path), 300);
  return use;
}

LineUse AddMemoryKill(const LogLine& line, std::string_view pod, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, pod);
  if (!is_new) return LineUse::understood;
  record->value = 1;
  record->object = Capped(pod, 200);
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// A table of `kubectl get pods`, or "Reason: OOMKilled" of `kubectl describe`; a sentence that mentions it is neither.
// Says of which pod, where the same line tells it.
bool IsPodState(std::string_view text, std::string_view* pod) {
  std::string_view rest = Trim(text);
  if (TakeLiteral(rest, "Reason:") || TakeLiteral(rest, "reason:") || TakeLiteral(rest, "\"reason\":"))
    return Contains(rest, "OOMKilled");
  const std::string_view name = TakeWord(rest), ready = TakeWord(rest);
  if (ready.find('/') == std::string_view::npos || TakeWord(rest) != "OOMKilled") return false;
  *pod = name;
  return true;
}

// ssh -o PasswordAuthentication=no 10.0.3.4 hostname
std::string_view HostOfSsh(std::string_view arguments) {
  for (std::string_view word = TakeWord(arguments); !word.empty(); word = TakeWord(arguments)) {
    if (word == "-o" || word == "-p" || word == "-i" || word == "-l")
      TakeWord(arguments);
    else if (!word.starts_with('-'))
      return word.substr(0, word.find_first_of("',"));
  }
  return {};
}

// "node7:4": horovodrun's and Open MPI's way to write how many processes a host gets. No name has a colon in it.
bool HasSlots(std::string_view host) {
  const size_t colon = host.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view digits = host.substr(colon + 1);
  int64_t slots = 0;
  return TakeNumber(digits, &slots) && digits.empty() && slots > 0;
}

// The launcher's ssh to another node failed. What ssh itself says of the reason comes before what its caller says.
void AddSshFailure(const LogLine& line, std::string_view host, std::string_view reason, RecordList& out) {
  // Each host by its name; who calls ssh often cuts it short.
  const auto [record, is_new] = out.AddOnce(TorchLogKind::store_unreachable, line, "ssh " + std::string(host));
  if (!is_new) return;
  record->subject = Capped(host, 200);
  record->object = "ssh";
  if (!reason.empty()) record->object += std::string(" ") + std::string(reason);
  record->text = Capped(line.text, 600);
}

// ssh: Could not resolve hostname node7: Name or service not known
// ssh: connect to host node7 port 22: Connection refused
// pdsh@head: node7: ssh exited with exit code 255
// With 255 ssh itself failed; any other code is of the command that it ran.
LineUse ReadSshWords(const LogLine& line, RecordList& out) {
  if (const auto host = After(line.text, "ssh: Could not resolve hostname ")) {
    // The reason follows behind a colon and a blank; a colon alone is a part of the name.
    const std::string_view name = host->substr(0, std::min(host->find(": "), host->find(' ')));
    AddSshFailure(line, name, HasSlots(name) ? "slots" : "unknown-host", out);
    return LineUse::understood;
  }
  if (auto host = After(line.text, "ssh: connect to host "); host && Contains(*host, " port ")) {
    const std::string_view name = TakeWord(*host);
    AddSshFailure(line, name, "", out);
    // "port 2222: Connection refused"
    if (TorchLogRecord* told = out.Said(TorchLogKind::store_unreachable, line, "ssh " + std::string(name)))
      if (told->cure.empty()) told->cure = Capped(Trim(*host), 100);
    return LineUse::understood;
  }
  if (auto head = After(line.text, "pdsh@"); head && Contains(*head, ": ssh exited with exit code 255")) {
    TakeWord(*head);
    std::string_view host = TakeWord(*head);
    if (host.ends_with(':')) host.remove_suffix(1);
    AddSshFailure(line, host, "", out);
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// vLLM: "Worker proc VllmWorker-3 died unexpectedly, shutting down executor." The engine tells it of its worker, whose
// number is its rank; how the worker ended nobody printed.
LineUse ReadDeadWorker(const LogLine& line, std::string_view worker, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, worker);
  if (!is_new) return LineUse::understood;
  record->value = 255;
  // An engine beside others ("EngineCore_DP1") counts its own workers only.
  if (IntAfter(line.label, "_DP").value_or(0) == 0)
    record->rank = IntAfter<int32_t>(worker, "VllmWorker-").value_or(-1);
  record->subject = "vLLM's " + Capped(worker, 60) + " died unexpectedly, and no log shows why";
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// Paddle: "ABORT!!! Out of all 4 trainers, the trainer process with rank=[3] was aborted. Please check its log."
// One alone came to its end first; of several nobody can say who did.
LineUse ReadAbortedTrainers(const LogLine& line, std::string_view list, RecordList& out) {
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; TakeNumber(list, &rank) && rank >= 0 && ranks.size() < 65536;) {
    ranks.push_back(rank);
    if (!TakeLiteral(list, ",")) break;
    SkipBlanks(list);
  }
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "trainers");
  if (ranks.empty() || !is_new) return LineUse::understood;
  record->value = ranks.size() == 1 ? 255 : 1;
  record->subject = "Paddle's launcher reports an abort";
  record->text = Capped(line.text, 600);
  // "Please check its log": that is how Paddle names them.
  constexpr size_t kFewLogs = 4;
  for (size_t i = 0; i < ranks.size() && ranks.size() <= kFewLogs; ++i)
    record->file += (i == 0                 ? "workerlog."
                     : i + 1 < ranks.size() ? ", workerlog."
                                            : " and workerlog.") +
                    std::to_string(ranks[i]);
  if (ranks.size() == 1)
    record->rank = ranks.front();
  else
    out.KeepRanks(*record, ranks);
  return LineUse::understood;
}

// PyCharm: "Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)", "... exit code 137 (interrupted
// by signal 9:SIGKILL)". An exit code by itself is Python's, which has said why.
LineUse ReadFinishOfIde(const LogLine& line, int64_t code, RecordList& out) {
  if (const auto signal = IntAfter(line.text, "interrupted by signal "); signal && *signal > 0 && *signal < 65)
    return AddEnd(line, -*signal, -1, -1, out);
  if (code > 128 && code < 160) return AddEnd(line, 128 - code, -1, -1, out);
  return code == 0 ? LineUse::ignored : AddEnd(line, code, -1, -1, out);
}

// "/bin/sh: 1: torchrun: not found", "bash: torchrun: command not found": the job never began.
LineUse ReadMissingProgram(const LogLine& line, RecordList& out) {
  constexpr std::string_view kLaunchers[] = {"torchrun", "deepspeed", "accelerate", "mpirun",
                                             "srun",     "python",    "python3",    "horovodrun"};
  for (const std::string_view name : kLaunchers) {
    const std::string program = ": " + std::string(name) + ": ";
    if (!Contains(line.text, program + "not found") && !Contains(line.text, program + "command not found")) continue;
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, name);
    if (!is_new) return LineUse::understood;
    record->value = 1;
    record->subject = "the shell cannot find " + std::string(name);
    record->text = Capped(line.text, 300);
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// What an editor, a shell or a server says of a process that it started.
LineUse ReadToolsWord(const LogLine& line, RecordList& out) {
  if (const auto code = IntAfter(line.text, "Process finished with exit code "))
    return ReadFinishOfIde(line, *code, out);
  if (ContainsAny(line.text, {": command not found", "torchrun: not found", "deepspeed: not found",
                              "accelerate: not found", "mpirun: not found", "srun: not found", "orted: ", "prted: "})) {
    const LineUse daemon = ReadMissingDaemon(line, out);
    return daemon == LineUse::not_understood ? ReadMissingProgram(line, out) : daemon;
  }
  if (const LineUse use = ReadUsageError(line, out); use != LineUse::not_understood) return use;
  // SGLang: "Received sigquit from a child process. It usually means the child failed."
  if (Contains(line.text, "Received sigquit from a child proces")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_killed, line, "sigquit");
    if (is_new) record->object = "a child process of the server failed", record->text = Capped(line.text, 600);
    return LineUse::understood;
  }
  return LineUse::not_understood;
}

// msrun of MindSpore: "There's worker exits with exception, kill all other workers.", and of its scheduler's log:
// "Time out nodes are ['3']": the ids are the workers' ranks.
LineUse ReadMindSporeEnd(const LogLine& line, RecordList& out) {
  if (Contains(line.text, "There's worker exits with exception")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "msrun");
    if (is_new) record->value = 1, record->subject = "msrun reports an exception", record->text = Capped(line.text);
    return LineUse::understood;
  }
  // The node: 3 is timed out. It may exit with exception, please check this node's log.
  if (const auto node = IntAfter<int32_t>(line.text, "The node: ");
      node && *node >= 0 && Contains(line.text, " is timed out. It may exit")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "msrun node");
    if (is_new) record->text = Capped(line.text, 600), record->subject = "a heartbeat that stopped";
    // One alone stopped first; of several nobody can say who did.
    record->value = is_new || record->rank == *node ? 255 : 1;
    record->rank = is_new || record->rank == *node ? *node : -1;
    return LineUse::understood;
  }
  auto list = After(line.text, "Time out nodes are [");
  if (!list) return LineUse::not_understood;
  std::vector<int32_t> ranks;
  for (int32_t rank = -1; TakeLiteral(*list, "'") && TakeNumber(*list, &rank) && rank >= 0 && ranks.size() < 65536;) {
    ranks.push_back(rank);
    if (!TakeLiteral(*list, "', ")) break;
  }
  if (ranks.empty()) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "msrun nodes");
  if (!is_new) return LineUse::understood;
  // One alone stopped first; of several nobody can say who did.
  record->value = ranks.size() == 1 ? 255 : 1;
  record->subject = "a heartbeat that stopped";
  record->text = Capped(line.text, 600);
  if (ranks.size() == 1)
    record->rank = ranks.front();
  else
    out.KeepRanks(*record, ranks);
  return LineUse::understood;
}

constexpr std::string_view kSpawnRepeats = "an error that is cut off";

}  // namespace

void DropToldSpawns(TorchLog& log) {
  uint32_t first = UINT32_MAX;
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::process_exited && record.subject == kSpawnRepeats)
      first = std::min(first, record.source.line);
  for (TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::exception && record.source.line > first) record.of_spawn = true;
  uint32_t last = 0;
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::exception || record.kind == TorchLogKind::nccl_error ||
        record.kind == TorchLogKind::cuda_error || record.kind == TorchLogKind::nccl_warning)
      last = std::max(last, record.source.line);
  std::erase_if(log.records, [&](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::process_exited && record.subject == kSpawnRepeats && record.source.line < last;
  });
}

void DropHearsay(TorchLog& log) {
  const auto is_end = [](const TorchLogRecord& record) { return record.kind == TorchLogKind::process_exited; };
  if (std::any_of(log.records.begin(), log.records.end(),
                  [&](const TorchLogRecord& record) { return is_end(record) && !record.in_sentence; }))
    std::erase_if(log.records, [&](const TorchLogRecord& record) { return is_end(record) && record.in_sentence; });
}

// What a launcher raises while it ends the others is no error of the job's: an end that it told before is the finding.
void DropCleanUpErrors(TorchLog& log) {
  uint32_t first_end = UINT32_MAX;
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::process_exited) first_end = std::min(first_end, record.source.line);
  std::erase_if(log.records, [&](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::exception && record.of_launcher && record.source.line > first_end;
  });
}

// [rank: 0] Child process with PID 20114 terminated with code -11. Forcefully terminating all other processes ...
// Global rank 9 (PID 1822) exited with code 1
// ERROR:composer.cli.launcher:Rank 9 crashed with exit code 1.
// subprocess.CalledProcessError: Command '['python', 'train.py']' died with <Signals.SIGKILL: 9>.
// subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.
// x3006c0s13b1n0.hsn: rank 2 died from signal 15
LineUse ReadWorkerEnd(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (const auto child = After(text, "Child process with PID "))
    if (const auto code = IntAfter(*child, "terminated with code "); code && *code != 0)
      return AddEnd(line, *code, IntAfter(text, "Child process with PID ").value_or(-1), -1, out);
  if (const auto code = IntAfter(text, ") exited with code "); code && *code != 0)
    if (const auto rank = IntAfter<int32_t>(text, "lobal rank "))
      return AddEnd(line, *code, IntAfter(text, "(PID ").value_or(-1), *rank, out);
  if (const auto code = IntAfter(text, " crashed with exit code "); code && *code != 0)
    if (const auto rank = IntAfter<int32_t>(text, "Rank ")) return AddEnd(line, *code, -1, *rank, out);
  // The command before it may fill many lines.
  if (const auto name = After(text, " died with <Signals.")) return AddEnd(line, -SignalNumber(*name), -1, -1, out);
  if (Contains(text, "CalledProcessError")) {
    // Command 'ssh -o PasswordAuthentication=no 10.0.3.4 hostname' returned non-zero exit status 255.
    const auto command = After(text, "Command ");
    const std::string_view program =
        command ? command->substr(std::min(command->find_first_not_of("'[ "), command->size())) : std::string_view();
    const bool ssh = program.starts_with("ssh ") || program.starts_with("ssh'");
    const auto code = IntAfter(text, " returned non-zero exit status ");
    if (code && *code == 255 && ssh) {
      AddSshFailure(line, HostOfSsh(program.substr(4)), "", out);
      return LineUse::understood;
    }
    // A tool that a rank started: the rank tells of it, and may live.
    if (code && command && IsBuildTool(*command)) return LineUse::not_understood;
    if (code) return AddEnd(line, *code, -1, -1, out);
  }
  // Paddle: "Container rank 0 status failed cmd ['/usr/bin/python', ...] code 1 log log/workerlog.0"
  if (const auto rank = IntAfter<int32_t>(text, "Container rank "); rank && Contains(text, " status failed "))
    if (const auto code = IntAfter(text, "] code "); code && *code != 0)
      return AddEndWithLog(line, *code, *rank, After(text, " log "), out);
  // kubectl exec, which mpi-operator's launcher starts its daemons with: how what ran in the pod ended.
  if (const auto code = IntAfter(text, "command terminated with exit code "); code && *code > 128 && *code < 160) {
    AddEnd(line, 128 - *code, -1, -1, out);
    if (TorchLogRecord* record = out.Said(TorchLogKind::process_exited, line, std::to_string(128 - *code) + "/-1/-1"))
      record->of_pod = true;
    return LineUse::understood;
  }
  if (const auto ranks = After(text, "the trainer process with rank=["); ranks && Contains(*ranks, "aborted"))
    return ReadAbortedTrainers(line, *ranks, out);
  if (const auto signal = IntAfter(text, " died from signal "); signal && *signal > 0 && *signal <= 64)
    return AddEnd(line, -*signal, -1, IntAfter<int32_t>(text, "rank ").value_or(-1), out);
  // horovodrun: "Process 1 exit with status code 1."
  if (const auto code = IntAfter(text, " exit with status code "); code && *code != 0 && text.starts_with("Process "))
    return AddEnd(line, *code > 128 && *code < 160 ? 128 - *code : *code, -1,
                  IntAfter<int32_t>(text, "Process ").value_or(-1), out);
  // text-generation-inference: "ERROR shard-manager: text_generation_launcher: Shard process was signaled to shutdown
  // with signal 9 rank=1"
  if (const auto signal = IntAfter(text, "Shard process was signaled to shutdown with signal ");
      signal && *signal > 0 && *signal <= 64)
    return AddEnd(line, -*signal, -1, IntAfter<int32_t>(text, " rank=").value_or(-1), out);
  if (auto worker = After(text, "Worker proc "); worker && Contains(*worker, " died unexpectedly"))
    return ReadDeadWorker(line, TakeWord(*worker), out);
  if (const LineUse use = ReadToolsWord(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadMindSporeEnd(line, out); use != LineUse::not_understood) return use;
  if (Contains(text, "EngineCore failed to start")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::abort_signal, line, "engine");
    if (is_new) record->object = "vLLM's EngineCore failed to start", record->text = Capped(text, 600);
    return LineUse::understood;
  }
  // mpirun: "Primary job  terminated normally, but 1 process returned / a non-zero exit code."
  // "mpirun detected that one or more processes exited with non-zero status, thus causing": which one follows.
  if (ContainsAny(text, {"Primary job  terminated normally, but ", "processes exited with non-zero status"})) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::abort_signal, line, "mpirun");
    if (is_new) record->object = "a process that mpirun started exited with a non-zero code";
    if (is_new) record->text = Capped(Trim(text), 600);
    return LineUse::understood;
  }
  if (const LineUse use = ReadSshWords(line, out); use != LineUse::not_understood) return use;
  // Ray: its words are many lines, and only these two tell that a worker is gone for good, or for want of memory.
  if (IsRaysMemoryKill(text)) return AddRaysMemoryKill(line, out);
  if (NoteRaysCount(line, out)) return LineUse::understood;
  if (Contains(text, "container init was OOM-killed")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, kContainerStart);
    if (is_new) record->value = 1, record->subject = kContainerStart, record->text = Capped(line.text, 600);
    return LineUse::understood;
  }
  // Ray: "The node with node id: 8f20... and ip: 10.0.0.3 has been marked dead because the detector has missed too many
  // heartbeats from it."
  // "... and address: 10.0.0.3 and node name: 10.0.0.3 has been marked dead ...", also inside of its JSON events.
  if (Contains(text, "has been marked dead because the detector")) {
    auto address = After(text, " and ip: ");
    if (!address) address = After(text, " and address: ");
    const std::string_view ip = address ? TakeWord(*address) : std::string_view();
    const auto [record, is_new] = out.AddOnce(TorchLogKind::node_failed, line, ip);
    if (is_new) record->subject = Capped(ip, 200), record->text = Capped(text, 600), record->object = kHeartbeat;
    return LineUse::understood;
  }
  if (Contains(text, "*** Your MPI job will now abort")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::abort_signal, line, "mpi");
    if (is_new) record->subject = "MPI", record->text = Capped(text, 600);
    return LineUse::understood;
  }
  // torch/multiprocessing/spawn.py:165] Terminating process 7476 via signal SIGTERM
  if (const auto pid = IntAfter(text, "Terminating process "); pid && Contains(text, "via signal SIGTERM"))
    return AddEnd(line, -15, *pid, -1, out);
  // torch.multiprocessing.spawn: "-- Process 8 terminated with the following error:"
  if (const auto rank = IntAfter<int32_t>(text, "-- Process ");
      rank && Contains(text, "terminated with the following")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "spawn " + std::to_string(*rank));
    if (!is_new) return LineUse::understood;
    record->value = 1;
    record->rank = *rank;
    record->subject = kSpawnRepeats;
    record->of_spawn = true;
    record->text = Capped(text, 300);
    return LineUse::understood;
  }
  // kubectl describe: "      Exit Code:    137"
  if (Trim(text).starts_with("Exit Code:")) {
    std::string_view digits = Trim(Trim(text).substr(10));
    int64_t code = 0;
    if (TakeNumber(digits, &code) && digits.empty() && code > 128 && code < 160)
      return AddEnd(line, 128 - code, -1, -1, out);
    return LineUse::not_understood;
  }
  // slurmctld: "_job_complete: JobId=127441 WTERMSIG 9"
  if (const auto signal = IntAfter(text, " WTERMSIG "); signal && *signal > 0 && *signal < 65)
    return AddEnd(line, -*signal, -1, -1, out);
  // Ray knows only that the connection broke; it lists what may be the reason.
  // ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
  // A worker died or was killed while executing a task by an unexpected system error. ... Worker PID: 8537
  if (ContainsAny(text, {"Worker exit type: SYSTEM_ERROR", "ActorDiedError: The actor died unexpectedly",
                         "RayActorError: The actor died unexpectedly",
                         "died or was killed while executing a task by an unexpected system error"})) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "ray");
    const int64_t pid = IntAfter(text, "Worker PID: ").value_or(-1);
    if (record->pid < 0) record->pid = pid;
    if (auto host = After(text, "Worker IP address: "); host && record->host.empty() && !host->starts_with("0.0.0.0"))
      record->host = Capped(TakeWord(*host), 200);
    record->repeats = 1;  // the same end, told again
    if (!is_new) return LineUse::understood;
    record->value = 255;
    record->subject = kRaySawItClose;
    record->text = Capped(text, 600);
    return LineUse::understood;
  }
  if (std::string_view pod; Contains(text, "OOMKilled") && IsPodState(text, &pod)) return AddMemoryKill(line, pod, out);
  return ReadPodEnd(line, out);
}

}  // namespace tacet
