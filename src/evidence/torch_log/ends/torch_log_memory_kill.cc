// SPDX-License-Identifier: Apache-2.0
// Who was killed for lack of memory, as systemd tells it and as sentences quote the kernel.
#include <cstdint>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"

namespace tacet {
namespace {

// systemd-oomd[1204]: Killed /user.slice/user-1000.slice/session-4.scope due to memory pressure for ...
// systemd[1]: trainer.service: systemd-oomd killed 9 process(es) in this unit.
// systemd[1]: trainer.service: A process of this unit has been killed by the OOM killer.
// systemd[1]: trainer.service: Failed with result 'oom-kill'.
// The unit of a desktop program (app-gnome-firefox-2504.scope) is none of the job's.
LineUse ReadUnitKill(const LogLine& line, RecordList& out) {
  std::string_view text = Trim(line.text), unit;
  if (const size_t head = text.substr(0, 160).find("]: "); head != std::string_view::npos)
    text.remove_prefix(head + 3);  // "Sep 10 14:59:49 gpu7 systemd-oomd[34]: "
  if (const size_t end = text.find(" due to memory pressure for "); end != std::string_view::npos) {
    if (!TakeLiteral(text, "Killed /")) return LineUse::not_understood;  // "Marked ... for killing"
    unit = text.substr(0, text.find(' '));
    unit = unit.substr(unit.rfind('/') + 1);
  } else {
    unit = text.substr(0, text.find(": "));
  }
  if (!unit.ends_with(".service") && !unit.ends_with(".scope") && !unit.ends_with(".slice"))
    return LineUse::not_understood;
  const bool desktop = unit.starts_with("app-") && !Contains(unit, "erminal");
  if (desktop) return LineUse::ignored;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, unit);
  if (!is_new) return LineUse::understood;
  record->value = 1;
  record->subject = kSystemdsKiller;
  record->object = Capped(unit, 200);
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

// found ` Memory cgroup out of memory: Kill process 17811 (python3)`: the kernel's words, in a sentence.
LineUse ReadQuotedKill(const LogLine& line, RecordList& out) {
  if (Contains(line.text, " oom_kill event")) {  // slurmstepd's, in the middle of a sentence
    if (Trim(line.text).starts_with("slurmstepd")) return LineUse::not_understood;
    const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, "event");
    if (is_new) record->value = 1, record->text = Capped(line.text, 600);
    return LineUse::understood;
  }
  // The kernel's own lines have a reader of their own.
  const std::string_view own = Trim(line.text);
  if (own.starts_with('[') || own.starts_with("Memory cgroup out") || own.starts_with("Out of memory"))
    return LineUse::not_understood;
  auto rest = After(line.text, "out of memory: Kill");
  if (!rest) return LineUse::not_understood;
  TakeLiteral(*rest, "ed");
  int64_t pid = 0;
  if (!TakeLiteral(*rest, " process ") || !TakeNumber(*rest, &pid) || pid <= 0) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::oom_kill, line, std::to_string(pid));
  if (!is_new) return LineUse::understood;
  record->pid = pid;
  record->value = Contains(line.text, "cgroup") ? 1 : 0;
  if (TakeLiteral(*rest, " (")) record->subject = Capped(rest->substr(0, rest->find(')')), 60);
  record->text = Capped(line.text, 600);
  return LineUse::understood;
}

}  // namespace

LineUse ReadMemoryKill(const LogLine& line, RecordList& out) {
  const LineUse quoted = ReadQuotedKill(line, out);
  return quoted == LineUse::understood ? quoted : ReadUnitKill(line, out);
}

}  // namespace tacet
