// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/ends/torch_log_launcher.h"

#include <algorithm>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_worker_end.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"

namespace tacet {
namespace {

TorchLogRecord& AddExit(const LogLine& line, int64_t code, RecordList& out) {
  TorchLogRecord& record = out.Add(TorchLogKind::process_exited, line);
  record.value = code;
  if (code < 0) record.subject = std::string(SignalName(-code));
  record.text = Capped(line.text, 600);
  return record;
}

TorchLogRecord& AddKill(const LogLine& line, int64_t pid, std::string_view subject, RecordList& out) {
  TorchLogRecord& record = out.Add(TorchLogKind::process_killed, line);
  record.pid = pid;
  record.subject = Capped(subject, 60);
  record.text = Capped(line.text, 600);
  return record;
}

// failed (exitcode: -9) local_rank: 3 (pid: 812917) of binary: /usr/bin/python3
LineUse ReadWorkerFailure(const LogLine& line, RecordList& out) {
  const auto code = IntAfter(line.text, "failed (exitcode: ");
  if (!code) return LineUse::not_understood;
  TorchLogRecord& record = AddExit(line, *code, out);
  record.local_rank = IntAfter<int32_t>(line.text, "local_rank: ").value_or(-1);
  record.pid = IntAfter(line.text, "(pid: ").value_or(-1);
  return LineUse::understood;
}

// The key under which AddSchedulerKill() keeps a signal.
std::string PassedOnKey(std::string_view signal) {
  return std::to_string(static_cast<int>(SchedulerKill::signal)) + '/' + std::string(signal.substr(0, 100));
}

// Sending process 59460 closing signal SIGTERM
// Received 15 death signal, shutting down workers
// Unable to shutdown process 123 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL
// [2023-04-14 13:11:27,879] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266
LineUse ReadKill(const LogLine& line, RecordList& out) {
  if (line.has(Keyword::closing_signal)) {
    auto signal = After(line.text, "closing signal ");
    const std::string_view name = TakeWord(*signal);
    AddKill(line, IntAfter(line.text, "Sending process ").value_or(-1), name, out);
    // After a failure torchrun sends SIGTERM; any other signal is one that it received and passes on.
    // It passes it on to each process: that is one signal.
    if (name != "SIGTERM" && name != "SIGKILL" && !out.Said(TorchLogKind::scheduler_kill, line, PassedOnKey(name)))
      AddSchedulerKill(line, SchedulerKill::signal, name, out);
  } else if (line.has(Keyword::death_signal)) {
    auto name = After(line.text, "Received Signals.");
    AddKill(line, -1, name ? TakeWord(*name) : SignalName(IntAfter(line.text, "Received ").value_or(-1)), out);
    ReadOutsideKill(line, out);
  } else if (line.has(Keyword::unable_to_shutdown)) {
    AddKill(line, IntAfter(line.text, "shutdown process ").value_or(-1), "SIGKILL", out);
  } else {
    AddKill(line, IntAfter(line.text, "Killing subprocess ").value_or(-1), "SIGTERM", out);
  }
  return LineUse::understood;
}

// torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL
// torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 1
// Exception: process 3 terminated with signal SIGKILL      (before 1.6)
LineUse ReadSpawnFailure(const LogLine& line, RecordList& out) {
  if (!ContainsAny(line.text, {"ProcessExitedException", "Exception: process "})) return LineUse::not_understood;
  int64_t code = IntAfter(line.text, "terminated with exit code ").value_or(0);
  if (auto name = After(line.text, "terminated with signal ")) code = -SignalNumber(TakeWord(*name));
  TorchLogRecord& record = AddExit(line, code, out);
  record.local_rank = IntAfter<int32_t>(line.text, "process ").value_or(-1);
  record.of_spawn = true;
  return LineUse::understood;
}

LineUse ReadShellNotice(const LogLine& line, RecordList& out) {
  const auto notice = FindShellNotice(line.text);
  if (!notice) return LineUse::not_understood;
  AddExit(line, -notice->signal, out).pid = notice->pid;
  return LineUse::understood;
}

}  // namespace

namespace {

// "PYTHONPATH=." of a command, and the words that may stand before such.
bool IsBeforeCommand(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos)
    return word == "export" || word == "env" || word == "exec" || word == "nohup" || word == "time";
  return equals > 0 && std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                                   [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

// $ CUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc_per_node 8 train.py
// export CUDA_VISIBLE_DEVICES=0,1
// A sentence that speaks of the variable is no command: nothing but a prompt and other settings stands before it.
void ReadVisibleDevices(const LogLine& line, RecordList& out) {
  constexpr std::string_view kName = "CUDA_VISIBLE_DEVICES";
  std::string_view text = line.text;
  for (const std::string_view prompt : {"$ ", "# ", "% "})
    if (const size_t at = text.substr(0, 120).find(prompt); at != std::string_view::npos) {
      text.remove_prefix(at + prompt.size());
      break;
    }
  TakeLiteral(text, "+ ");  // set -x
  while (!text.empty()) {
    std::string_view word = TakeWord(text);
    if (!IsBeforeCommand(word)) return;
    if (!TakeLiteral(word, kName) || !TakeLiteral(word, "=")) continue;
    while (!word.empty() && (word.back() == ';' || word.back() == '"' || word.back() == '\'')) word.remove_suffix(1);
    while (!word.empty() && (word[0] == '"' || word[0] == '\'')) word.remove_prefix(1);
    if (word.empty() || word.find_first_not_of("0123456789,") != std::string_view::npos) return;
    const auto [record, is_new] = out.AddOnce(TorchLogKind::setting, line, kName);
    record->subject = kName;
    record->object = Capped(word, 200);
    record->source = line.source;
    if (is_new) record->text = Capped(line.text, 300);
    return;
  }
}

}  // namespace

void ReadNodeCount(const LogLine& line, RecordList& out) {
  ReadVisibleDevices(line, out);
  // A rank of a node that is not the first: there are at least so many.
  struct Word {
    std::string_view name;
    int64_t more;
  };
  for (const auto& [name, more] : {Word{"nnodes", 0}, Word{"num_machines", 0}, Word{"node_rank", 1},
                                   Word{"node-rank", 1}, Word{"machine_rank", 1}}) {
    auto rest = After(line.text, name);
    if (!rest) continue;
    rest->remove_prefix(std::min(rest->find_first_not_of(" =:'\"\t"), rest->size()));
    int64_t count = 0;
    if (!TakeNumber(*rest, &count)) continue;
    if (more == 0 && TakeLiteral(*rest, ":")) TakeNumber(*rest, &count);  // "--nnodes=1:4", at least and at most
    if (count + more < 2 || count > 100'000) continue;
    const auto [record, is_new] = out.AddOnce(TorchLogKind::node_count, line, "");
    record->value = std::max(record->value, count + more);
    if (is_new) record->text = Capped(line.text, 300);
  }
}

LineUse ReadLauncherLine(const LogLine& line, RecordList& out) {
  if (!line.keywords.any()) return LineUse::not_understood;
  if (line.has(Keyword::exit_code)) return ReadWorkerFailure(line, out);
  // [default] Worker group FAILED. 2/3 attempts left; will restart worker group
  if (line.has(Keyword::restart)) {
    out.Add(TorchLogKind::restarted, line);
    return LineUse::understood;
  }
  if (line.has(Keyword::closing_signal) || line.has(Keyword::death_signal) || line.has(Keyword::unable_to_shutdown) ||
      line.has(Keyword::killing_subprocess))
    return ReadKill(line, out);
  // [2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py'] exits with
  // return code = -9
  if (line.has(Keyword::return_code)) {
    TorchLogRecord& record = AddExit(line, IntAfter(line.text, "exits with return code = ").value_or(1), out);
    // The launcher puts nothing but the command before it, as a list.
    const std::string_view before = Trim(line.text.substr(0, line.text.find("exits with return code = ")));
    record.in_sentence = !before.empty() && !before.ends_with(']');
    // It names the command that it started last, whoever failed: where that is local rank 0, there is no other.
    if (line.label.empty() && ContainsAny(before, {"'--local_rank=0'", "'--local-rank=0'"})) record.local_rank = 0;
    return LineUse::understood;
  }
  if (line.has(Keyword::batch_killed)) return ReadBatchLine(line, out);
  if (line.has(Keyword::worker_ended))
    if (const LineUse use = ReadWorkerEnd(line, out); use != LineUse::not_understood) return use;
  if (line.has(Keyword::spawn_ended)) return ReadSpawnFailure(line, out);
  if (line.has(Keyword::outside_kill))
    if (const LineUse use = ReadOutsideKill(line, out); use != LineUse::not_understood) return use;
  if (line.has(Keyword::killed) || line.has(Keyword::core_dumped)) return ReadShellNotice(line, out);
  return LineUse::not_understood;
}

}  // namespace tacet
