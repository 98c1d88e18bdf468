// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rules/findings/busy_creator.h"
#include "rules/findings/few_joined.h"
#include "rules/findings/init_finding.h"
#include "rules/findings/late_joiner.h"
#include "rules/findings/setup_stack.h"
#include "rules/words/launch_words.h"
#include "rules/words/library_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Ranks that did not take part in the set-up, judged against those that did.
std::vector<Rank> RanksNotIn(const Case& facts, const std::set<Rank>& came) {
  std::vector<Rank> missing;
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (!came.contains(rank)) missing.push_back(rank);
  return missing;
}

// NCCL writes its first lines when a rank comes to the set-up: a log without "Init START" was cut before it, or the
// rank stands still inside. Its stack may tell.
bool BeganToJoin(const Case& facts, Rank rank) {
  if (!facts.analyses.life.Of(rank)->has_nccl_log) return false;
  const StackReading* stack = facts.analyses.StackOf(rank);
  return !stack || stack->place != StackReading::Place::host;
}

// Whom those that waited name, without those that failed: they came so far, and their own error tells more.
std::vector<Rank> NamedAsMissing(const Case& facts, const InitView& init) {
  std::set<Rank> named;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::rendezvous_incomplete) named.insert(event.ranks.begin(), event.ranks.end());
  std::erase_if(named, [&](Rank rank) {
    const RankLife* life = facts.analyses.life.Of(rank);
    const bool beyond = facts.incident.world_size > 0 && rank.value >= facts.incident.world_size;
    return beyond || init.failed.contains(rank) || (life && FailedItself(*life));
  });
  return {named.begin(), named.end()};
}

// torchrun's agent runs the store, so that rank 0 waits for nobody before its first collective: where others wait for
// the communicator that it creates there, it has not come so far. Started otherwise it may itself wait in the store.
const Event* WaitsForCreator(const Case& facts) {
  const auto& events = facts.incident.events;
  const bool agent = std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::process_exited && event.As<ProcessEnd>().first_failure;
  });
  if (!agent) return nullptr;
  const Event* found = nullptr;
  for (const Event& event : events) {
    if (event.kind != EventKind::store_wait_timeout || event.As<StoreWait>().pair || !event.peer.known()) continue;
    const RankLife* creator = facts.analyses.life.Of(event.peer);
    if (creator && FailedItself(*creator)) return nullptr;  // it failed, or waits in another group itself
    if (!found) found = &event;
  }
  return found;
}

// By PyTorch's convention rank 0 runs the store.
constexpr Rank kStoreRank{0};

// Everybody else knocks in vain, and rank 0, which has files of its own, reports no error: it never got there.
bool StoreNeverCame(const Case& facts, const InitView& init) {
  const auto& ranks = facts.analyses.life.ranks;
  const RankLife* store = facts.analyses.life.Of(kStoreRank);
  if (!store || !store->any() || ranks.size() < 2 || init.unreachable.size() + 1 != ranks.size()) return false;
  return !init.unreachable.contains(kStoreRank) && !init.failed.contains(kStoreRank) && !store->exception &&
         !store->consequence;
}

// Ranks of one communicator disagree about its size: who left no log is no evidence then, see init-mismatch.
bool SizesDiffer(const Case& facts) {
  std::map<uint64_t, int64_t> sizes;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    const int64_t ranks = event.As<CommunicatorSetup>().ranks;
    if (event.kind != EventKind::init_started || ranks <= 0) return false;
    return sizes.try_emplace(event.comm, ranks).first->second != ranks;
  });
}

}  // namespace

