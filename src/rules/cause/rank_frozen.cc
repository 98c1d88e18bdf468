// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/standstill_finding.h"
#include "rules/rule.h"
#include "rules/words/silence_words.h"
#include "rules/words/words.h"

namespace tacet {

static bool CiteHungTasks(const Case& facts, std::vector<EvidenceItem>& evidence) {
  bool any = false;
  for (const Standstill& still : facts.standstill.ranks) {
    if (still.kind != StandstillKind::frozen || !still.hung_task) continue;
    evidence.insert(evidence.begin(), CiteEvent(*still.hung_task, "the kernel waits for " + RankWords({still.rank})));
    any = true;
  }
  return any;
}

// What the state is need not be asked again.
static std::vector<std::string> StepsOfState(const Silence& silence) {
  if (!silence.sight) return {};
  const std::string pid = std::to_string(silence.sight->pid);
  if (silence.state == TaskState::stopped)
    return {"Find out what stopped process " + pid +
                " (job suspension, a debugger, a cgroup freezer, Ctrl-Z), and resume it: kill -CONT " + pid + ".",
            "If it stops again: look at what the scheduler and the node's agents do at that time, and at "
            "/proc/" +
                pid + "/status (TracerPid names a debugger)."};
  if (silence.state != TaskState::uninterruptible) return {};
  return {"See what process " + pid + " waits for in the kernel: cat /proc/" + pid +
              "/stack; ps -o pid,stat,wchan -p " + pid + ".",
          "Look at dmesg for hung tasks, storage and driver errors; the node usually needs a reboot. Remove it from "
          "the pool."};
}

static RuleAnswer JudgeFrozen(const Case& facts) {
  RuleAnswer answer;
  auto finding = StandstillFinding(facts, StandstillKind::frozen, "rank-frozen");
  if (!finding) return answer;
  const int records = facts.analyses.life.records;
  finding->confidence = records > 0 ? Confidence::likely : Confidence::possible;
  const std::string who = RankWords(finding->ranks);
  if (const Silence* silence = FirstSilence(facts, StandstillKind::frozen)) {
    CiteSilences(facts, StandstillKind::frozen, finding->evidence);
    finding->confidence = silence->pulse ? Confidence::certain : Confidence::likely;
    finding->headline =
        who + (finding->ranks.size() == 1 ? " is" : " are") + " frozen: " + SilenceWords(facts, *silence);
    if (finding->ranks.size() == 1) finding->fix = StepsOfState(*silence);
    const std::string waits = WaitWords(facts);
    finding->headline += "; " + (waits.empty() ? "its peers wait for it" : waits);
    answer.findings.push_back(std::move(*finding));
    return answer;
  }
  if (CiteHungTasks(facts, finding->evidence)) {
    const bool alone = finding->ranks.size() == 1;
    finding->confidence = Confidence::certain;
    finding->headline = who + (alone ? " is" : " are") + " frozen: the kernel reports " +
                        std::string(alone ? "its process" : "their processes") + " as blocked (state D)";
    if (const std::string waits = WaitWords(facts); !waits.empty()) finding->headline += "; " + waits;
    answer.findings.push_back(std::move(*finding));
    return answer;
  }
  const bool one = finding->ranks.size() == 1;
  finding->headline =
      who + (one ? " is" : " are") + " most likely frozen: " + (one ? "it" : "they") +
      (records > 0 ? " wrote no flight record, printed no stack" : " printed no stack") +
      " and closed no connection before the others timed out, while " +
      (records > 0
           ? std::to_string(records) + (records == 1 ? " peer wrote a flight record" : " peers wrote flight records")
           : std::to_string(facts.analyses.life.stacks) +
                 (facts.analyses.life.stacks == 1 ? " peer printed its stack" : " peers printed their stacks"));
  if (const std::string waits = WaitWords(facts); !waits.empty()) finding->headline += "; " + waits;
  if (records > 0)
    finding->evidence.push_back(CiteAbsence(who + " wrote no flight record; " + std::to_string(records) +
                                            (records == 1 ? " other rank did" : " other ranks did")));
  finding->evidence.push_back(CiteAbsence(who + " printed no stack; " + std::to_string(facts.analyses.life.stacks) +
                                          (facts.analyses.life.stacks == 1 ? " other rank did" : " other ranks did")));
  for (const Rank rank : finding->ranks) {
    const RankLife* life = facts.analyses.life.Of(rank);
    if (life && life->last_event)
      finding->evidence.push_back(CiteEvent(*life->last_event, "the last sign of life of " + RankWords({rank})));
  }
  answer.findings.push_back(std::move(*finding));
  return answer;
}

extern const Rule kRankFrozenRule;
const Rule kRankFrozenRule = {
    "rank-frozen",
    "A rank is frozen",
    "flight records and stacks of the peers, the rank's own log; or black boxes of ranks on one host; or a list of the "
    "host's processes (ps, top)",
    "The process exists, but nothing in it runs: it was stopped (SIGSTOP, a debugger, a paused container or virtual "
    "machine) or hangs in the kernel (D state: dead storage, a driver). It cannot write a dump or a stack, and the "
    "kernel keeps its connections open, so its peers get no error.",
    "A dead rank closes its connections: peers log a closed connection. A rank stuck on the host still writes its "
    "dump, because the "
    "recorder's threads run. Missing files may also mean that they were not collected: then no file of that rank "
    "exists at all.",
    {"On its host look at the process state: ps -o pid,stat,wchan -p PID (T: stopped, D: uninterruptible "
     "sleep in the kernel).",
     "T: find out what stopped it (job suspension, debugger, cgroup freezer) and resume it: kill -CONT PID.",
     "D: look at dmesg for hung tasks, storage and driver errors; the node usually needs a reboot. Remove it from the "
     "pool."},
    {"Watch for processes in T and D state on the nodes.", "Do not let the scheduler suspend single ranks of a job."},
    JudgeFrozen};

}  // namespace tacet
