// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "rules/findings/memory_victim.h"
#include "rules/findings/refusal_finding.h"
#include "rules/first_end.h"
#include "rules/rule.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/gpu_maker.h"
#include "rules/words/gpu_memory_words.h"
#include "rules/words/words.h"

namespace tacet {

// Slurm, LSF, PBS and Kubernetes tell of a kill in the job's own cgroup, most often without a pid. The kernel always
// names one.
static bool IsSchedulersKill(const Event& event) {
  return event.kind == EventKind::oom_kill && !event.rank.known() && (event.pid < 0 || NamesVictim(event));
}

// What the process was doing when its GPU had no memory left.
static Activity ActivityAround(const Case& facts, const Event* memory) {
  const Event* exception = memory ? ExceptionAround(facts.incident, *memory) : nullptr;
  return exception ? exception->As<Raised>().during : Activity::not_told;
}

// A process that shuts down already failed, or was told to end, before: what it reports then is no first cause.
static void TellShutdown(Finding& finding) {
  finding.headline += ": something failed, or ended the job, before that";
  finding.confidence = Confidence::possible;
  finding.ranks.clear();
  finding.fix.insert(finding.fix.begin(),
                     "Read the output above the cited lines, and that of the other ranks: the error that made the "
                     "process shut down came first.");
}

// The only rank that ended by SIGKILL is the one that the scheduler speaks of.
static const Event* FindOnlyKilled(const Case& facts) {
  const Event* only = nullptr;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (!life.exited || life.exited->As<ProcessEnd>().code != -9) continue;
    if (only) return nullptr;
    only = life.exited;
  }
  return only;
}

// A line about memory that nobody raised, and later a rank that raised something else: the batch was skipped, or tried
// again in smaller pieces.
class MentionedMemory {
 public:
  explicit MentionedMemory(const Incident& incident) {
    for (const Event& event : incident.events) {
      if (event.kind != EventKind::exception) continue;
      raised_.emplace(event.source.file, event.source.line);
      const bool own = event.rank.known() && !IsConsequence(event);
      if (own && (!last_ || CameBefore(*last_, event))) last_ = &event;
    }
  }
  bool Holds(const Event& memory) const {
    return last_ && !raised_.contains({memory.source.file, memory.source.line}) && CameBefore(memory, *last_);
  }

 private:
  std::set<std::pair<FileId, uint32_t>> raised_;
  const Event* last_ = nullptr;
};

// The rule's own texts speak of both kinds of memory; of one incident only one of them matters.
static void TellKindOfMemory(bool gpu, Finding& finding, MemoryLimit limit = MemoryLimit::not_told) {
  if (gpu) {
    finding.explanation =
        "An allocation of GPU memory failed and the framework raised an error. Ranks that still run then wait for one "
        "that is gone.";
    finding.prevent = {"Log torch.cuda.max_memory_allocated() of every rank, and leave room for the longest sequence."};
    return;
  }
  finding.explanation =
      "The kernel or the container's memory limit killed the process (SIGKILL: it cannot write a message), or an "
      "allocation failed. Ranks that still run then wait for one that is gone.";
  finding.prevent = {"Watch memory.current against memory.max of the job's cgroup.",
                     "Keep num_workers and prefetch_factor of data loaders small."};
  if (finding.fix.empty() && limit == MemoryLimit::host)
    finding.fix = {
        "The whole host ran out of memory; no cgroup limit was hit. Look at what grew (data loader workers, "
        "cached datasets, pinned buffers, checkpoint copies, other jobs on the host) and reduce it, or use a host "
        "with more memory.",
        "Restart after the change; communication itself needs no fix."};
  if (finding.fix.empty())
    finding.fix = {
        "Look at what grew in host memory (data loader workers, cached datasets, pinned buffers, checkpoint copies); "
        "use less memory, or raise the limit (--mem, memory.max).",
        "Restart after the change; communication itself needs no fix."};
}