static RuleAnswer JudgeRankMissing(const Case& facts) {
  RuleAnswer answer;
  const InitView init = ReadInit(facts);
  if (init.issued_any) return answer;
  // Somebody else's set-up error explains the wait better.
  for (const std::string_view id : {"socket-no-interface", "duplicate-gpu", "version-mismatch",
                                    "bootstrap-nranks-mismatch", "bootstrap-duplicate-rank", "connect-failed"})
    if (FindWarning(facts, id)) return answer;

  std::vector<Rank> missing;
  bool late = false;
  size_t absent = 0;  // ranks of which no line of the setup is here
  const Event* told = init.incomplete;
  // More came than were expected: the count is of another run, or ranks disagree; see init-mismatch.
  const Rendezvous rendezvous = told ? told->As<Rendezvous>() : Rendezvous{};
  if (rendezvous.expected > 0 && rendezvous.joined > rendezvous.expected) return answer;
  // mpirun's own summary, below the error that ssh gave.
  const bool by_launcher = rendezvous.launch != LaunchProblem::none;
  if (by_launcher && init.no_store) return answer;
  const Event* creator = told ? nullptr : WaitsForCreator(facts);
  if (StoreNeverCame(facts, init)) {
    missing = {kStoreRank};
  } else if (creator) {
    missing = {creator->peer};
  } else if (told && !told->ranks.empty()) {
    missing = NamedAsMissing(facts, init);
    if (missing.empty()) return answer;
  } else if (told) {
    // "3/4 clients joined": whoever complains had come. Those with no complaint are the missing, if the numbers agree.
    std::set<Rank> came = init.failed;
    for (const Rank rank : init.unreachable) came.erase(rank);
    missing = RanksNotIn(facts, came);
    // They came, to another door: init-unreachable speaks of them.
    if (auto late_ones = LateJoiners(facts, *told, missing); !late_ones.empty())
      missing = std::move(late_ones), late = true;
    else if (std::any_of(missing.begin(), missing.end(), [&](Rank rank) { return init.unreachable.contains(rank); }))
      return answer;
    const int64_t expected = rendezvous.expected - rendezvous.joined;
    if (expected > 0 && static_cast<int64_t>(missing.size()) != expected) {
      // Files of ranks that came may be lost too; those of which nothing exists cannot be told apart.
      std::erase_if(missing, [&](Rank rank) { return !LeftFiles(facts, rank); });
      if (static_cast<int64_t>(missing.size()) != expected) missing.clear();
    }
  } else if (!init.started.empty() && init.completed.empty() &&
             init.started.size() < facts.analyses.life.ranks.size()) {
    if (SizesDiffer(facts)) return answer;
    missing = RanksNotIn(facts, init.started);
    if (std::any_of(missing.begin(), missing.end(), [&](Rank rank) { return BeganToJoin(facts, rank); })) return answer;
    std::erase_if(missing, [&](Rank rank) { return init.failed.contains(rank); });
    absent = missing.size();
    if (missing.size() * 2 > facts.analyses.life.ranks.size()) missing.clear();
  } else {
    return answer;
  }
  if (missing.empty() && !told) return answer;
  // Of a rank without any file nobody can say whether it never came or came and failed, unless the rendezvous counted.
  const bool all_absent =
      std::all_of(missing.begin(), missing.end(), [&](Rank rank) { return !LeftFiles(facts, rank); });
  const bool unsure = missing.empty() || (all_absent && !told && !creator);
  if (unsure && missing.size() * 4 > facts.analyses.life.ranks.size()) missing.clear();
  const bool one = rendezvous.expected - rendezvous.joined <= 1 || rendezvous.joined < 0;
  const CannotTell who{one && absent <= 1 ? "Which rank did not join?" : "Which ranks did not join?",
                       "the output of every rank, or the launcher's list of processes and hosts"};
  // Where those that came failed, somebody else came and failed before them as likely.
  if (missing.empty() && !told && !init.failed.empty()) {
    answer.open.push_back(who);
    return answer;
  }
  Finding finding = InitFinding("init-rank-missing", missing);
  finding.status = unsure ? Status::undetermined : facts.analyses.outcome.first_timeout ? Status::hang : Status::crash;
  finding.confidence = told && !missing.empty() ? Confidence::certain
                       : missing.empty()        ? Confidence::possible
                                                : Confidence::likely;
  // Whose key it is was read from its name.
  if (!rendezvous.key.empty()) finding.confidence = Confidence::likely;
  // Still waiting: nobody has given up, and whoever is missing may yet come.
  const bool waiting = rendezvous.waiting;
  if (waiting) {
    finding.status = Status::hang;
    finding.confidence = missing.empty() ? Confidence::possible : Confidence::likely;
  }
  // Who waited is known of those that left a word.
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (std::find(missing.begin(), missing.end(), rank) == missing.end() &&
        ((!missing.empty() && rendezvous.key.empty()) || life.any() || init.failed.contains(rank)))
      finding.affected_ranks.push_back(rank);
  const Library library = told ? told->library : Library::not_told;
  const std::string setup(SetupName(library));
  finding.fix = MissingRankSteps(library);
  // Who they are is not told; how many may be.
  const int64_t lacking = missing.empty() ? std::max<int64_t>(rendezvous.expected - rendezvous.joined, 1)
                                          : static_cast<int64_t>(missing.size());
  const bool counted = rendezvous.joined >= 0 && rendezvous.expected > 0;
  const bool several = missing.empty() ? counted && lacking > 1 : lacking > 1;
  finding.headline = (!missing.empty()          ? RankWords(missing)
                      : several                 ? std::to_string(lacking) + " ranks"
                      : library == Library::jax ? std::string("a process")
                                                : std::string("a rank")) +
                     (!waiting  ? " never joined " + setup
                      : several ? " have not joined " + setup + " yet"
                                : " has not joined " + setup + " yet");
  if (!finding.affected_ranks.empty())
    finding.headline += "; " + RankWords(finding.affected_ranks) +
                        (!waiting                            ? " waited for "
                         : finding.affected_ranks.size() > 1 ? " wait for "
                                                             : " waits for ") +
                        (several ? "them" : "it");
  // Their logs may only be missing here.
  if (missing.empty() && !told && absent > 1) {
    finding.headline = std::to_string(absent) + " of " + std::to_string(facts.analyses.life.ranks.size()) +
                       " ranks do not appear in " + setup;
    if (!finding.affected_ranks.empty())
      finding.headline += "; " + RankWords(finding.affected_ranks) +
                          (finding.affected_ranks.size() > 1 ? " wait for them" : " waits for them");
    finding.fix = StepsForSeveral(OutputsOf(facts.incident, missing));
  }
  if (several && finding.fix.empty()) finding.fix = StepsForSeveral(OutputsOf(facts.incident, missing));
  if (!rendezvous.key.empty())
    finding.headline =
        RankWords(missing) + " did not write the key '" + rendezvous.key + "' to the store" +
        (finding.affected_ranks.empty() ? "" : "; " + RankWords(finding.affected_ranks) + " waited for it");
  if (creator) TellMissingCreator(facts, *creator, finding);
  if (late) finding.headline += "; " + RankWords(missing) + " tried to join only after that";
  if (!rendezvous.target.empty() && missing.empty())
    finding.headline = rendezvous.target + " did not answer in time during " + setup;
  if (rendezvous.joined >= 0 && rendezvous.expected > 0)
    finding.headline +=
        " (" + std::to_string(rendezvous.joined) + " of " + std::to_string(rendezvous.expected) + " joined)";
  if (by_launcher && missing.empty()) TellLauncher(rendezvous, finding);
  // The launcher names the node that refused to start its task.
  if (by_launcher && missing.empty() && !rendezvous.host.empty()) finding.cause = "node-unavailable";
  const bool of_nodes = rendezvous.of_nodes && missing.empty();
  if (of_nodes) TellNodes(finding);
  const bool of_slice = told && waiting && told->text.find("TPU backend initialization") != std::string::npos;
  if (of_slice) TellSlice(finding);
  if (told)
    finding.evidence.push_back(CiteEvent(*told, by_launcher              ? "the launcher could not start the ranks"
                                                : of_slice               ? "the backend still waits"
                                                : rendezvous.joined >= 0 ? "the rendezvous counts the ranks that joined"
                                                : rendezvous.waiting     ? "a wait timed out and is retried"
                                                : !rendezvous.key.empty()    ? "the wait for this key timed out"
                                                : !rendezvous.target.empty() ? "the wait for this task timed out"
                                                                             : "the rendezvous gave up waiting"));
  if (!told && init.no_store)
    finding.evidence.push_back(CiteEvent(*init.no_store, "the store, which rank 0 runs, does not answer"));
  for (const Rank rank : missing) {
    if (const StackReading* stack = facts.analyses.StackOf(rank))
      finding.evidence.push_back(
          CiteStack(facts.incident, *stack->thread, RankWords({rank}) + " is here, outside the setup"));
    const RankLife* life = facts.analyses.life.Of(rank);
    const std::string says = "the last thing " + RankWords({rank}) + " wrote";
    if (life && life->last_event) finding.evidence.push_back(CiteEvent(*life->last_event, says));
  }
  if (const StackReading* stack = missing.size() == 1 ? facts.analyses.StackOf(missing.front()) : nullptr;
      stack && !stack->where.empty() && finding.fix.empty())
    finding.fix = {"Look at " + stack->where + " on " + RankWords(missing) +
                       ": why has it not reached init_process_group (imports, data preparation, a download, a lock)?",
                   "If it is only slow to join: raise init_process_group(timeout=...), and move slow preparation after "
                   "it."};
  if (finding.fix.empty()) finding.fix = StepsForOne(OutputsOf(facts.incident, missing));
  if (of_nodes)
    answer.open.push_back({"Which node never joined?", "the output of torchrun on every node"});
  else if (missing.empty() && rendezvous.target.empty() && !by_launcher)
    answer.open.push_back(who);
  answer.findings.push_back(std::move(finding));
  return answer;
}

