// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/assembly/nccl_warning_ranks.h"
#include "model/events/nccl_warnings.h"
#include "rules/findings/init_finding.h"
#include "rules/findings/late_joiner.h"
#include "rules/findings/odd_holders.h"
#include "rules/findings/store_wait_finding.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// A communicator of the whole job numbers its members as the job does.
bool SpansTheJob(const Case& facts, const Event& warning) {
  const int64_t world = facts.incident.world_size;
  return std::none_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    const int64_t ranks = event.As<CommunicatorSetup>().ranks;
    return event.kind == EventKind::init_started && event.rank == warning.rank && ranks >= 0 && ranks != world;
  });
}

// The ranks that began the set-up of one communicator with another number of ranks than most, and the two numbers.
struct OddWorld {
  std::vector<Rank> ranks;
  std::string odd, usual;
};

OddWorld FindOddWorld(const Case& facts) {
  std::map<uint64_t, Holders> comms;
  for (const Event& event : facts.incident.events) {
    const int64_t ranks = event.As<CommunicatorSetup>().ranks;
    if (event.kind == EventKind::init_started && ranks > 0) comms[event.comm][std::to_string(ranks)].push_back(&event);
  }
  for (const auto& [comm, sizes] : comms) {
    if (sizes.size() < 2) continue;
    OddWorld found{OddHolders(sizes), "", ""};
    if (sizes.size() > 2 || found.ranks.empty()) return found;
    const auto holds = [&](const std::vector<const Event*>& events) {
      return std::any_of(events.begin(), events.end(), [&](const Event* event) {
        return std::find(found.ranks.begin(), found.ranks.end(), event->rank) != found.ranks.end();
      });
    };
    for (const auto& [size, events] : sizes) (holds(events) ? found.odd : found.usual) = size;
    return found;
  }
  return {};
}

Holders VersionsByRank(const Case& facts) {
  Holders versions;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::nccl_version || !event.rank.known()) continue;
    const std::string& version = event.As<Version>().number;
    versions[version.substr(0, version.find('+'))].push_back(&event);
  }
  return versions;
}

bool TellsDuplicateGpu(const Event& event) {
  return (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "duplicate-gpu") ||
         (event.kind == EventKind::nccl_error && event.Means(Meaning::duplicate_gpu));
}

// NCCL names two ranks per line: who shares a rank shares the GPU. The largest such set shows the mistake best.
std::vector<std::vector<Rank>> RanksOnOneGpu(const Case& facts) {
  std::vector<std::set<Rank>> sets;
  for (const Event& event : facts.incident.events) {
    if (!TellsDuplicateGpu(event)) continue;
    std::set<Rank> pair(event.ranks.begin(), event.ranks.end());
    if (pair.empty() && event.group_rank.known() && event.peer_group_rank.known() && SpansTheJob(facts, event))
      pair = {Rank{event.group_rank.value}, Rank{event.peer_group_rank.value}};
    if (pair.empty()) continue;
    std::erase_if(sets, [&](const std::set<Rank>& other) {
      const bool shares = std::any_of(other.begin(), other.end(), [&](Rank rank) { return pair.contains(rank); });
      if (shares) pair.insert(other.begin(), other.end());
      return shares;
    });
    sets.push_back(std::move(pair));
    if (sets.size() > 64) break;  // more GPUs than a host has: enough is told
  }
  std::vector<std::vector<Rank>> out;
  for (const std::set<Rank>& one : sets) out.emplace_back(one.begin(), one.end());
  std::sort(out.begin(), out.end());
  return out;
}

// "ranks 0, 1, 2 and 4 use the same GPU"; "ranks share GPUs: ranks 0 and 1, ranks 2 and 3".
std::string SharedGpuWords(const std::vector<std::vector<Rank>>& sets) {
  if (sets.size() > 1) {
    constexpr size_t kMost = 4;
    std::string words = "ranks share GPUs: ";
    for (size_t i = 0; i < std::min(sets.size(), kMost); ++i) words += (i > 0 ? ", " : "") + RankWords(sets[i]);
    return words + (sets.size() > kMost ? ", ..." : "");
  }
  return (sets.empty() ? "two ranks" : RankWords(sets[0])) + " use the same GPU";
}

// Last error: Duplicate GPU detected : rank 1 and rank 2 both on CUDA device 60
// in a rank's output, where NCCL's own log is missing. The numbers are those of a communicator that is not told.
const Event* FindDuplicateGpuError(const Case& facts) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_error && event.Means(Meaning::duplicate_gpu)) return &event;
  return nullptr;
}

