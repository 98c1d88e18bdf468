// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "rules/findings/kernel_reason.h"
#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// The same target of the same host answers again later in the same log.
bool IsBackLater(const Incident& incident, const Event& loss) {
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::storage_back && event.source.file == loss.source.file &&
           event.source.line > loss.source.line && event.speaker == loss.speaker &&
           event.As<StorageLoss>().target == loss.As<StorageLoss>().target;
  });
}

// "the Lustre target work-OST0003 (10.1.0.3@o2ib)", "the NFS server nas01"
std::string StorageWords(const StorageLoss& storage) {
  return "the " + storage.system + (storage.system == "Lustre" ? " target " : " server ") + storage.target +
         (storage.server.empty() ? "" : " (" + storage.server + ")");
}

// A server that evicts a client has taken away its locks and what it had not written yet.
std::string_view LossWords(const StorageLoss& storage) {
  return storage.fails && storage.system == "Lustre" ? " was evicted by " : " lost its connection to ";
}

// Each file system has tools of its own.
std::vector<std::string> StorageSteps(const StorageLoss& storage, const std::string& host) {
  const std::string on = host.empty() ? "On that host: " : "On " + host + ": ";
  if (storage.system == "Lustre")
    return {on + "df -h and ls of the mount (they hang, too), lfs check servers, mount | grep lustre; dmesg -T for the "
                 "time of the loss.",
            "Look at the server: is it up, does it fail over, and does the network between it and the host work (lctl "
            "ping NID, ibstat)?"};
  if (storage.system == "NFS")
    return {
        on + "df -h and ls of the mount (they hang, too), mount | grep nfs, nfsstat -m; dmesg -T for the time of the "
             "loss.",
        "Look at the server: is it up, does it fail over, and does the network between it and the host work (ping, "
        "rpcinfo -t SERVER nfs)?"};
  return {};
}

// A process of a job, not a service, that the kernel of the same host saw blocked.
const Event* BlockedProcess(const Case& facts, const Event& loss) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::hung_task && !event.Means(Meaning::of_service) &&
        event.source.file == loss.source.file && event.speaker == loss.speaker)
      return &event;
  return nullptr;
}

}  // namespace

static RuleAnswer JudgeStorage(const Case& facts) {
  RuleAnswer answer;
  const Event *lost = nullptr, *passed = nullptr;
  std::vector<const Event*> others;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::storage_lost) continue;
    if (IsBackLater(facts.incident, event))
      passed = passed ? passed : &event;
    else if (lost)
      others.push_back(&event);
    else
      lost = &event;
  }
  const Event* lead = lost ? lost : passed;
  if (!lead) return answer;
  const auto& storage = lead->As<StorageLoss>();
  const std::string host = SubjectOf(facts.incident, *lead).host;
  const std::string place = host.empty() ? "a host" : "the host " + host;
  Finding finding;
  finding.cause = "storage-unreachable";
  finding.fix = StorageSteps(storage, host);
  if (!finding.fix.empty())
    finding.fix.emplace_back(
        "Restart the job once the file system answers; restart the host if processes stay in state D.");
  finding.evidence.push_back(CiteEvent(*lead, "the kernel lost the file system's server"));
  const bool hangs = facts.analyses.outcome.hangs() || facts.analyses.end.kind == JobEnding::hung;
  if (!lost || !hangs) {
    // Whoever used it waited, or got an error of its own, which is told elsewhere.
    finding.severity = lost ? Severity::warning : Severity::note;
    finding.status = lost ? Status::degraded : Status::healthy;
    finding.confidence = Confidence::possible;
    finding.headline = place + std::string(LossWords(storage)) + StorageWords(storage) +
                       (lost ? "" : ", and reconnected: reads and writes were blocked in between");
    answer.findings.push_back(std::move(finding));
    return answer;
  }
  const Event* blocked = BlockedProcess(facts, *lead);
  const Rank waits = AwaitedOn(facts, *lead);
  const Rank rank = waits.known() ? waits : blocked ? blocked->rank : Rank{};
  if (rank.known()) finding.ranks = {rank};
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = rank.known() && blocked ? Confidence::likely : Confidence::possible;
  finding.affected_ranks = facts.standstill.waiters;
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
  }
  finding.headline = place + std::string(LossWords(storage)) + StorageWords(storage);
  if (blocked) {
    const std::string process = SubjectWords(SubjectOf(facts.incident, *blocked));
    finding.headline += ", and " + process + " is blocked in the kernel" +
                        (waits.known() && !blocked->rank.known() ? ", most likely " + RankWords({rank}) : "");
    finding.evidence.push_back(CiteEvent(*blocked, "a process of that host is blocked in the kernel"));
  } else if (rank.known()) {
    finding.headline += "; " + RankWords({rank}) + " most likely waits for it";
  }
  if (rank.known()) finding.headline += "; the others wait for " + RankWords({rank});
  for (const Event* other : others)
    if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(*other, "another loss"));
  for (const Standstill& still : facts.standstill.ranks)
    if (still.told && still.rank == rank && finding.evidence.size() < 4)
      finding.evidence.push_back(
          {still.told->source, RankWords({rank}) + " " + still.told->words, "the rank that the others wait for"});
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kStorageUnreachableRule;
const Rule kStorageUnreachableRule = {
    "storage-unreachable",
    "A file system does not answer",
    "the kernel log (Lustre, NFS, Ceph)",
    "The kernel of a host lost the server of a file system that is mounted there. A process that reads or writes it "
    "waits in the kernel (state D) until the server answers; a rank that saves a checkpoint or loads data does not "
    "reach "
    "its next collective, and its peers run into their timeout.",
    "A process that waits for a lock or for another process is not blocked in the kernel. A full disk gives an error "
    "at once. A connection that the kernel reports as restored is only noted.",
    {"On that host: df -h and ls of the mount (they hang, too), lfs check servers, mount | grep -E 'lustre|nfs|ceph'; "
     "dmesg -T for the time of the loss.",
     "Look at the server: is it up, does it fail over, and does the network between it and the host work "
     "(lctl ping NID, ping, ibstat)?",
     "Restart the job once the file system answers; restart the host if processes stay in state D."},
    {"Write checkpoints from a thread or process of its own, to local disk first.",
     "Make the timeout of the collective that follows a checkpoint longer than a file system failover."},
    JudgeStorage};

}  // namespace tacet