// Nearly all of the processes say that they join, and nothing else is here: another file may hold the lines of those
// that lack, and an error tells more than this.
static bool LackOnlyFew(const Case& facts, const LogOutline& outline, const FewJoined& few) {
  const size_t lacking = few.missing.size(), came = few.came.size();
  return came >= 3 && lacking * 4 <= came + lacking && facts.incident.files.size() == 1 &&
         facts.incident.outlines.size() == 1 && facts.incident.events.empty() &&
         outline.ranks.size() == outline.joining.size();
}

static void TellFewJoined(FewJoined few, const Event* told, RuleAnswer& answer) {
  const bool one = few.missing.size() == 1;
  Finding finding;
  finding.cause = "init-rank-missing";
  finding.status = told ? Status::hang : Status::undetermined;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  if (!told) finding.ranks = few.missing;
  finding.headline = few.words + (few.came.size() == 1 ? " prints that it joins" : " print that they join") +
                     " the setup; " + RankWords(few.missing) +
                     (one ? " did not start, or prints" : " did not start, or print") + " elsewhere";
  finding.affected_ranks = std::move(few.came);
  finding.evidence.push_back({few.source, few.text, "the last rank that says that it joins"});
  finding.evidence.push_back(
      told ? CiteEvent(*told, "the text around the log says that the job hangs")
           : CiteAbsence("no line is of " + RankWords(few.missing) + ", and no rank prints anything after that"));
  finding.fix = {std::string(kLaunchAllStep),
                 "If they run: read the output of " + std::string(one ? "that rank" : "those ranks") +
                     ", and see from every node that MASTER_ADDR and MASTER_PORT of rank 0 can be reached (nc -zv)."};
  answer.findings.push_back(std::move(finding));
}