std::vector<std::string> MismatchAdvice(std::string_view id) {
  if (id == "duplicate-gpu")
    return {"Call torch.cuda.set_device(local_rank) before the first collective.",
            "Check CUDA_VISIBLE_DEVICES and the number of processes per node."};
  if (id == "version-mismatch") return {"Use the same container or environment on all nodes."};
  if (id == "bootstrap-nranks-mismatch") return {"Check WORLD_SIZE, --nnodes and --nproc-per-node on every node."};
  return {"Check how RANK is set: the same --node-rank on two nodes, or RANK fixed in a script or an image.",
          "Look for processes of an earlier run that still use the same MASTER_PORT (pgrep -af train)."};
}

// "Bootstrap : mismatch in rank count from procs 16 : 8": " (16 and 8)".
std::string CountsInWords(const Event& event) {
  const NcclWarning* warning = FindNcclWarning(event.As<Warning>().id);
  const NcclWarningNumbers counts = warning ? ParseWarningNumbers(*warning, event.text) : NcclWarningNumbers();
  if (counts.value < 0 || counts.other < 0 || counts.value == counts.other) return "";
  return " (" + std::to_string(counts.value) + " and " + std::to_string(counts.other) + ")";
}

// The line names two ranks and their versions: "rank 0 runs NCCL 2.20.5 and rank 8 runs 2.18.3"; empty where it does
// not.
std::string VersionsInWords(const Case& facts, const Event& event) {
  const NcclWarning* warning = FindNcclWarning(event.As<Warning>().id);
  const NcclWarningNumbers versions = warning ? ParseWarningNumbers(*warning, event.text) : NcclWarningNumbers();
  const std::string first = NcclVersionWords(versions.value), second = NcclVersionWords(versions.other);
  if (first.empty() || second.empty() || !event.group_rank.known() || !event.peer_group_rank.known()) return "";
  return "rank " + std::to_string(event.group_rank.value) + " runs NCCL " + first + " and rank " +
         std::to_string(event.peer_group_rank.value) + " runs " + second +
         (SpansTheJob(facts, event) ? "" : " (ranks of one communicator)");
}

void JudgeWarnings(const Case& facts, RuleAnswer& answer) {
  static constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"duplicate-gpu", "two ranks use the same GPU"},
      {"version-mismatch", "ranks run different NCCL versions"},
      {"bootstrap-nranks-mismatch", "processes disagree about the number of ranks"},
      {"bootstrap-duplicate-rank", "two processes claim the same rank"},
  };
  for (const auto& [id, words] : kKinds) {
    const Event* event = FindWarning(facts, id);
    if (!event && id == "duplicate-gpu") event = FindDuplicateGpuError(facts);
    if (!event) continue;
    Finding finding = InitFinding("init-mismatch", event->ranks);
    std::vector<std::vector<Rank>> shared;
    if (id == "duplicate-gpu") {
      shared = RanksOnOneGpu(facts);
      finding.ranks.clear();
      for (const auto& set : shared) finding.ranks.insert(finding.ranks.end(), set.begin(), set.end());
      std::sort(finding.ranks.begin(), finding.ranks.end());
    }
    // Whoever collects the answers reports the disagreement; that makes it no party to it.
    const OddWorld world = id == "bootstrap-nranks-mismatch" ? FindOddWorld(facts) : OddWorld{};
    if (finding.ranks.empty()) finding.ranks = world.ranks;
    const bool sizes_known = !world.odd.empty() && !world.usual.empty() && finding.ranks == world.ranks;
    if (finding.ranks.empty() && id == "version-mismatch") finding.ranks = OddHolders(VersionsByRank(facts));
    finding.confidence = Confidence::certain;
    const bool same_rank = id == "bootstrap-duplicate-rank";
    const int64_t number = event->kind == EventKind::nccl_warning ? event->As<Warning>().number : -1;
    const std::string versions = id == "version-mismatch" ? VersionsInWords(facts, *event) : std::string();
    if (finding.ranks.empty()) {
      finding.status = Status::undetermined;
      if (same_rank)
        answer.open.push_back(
            {"Which two processes claim it?", "RANK, host and pid of every process, from its output"});
      else if (!versions.empty())
        answer.open.push_back(
            {"Which of the two versions do the other ranks run?", "the NCCL logs (INFO) of all ranks"});
      else
        answer.open.push_back({"Which rank disagrees?", "the NCCL logs (INFO) of all ranks"});
    }
    finding.headline =
        (id == "duplicate-gpu" ? SharedGpuWords(shared)
         : !versions.empty()   ? versions
         : sizes_known         ? RankWords(finding.ranks) + (finding.ranks.size() == 1 ? " was" : " were") +
                             " started for a job of " + world.odd + " ranks, the others for one of " + world.usual
         : same_rank && number >= 0
             ? "two processes claim rank " + std::to_string(number)
             : std::string(words) + (id == "bootstrap-nranks-mismatch" ? CountsInWords(*event) : "") +
                   (finding.ranks.empty() ? "" : ": " + RankWords(finding.ranks))) +
        ", so setup failed";
    finding.fix = MismatchAdvice(id);
    finding.evidence.push_back(CiteEvent(*event, "NCCL refuses the setup"));
    answer.findings.push_back(std::move(finding));
    return;
  }
}