// The output of all ranks in one file, without names: somebody ran out of memory.
static bool JudgeOwnerlessKills(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.outcome.ended_in_order) return false;
  const MentionedMemory mentioned(facts.incident);
  for (const Event& event : facts.incident.events) {
    const bool gpu = event.kind == EventKind::cuda_error && event.As<CudaError>().words == "out of memory";
    const bool told = IsSchedulersKill(event);
    if (event.rank.known() || (!gpu && !told && !IsHostMemoryShortage(event))) continue;
    if (gpu && mentioned.Holds(event)) continue;
    Finding finding;
    finding.cause = "rank-out-of-memory";
    finding.status =
        facts.analyses.outcome.hangs() && !EndedBeforeTimeouts(facts, event) ? Status::hang : Status::crash;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::likely;
    const Activity during = gpu ? ActivityAround(facts, &event) : Activity::not_told;
    const GpuMemoryUse use = gpu ? ReadGpuMemoryUse(event.text) : GpuMemoryUse();
    // A worker of Ray's counts only the GPUs that it was given.
    const bool device = use.device >= 0 && event.pid < 0;
    const Event* raised = gpu ? ExceptionAround(facts.incident, event) : nullptr;
    const std::string place = raised ? RaisedPlaceWords(*raised) : "";
    const std::string holder = MemoryHolderWords(use, device);
    finding.headline = SubjectWords(SubjectOf(facts.incident, event)) + " ran out of " +
                       (device ? "memory on GPU " + std::to_string(use.device)
                        : gpu  ? "GPU memory"
                               : "host memory") +
                       (place.empty() ? "" : " in " + place) + DuringWords(during) +
                       (holder.empty() ? MemoryRequestWords(use) : holder) + "; the log does not say which rank it was";
    if (gpu)
      finding.fix = GpuMemorySteps({.during = during,
                                    .server = IsServer(facts.incident),
                                    .library = event.library,
                                    .maker = MakerOfGpus(facts.incident, event),
                                    .use = use});
    if (told)
      finding.headline = "a process of the job was killed for lack of memory; the log does not say which rank it was";
    TellKindOfMemory(gpu, finding);
    finding.evidence.push_back(
        CiteEvent(event, told ? "the report of the memory kill" : "the error of an unknown rank"));
    if (NamesVictim(event)) {
      finding.headline = VictimSentence(event);
      finding.fix = VictimSteps(event);
      answer.findings.push_back(std::move(finding));
      return true;
    }
    if (const Event* killed = told ? FindOnlyKilled(facts) : nullptr) {
      finding.ranks = {killed->rank};
      finding.headline = RankWords(finding.ranks) + " was killed for lack of memory";
      finding.evidence.push_back(CiteEvent(*killed, "the only process that was killed"));
    } else {
      answer.open.push_back(
          {"Which rank ran out of memory?", told ? "the kernel log of the hosts (dmesg -T), and the pids of the ranks"
                                                 : OutputOfRank(facts.incident, event)});
    }
    answer.findings.push_back(std::move(finding));
    return true;
  }
  return false;
}

// "process 4711 (python3) on gpu17"
static std::string NamedSubjectWords(const Incident& incident, const Event& kill) {
  std::string words = SubjectWords(SubjectOf(incident, kill));
  const std::string& name = kill.As<OomKill>().process;
  if (name.empty()) return words;
  const size_t place = words.find(" on ");
  return words.insert(place == std::string::npos ? words.size() : place, " (" + name + ")");
}

// No file of the job is here, only what the kernel says: the process it killed is the subject.
static bool JudgeKernelAlone(const Case& facts, RuleAnswer& answer) {
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::oom_kill) continue;
    if (event.Means(Meaning::of_service)) continue;
    const auto& kill = event.As<OomKill>();
    Finding finding;
    finding.cause = "rank-out-of-memory";
    finding.status = Status::crash;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::possible;
    const bool loader = event.Means(Meaning::loader_worker);
    finding.headline = "the kernel killed " + NamedSubjectWords(facts.incident, event) + " for lack of " +
                       (kill.limit == MemoryLimit::cgroup ? "memory in its cgroup" : "host memory") +
                       (loader ? ": a worker of a PyTorch data loader, which is a child of a rank"
                               : "; the log does not say whether it was a rank");
    finding.evidence.push_back(CiteEvent(event, "reported by the kernel"));
    TellKindOfMemory(false, finding, kill.limit);
    if (loader)
      answer.open.push_back({"Which rank did the worker belong to?", "the output of the job's ranks on that host"});
    else
      answer.open.push_back(
          {"Which rank was this process?", "the pids of the ranks: NCCL logs (host:pid:tid) or the launcher's output"});
    answer.findings.push_back(std::move(finding));
    return true;
  }
  return false;
}