// The text ends where a few of its processes say that they join, and says that the job hangs, or only few are missing.
static void JudgeFewJoined(const Case& facts, RuleAnswer& answer) {
  const auto& events = facts.incident.events;
  const auto told =
      std::find_if(events.begin(), events.end(), [](const Event& event) { return event.kind == EventKind::told_hang; });
  const bool hangs = told != events.end();
  for (const LogOutline& outline : facts.incident.outlines) {
    auto few = FindFewJoined(outline);
    if (!few || (!hangs && !LackOnlyFew(facts, outline, *few))) continue;
    TellFewJoined(std::move(*few), hangs ? &*told : nullptr, answer);
    return;
  }
  const bool ended = facts.analyses.end.kind == JobEnding::crashed || facts.analyses.end.kind == JobEnding::finished;
  if (auto few = ended ? std::nullopt : FindFewWaiting(facts.incident))
    TellFewJoined(std::move(*few), hangs ? &*told : nullptr, answer);
}

static RuleAnswer JudgeMissing(const Case& facts) {
  RuleAnswer answer = JudgeRankMissing(facts);
  // mpirun's daemons tell themselves why they do not start: one cannot connect to another.
  if (!answer.findings.empty() && answer.findings[0].ranks.empty() &&
      answer.findings[0].confidence == Confidence::possible && DaemonCannotConnect(facts.incident))
    answer.findings.clear();
  if (answer.findings.empty()) JudgeFewJoined(facts, answer);
  if (auto store = FindUnstartedStore(facts, ReadInit(facts)); store && answer.findings.empty())
    answer.findings.push_back(std::move(*store));
  if (auto waits = FindWaitInSetup(facts); waits && answer.findings.empty())
    answer.findings.push_back(std::move(*waits));
  return answer;
}

extern const Rule kInitRankMissingRule;
const Rule kInitRankMissingRule = {
    "init-rank-missing",
    "A rank never joined",
    "the output of the ranks (rendezvous errors), NCCL logs (Init START without COMPLETE), stacks",
    "All ranks set up communication together. One rank never reached init_process_group, so all others wait. NCCL "
    "itself never reports which rank is missing and never gives up; PyTorch's store gives up after its timeout.",
    "A rank that joined and failed logs an error: a missing interface, an unreachable address, an inconsistent setup. "
    "Those are separate causes.",
    {"See what the missing rank does instead: its stack and output (imports, data preparation, a failed node).",
     "Check that the launcher started it: number of nodes, tasks per node, WORLD_SIZE.",
     "If it is only slow to join: raise init_process_group(timeout=...), and move slow preparation after it."},
    {"Do heavy preparation after init_process_group, or equally on all ranks.",
     "Let the launcher end the job when one process fails to start."},
    JudgeMissing};

}  // namespace tacet