// Waiting in store based barrier ... (world_size=4, worker_count=16, timeout=0:01:00)
// More processes joined than the job has: those of an earlier or another run share the store, or ranks are numbered
// beyond the world size.
void JudgeCrowd(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.outcome.ended_in_order) return;
  for (const Event& event : facts.incident.events) {
    const int64_t joined = event.As<Rendezvous>().joined, expected = event.As<Rendezvous>().expected;
    if (event.kind != EventKind::rendezvous_incomplete || expected <= 0 || joined <= expected) continue;
    Finding finding = InitFinding("init-mismatch", {});
    finding.status = facts.analyses.outcome.first_timeout ? Status::hang : Status::crash;
    finding.confidence = Confidence::likely;
    finding.headline = std::to_string(joined) + " processes joined a process group of " + std::to_string(expected) +
                       ": another run uses the same store, or ranks are numbered wrongly";
    finding.evidence.push_back(CiteEvent(event, "the store counted " + std::to_string(joined) +
                                                    " processes for a group of " + std::to_string(expected)));
    finding.fix = {"Look for processes of an earlier run on these hosts and end them (pgrep -af train).",
                   "Give each job its own MASTER_PORT or rendezvous id.",
                   "Check RANK and WORLD_SIZE of every process: ranks go from 0 to WORLD_SIZE - 1."};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

// The command's own list of GPUs, where it has as many as ranks go without the error; nullptr: another reason, or no
// list.
const Event* FindVisibleList(const Incident& incident, int32_t lowest) {
  for (const Event& event : incident.events) {
    const auto& setting = event.As<EnvironmentSetting>();
    if (event.kind == EventKind::environment && setting.name == "CUDA_VISIBLE_DEVICES" &&
        std::count(setting.value.begin(), setting.value.end(), ',') + 1 == lowest)
      return &event;
  }
  return nullptr;
}

// CUDA error: invalid device ordinal, of the higher ranks only.
void JudgeMissingGpus(const Case& facts, RuleAnswer& answer) {
  const std::vector<const Event*> raised = FindMissingGpus(facts);
  if (raised.empty() || facts.analyses.outcome.ended_in_order) return;
  std::vector<Rank> ranks;
  ranks.reserve(raised.size());
  for (const Event* event : raised) ranks.push_back(event->rank);
  std::sort(ranks.begin(), ranks.end());
  const bool one = ranks.size() == 1;
  const std::string lowest = std::to_string(ranks.front().value);
  Finding finding = InitFinding("init-mismatch", ranks);
  if (std::any_of(raised.begin(), raised.end(), [](const Event* e) { return e->Means(Meaning::owner_inferred); }))
    finding.confidence = Confidence::likely;
  finding.headline = RankWords(ranks) +
                     (one ? " asks for a GPU that does not exist or that it cannot see"
                          : " ask for GPUs that do not exist or that they cannot see") +
                     " (invalid device ordinal): there are more processes than visible GPUs" +
                     (one ? ", or its local rank is wrong" : "");
  for (const Event* event : raised) {
    if (finding.evidence.size() == 3) break;
    finding.evidence.push_back(CiteEvent(*event, "the error of " + RankWords({event->rank})));
  }
  finding.fix = {
      "Start no more processes per node than there are visible GPUs (--nproc-per-node; nvidia-smi -L, "
      "CUDA_VISIBLE_DEVICES). The lowest rank that fails is " +
          lowest + ": if all ranks are on one node, " + (lowest == "1" ? "1 GPU is" : lowest + " GPUs are") +
          " visible there.",
      "On several nodes use torch.cuda.set_device(local_rank), not the global rank."};
  if (const Event* list = FindVisibleList(facts.incident, ranks.front().value)) {
    finding.headline =
        RankWords(ranks) + (one ? " asks for a GPU that it" : " ask for GPUs that they") +
        " cannot see (invalid device ordinal): CUDA_VISIBLE_DEVICES=" + list->As<EnvironmentSetting>().value +
        " shows " + (lowest == "1" ? "1 GPU" : lowest + " GPUs") + ", and more processes were started";
    finding.evidence.insert(finding.evidence.begin(), CiteEvent(*list, "the command that started the job"));
    finding.fix = {"Start " + lowest + (lowest == "1" ? " process" : " processes") + " per node (--nproc-per-node " +
                       lowest + "), or name more GPUs in CUDA_VISIBLE_DEVICES (nvidia-smi -L lists those of the host).",
                   "Use torch.cuda.set_device(local_rank), not the global rank."};
  }
  answer.findings.push_back(std::move(finding));
}

}  // namespace