// Killed by SIGKILL, which tells nothing by itself, soon after the job printed that the memory of the host was full.
static bool JudgeFullMemory(const Case& facts, RuleAnswer& answer) {
  const auto& events = facts.incident.events;
  const auto use = std::find_if(events.begin(), events.end(),
                                [](const Event& event) { return event.kind == EventKind::memory_use; });
  if (use == events.end()) return false;
  const std::string& share = use->As<HostMemoryUse>().share;
  for (const Event& event : events) {
    if (event.kind != EventKind::process_exited || event.As<ProcessEnd>().code != -9 ||
        event.source.file != use->source.file || event.source.line < use->source.line)
      continue;
    Finding finding;
    finding.cause = "rank-out-of-memory";
    finding.status = Status::crash;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::likely;
    if (event.rank.known()) finding.ranks = {event.rank};
    finding.headline = (event.rank.known() ? RankWords({event.rank}) : std::string("a process of the job")) +
                       " was killed by SIGKILL, probably by the kernel's OOM killer: " + share +
                       " of the host's memory was in use shortly before";
    finding.evidence.push_back(CiteEvent(event, "how the process ended"));
    finding.evidence.push_back(CiteEvent(*use, "the memory of the host"));
    finding.fix = {
        "Look at the kernel log of that host for the kill: dmesg -T | grep -i 'out of memory'.",
        "Use less host memory: offload fewer optimizer states or parameters (or to NVMe), load the model in shards or "
        "on rank 0 only, fewer data-loader workers; or ask for a host, or a limit (--mem), with more.",
        "Restart after the change; communication itself needs no fix."};
    answer.findings.push_back(std::move(finding));
    return true;
  }
  return false;
}

// The one host of these ranks; empty where it is not told, or where they are on several.
static std::string HostOfAll(const Incident& incident, const std::vector<Rank>& ranks) {
  std::set<std::string> hosts;
  for (const Rank rank : ranks) hosts.insert(SubjectOf(incident, rank).host);
  return hosts.size() == 1 ? *hosts.begin() : "";
}

// The GPU has room, and the program's own limit is reached on each of them.
static bool AllHitTheirLimit(const Case& facts, const std::vector<Rank>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
    const Event* told = facts.analyses.life.Of(rank)->cuda_oom;
    return told && ReadGpuMemoryUse(told->text).HitsOwnLimit();
  });
}

// Who holds the memory, where the message tells it, and what to do about it.
static void TellGpuMemory(const Case& facts, Activity during, Finding& finding) {
  const Event* memory = nullptr;
  for (const Rank rank : finding.ranks)
    if (const Event* told = facts.analyses.life.Of(rank)->cuda_oom; told && !memory) memory = told;
  if (!memory) return;
  // A traceback that is cut off may end in the same error.
  const bool alone = finding.ranks.size() == 1 && facts.analyses.life.Present() > 1 && RanksCutOff(facts).empty();
  GpuMemoryCase memory_case{.during = during,
                            .server = IsServer(facts.incident),
                            .library = memory->library,
                            .maker = MakerOfGpus(facts.incident, *memory),
                            .owners = finding.ranks.size() > 1 ? MemoryOwners::several
                                      : alone                  ? MemoryOwners::one
                                                               : MemoryOwners::not_told,
                            .who = RankWords(finding.ranks),
                            .use = ReadGpuMemoryUse(memory->text)};
  const Event* raised = ExceptionAround(facts.incident, *memory);
  const std::string place = raised ? RaisedPlaceWords(*raised) : "";
  if (finding.ranks.size() == 1) {
    const std::string holder = MemoryHolderWords(memory_case.use);
    finding.headline +=
        (place.empty() ? "" : " in " + place) + (holder.empty() ? MemoryRequestWords(memory_case.use) : holder);
  } else if (AllHitTheirLimit(facts, finding.ranks)) {
    finding.headline += OwnLimitWords(memory_case.use);
  }
  finding.fix = GpuMemorySteps(memory_case);
  if (!place.empty() && memory_case.use.IsFarBeyondTheGpu())
    finding.fix.insert(finding.fix.begin(), "Look at " + place + " first: how is the size of this tensor computed?");
  else if (!place.empty() && !memory_case.use.OthersFillIt() && !memory_case.use.HitsOwnLimit() &&
           !memory_case.use.of_driver)
    finding.fix.insert(finding.fix.begin(), "Look at " + place + " first: should this tensor really be that large?");
}

static RuleAnswer JudgeOutOfMemory(const Case& facts) {
  RuleAnswer answer;
  Finding finding;
  bool host = false, gpu = false, cgroup = false, own = false;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    const Event* event = life.oom_killed ? life.oom_killed : life.cuda_oom ? life.cuda_oom : life.host_memory;
    if (!event || (event == life.host_memory && facts.analyses.outcome.ended_in_order)) continue;
    finding.ranks.push_back(rank);
    host |= life.oom_killed != nullptr;
    cgroup |= life.oom_killed && life.oom_killed->As<OomKill>().limit == MemoryLimit::cgroup;
    gpu |= event == life.cuda_oom;
    own |= event == life.host_memory;
    const bool cited = std::any_of(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
      return item.source.file == event->source.file && item.source.line == event->source.line;
    });
    if (finding.evidence.size() < 3 && !cited)
      finding.evidence.push_back(CiteEvent(
          *event, life.oom_killed
                      ? "the kernel killed the process of " + RankWords({rank})
                      : RankWords({rank}) + " could not get " + (event == life.cuda_oom ? "GPU memory" : "memory")));
  }
  if (finding.ranks.empty() && (JudgeOwnerlessKills(facts, answer) || JudgeFullMemory(facts, answer))) return answer;
  if (finding.ranks.empty()) {
    if (facts.analyses.life.ranks.empty() && JudgeKernelAlone(facts, answer)) return answer;
    // A kill of some other process is no cause, but worth a look when a rank is missing.
    for (const Event& event : facts.incident.events) {
      if (event.kind != EventKind::oom_kill || event.rank.known()) continue;
      if (!facts.standstill.ranks.empty())
        answer.open.push_back({"Was the process that the kernel killed for memory (pid " + std::to_string(event.pid) +
                                   ", " + event.As<OomKill>().process + ") a rank of this job?",
                               "the pids of the ranks: NCCL logs (host:pid:tid) or the launcher's output"});
      break;
    }
    return answer;
  }
  const Activity during =
      gpu ? ActivityAround(facts, facts.analyses.life.Of(finding.ranks.front())->cuda_oom) : Activity::not_told;
  finding.cause = "rank-out-of-memory";
  const bool ended = std::any_of(finding.ranks.begin(), finding.ranks.end(), [&](Rank rank) {
    const Event* error = gpu ? facts.analyses.life.Of(rank)->cuda_oom : nullptr;
    return error && EndedBeforeTimeouts(facts, *error);
  });
  finding.status = facts.analyses.outcome.hangs() && !ended ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  finding.headline =
      host ? "the kernel killed " + RankWords(finding.ranks) + " for lack of " +
                 (cgroup ? "memory in " + std::string(finding.ranks.size() > 1 ? "their" : "its") + " cgroup"
                         : std::string("host memory"))
           : RankWords(finding.ranks) + (gpu ? " ran out of GPU memory" : " ran out of host memory") +
                 DuringWords(during);
  // The host on which the kernel log was taken, or which the rank names itself.
  if (const std::string place = HostOfAll(facts.incident, finding.ranks); host && !place.empty())
    finding.headline += " on " + place;
  if (own && !host && !gpu) {
    finding.confidence = Confidence::likely;
    finding.fix = {
        "Look at what grew on that host: data loader workers, cached datasets, pinned buffers, checkpoint copies.",
        "Raise the memory limit of the job, or use less."};
  }
  if (gpu && !host) TellGpuMemory(facts, during, finding);
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
    finding.headline += "; " + RankWords(facts.standstill.waiters) + " wait in " +
                        OperationWords(facts.incident, *facts.standstill.operation);
    finding.evidence.push_back(CiteCall(facts.incident, *facts.standstill.stream, *facts.standstill.operation,
                                        "a peer waits in this operation"));
    finding.affected_ranks = facts.standstill.waiters;
  }
  MemoryLimit limit = MemoryLimit::not_told;
  for (const Rank rank : finding.ranks)
    if (const Event* killed = facts.analyses.life.Of(rank)->oom_killed) limit = killed->As<OomKill>().limit;
  TellKindOfMemory(gpu && !host, finding, limit);
  if (during == Activity::shutdown) TellShutdown(finding);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kRankOutOfMemoryRule;
const Rule kRankOutOfMemoryRule = {
    "rank-out-of-memory",
    "A rank ran out of memory",
    "the kernel log, with the pid of a rank, the rank's own CUDA out-of-memory error, or its "
    "message that a data loader worker was killed",
    "Host memory: the kernel or the container's memory limit killed the process (SIGKILL: it cannot write a message). "
    "GPU memory: an allocation failed and the framework raised an error. "
    "In both cases ranks that still run wait for one that is gone.",
    "Host memory: a kill counts only if the pid belongs to a rank of this job, because kernel logs also record kills "
    "in "
    "other jobs. Without the kernel log it looks like any other dead process. GPU memory: an allocation that the "
    "program retries with success does not count.",
    {"Host memory: look at what grew (data loader workers, cached datasets, pinned buffers, checkpoint copies) and "
     "use less memory, or raise the limit (--mem, memory.max). In a container, the kernel log names the cgroup and its "
     "limit; the host itself may still have free memory.",
     "GPU memory: lower the batch size or the sequence length, or recompute activations (torch.utils.checkpoint). If "
     "only one rank runs out of memory, its pipeline stage or its batch is larger than those of the others.",
     "Restart after the change; communication itself needs no fix."},
    {"Host memory: watch memory.current against memory.max of the job's cgroup, and keep num_workers and "
     "prefetch_factor of data loaders small.",
     "GPU memory: log torch.cuda.max_memory_allocated() of every rank, and leave room for the longest sequence."},
    JudgeOutOfMemory};

}  // namespace tacet