// The line at which what follows the joining begins: an error that ends it, or the end of the text.
static uint32_t EndOfJoining(const Incident& incident, const LogOutline& outline) {
  const SourceRef& last = outline.joining.back().source;
  uint32_t end = outline.last_source.line;
  for (const Event& event : incident.events)
    if (event.source.file == last.file && event.source.line > last.line && event.kind != EventKind::progress)
      end = std::min(end, event.source.line);
  return end;
}

// Each rank that joins is there as often as the others, more than once, and the higher ones are not: two nodes number
// their processes alike. One line may be missing where the text begins. Where anything else was printed after it,
// another run may have begun in the same output.
static bool IsNumberedAlike(const Case& facts, const LogOutline& outline, std::map<int32_t, int>& times, int& often) {
  constexpr uint32_t kLinesOfTheEnd = 3;
  constexpr size_t kFewestForACut = 4;
  if (outline.joining.empty() || outline.world <= 0) return false;
  for (const LineOfRank& one : outline.joining) ++times[one.rank];
  often = 0;
  for (const auto& one : times) often = std::max(often, one.second);
  if (often < 2 || static_cast<int64_t>(times.size()) * often > outline.world) return false;
  const auto rarer = std::count_if(times.begin(), times.end(), [&](const auto& one) { return one.second < often; });
  if (rarer > 1 || (rarer == 1 && times.size() < kFewestForACut)) return false;
  const SourceRef &first = outline.joining.front().source, &last = outline.joining.back().source;
  if (EndOfJoining(facts.incident, outline) > last.line + kLinesOfTheEnd) return false;
  return std::none_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    return event.source.file == first.file && event.source.line > first.line && event.source.line < last.line;
  });
}

static void JudgeNumbering(const Case& facts, RuleAnswer& answer) {
  for (const LogOutline& outline : facts.incident.outlines) {
    std::map<int32_t, int> times;
    int often = 0;
    if (!IsNumberedAlike(facts, outline, times, often)) continue;
    std::vector<Rank> ranks;
    for (const auto& one : times) ranks.push_back(Rank{one.first});
    Finding finding;
    finding.cause = "init-mismatch";
    finding.status = facts.analyses.end.kind == JobEnding::crashed ? Status::crash : Status::hang;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::likely;
    finding.headline = RankWords(ranks) + " of " + std::to_string(outline.world) + " joined " +
                       (often == 2 ? "twice" : std::to_string(often) + " times") +
                       ", and no line is from the others: " + std::to_string(often) +
                       " nodes gave their processes the same numbers, so setup " +
                       (finding.status == Status::crash ? "fails" : "never completes");
    const LineOfRank& first = *std::find_if(outline.joining.begin(), outline.joining.end(),
                                            [&](const LineOfRank& one) { return times.at(one.rank) == often; });
    finding.evidence.push_back({first.source, first.text, "a rank that joins more than once"});
    finding.fix = {
        "Let the launcher of the cluster start every process: with Slurm as many tasks per node as GPUs "
        "(--ntasks-per-node), and srun before the program; then the framework starts none by itself.",
        "Otherwise set NODE_RANK, MASTER_ADDR and MASTER_PORT on every node: NODE_RANK must differ between nodes."};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

static RuleAnswer JudgeInitMismatch(const Case& facts) {
  RuleAnswer answer;
  JudgeWarnings(facts, answer);
  if (answer.findings.empty()) JudgeCrowd(facts, answer);
  if (answer.findings.empty()) JudgeMissingGpus(facts, answer);
  if (answer.findings.empty()) JudgeNumbering(facts, answer);
  if (auto alone = FindLoneGroup(facts); alone && answer.findings.empty()) answer.findings.push_back(std::move(*alone));
  if (auto lone = LoneCreatorFinding(facts); lone && answer.findings.empty())
    answer.findings.push_back(std::move(*lone));
  return answer;
}

extern const Rule kInitMismatchRule;
const Rule kInitMismatchRule = {
    "init-mismatch",
    "The ranks' setup is inconsistent",
    "NCCL logs, or the program's output",
    "Ranks joined with different views of the job: a different world size, different NCCL builds, one rank number "
    "twice, two ranks on one GPU, or more ranks than GPUs.",
    "A missing rank and a missing interface leave the others waiting without such a message.",
    {"Same GPU twice: call torch.cuda.set_device(local_rank) before the first collective; check CUDA_VISIBLE_DEVICES "
     "and processes per node.",
     "Versions: use the same container or environment on all nodes.",
     "World size: check WORLD_SIZE, --nnodes and --nproc-per-node on every node."},
    {"Print rank, world size, device and NCCL version once at start on every rank."},
    JudgeInitMismatch};

}  // namespace tacet
