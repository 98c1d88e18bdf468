// SPDX-License-Identifier: Apache-2.0
#include "rules/why.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "analysis/process/standstill.h"
#include "rules/diagnosis.h"
#include "rules/precedence.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kMostRanks = 4, kMostRivals = 12;

std::string_view Words(Liveness value, bool told_why) {
  switch (value) {
    case Liveness::unknown: return "undecided";
    case Liveness::unseen: return "it was not seen at all";
    case Liveness::running: return "its process runs";
    case Liveness::stopped: return "its process is stopped";
    case Liveness::gone: return told_why ? "it failed by itself" : "its process is gone";
  }
  return "";
}

std::string_view Words(HostPlace value, bool) {
  switch (value) {
    case HostPlace::unknown: return "undecided";
    case HostPlace::own_code: return "it is stuck on the host";
    case HostPlace::inside_nccl: return "it is stuck inside NCCL";
    case HostPlace::in_kernel: return "it is blocked in the kernel";
    case HostPlace::waiting_for_gpu: return "it waits for its GPU";
  }
  return "";
}

std::string_view Words(GpuPlace value, bool) { return value == GpuPlace::unknown ? "undecided" : "its GPU is stalled"; }

std::string_view StrengthWords(Strength strength) {
  switch (strength) {
    case Strength::proof: return "proof";
    case Strength::strong: return "strong";
    case Strength::weak: return "weak";
  }
  return "";
}

bool Holds(const ProcessState& state, const std::variant<Liveness, HostPlace, GpuPlace>& says) {
  if (const Liveness* process = std::get_if<Liveness>(&says)) return state.process.value == *process;
  if (const HostPlace* host = std::get_if<HostPlace>(&says)) return state.host.value == *host;
  return state.gpu.value == std::get<GpuPlace>(says);
}

// What the cited line says of the wait.
std::string_view HangWords(const Event& told) {
  switch (told.kind) {
    case EventKind::told_hang: return "the text around the log says that the job hangs";
    case EventKind::hung_task: return "the kernel reports a blocked process";
    case EventKind::heartbeat_stuck:
      return told.As<HeartbeatStuck>().waits_for_workers ? "the engine waits for its workers"
                                                         : "a watchdog thread made no progress";
    case EventKind::gil_blocked: return "a process made no progress";
    case EventKind::xla_wait: return "threads wait for others that have not arrived";
    case EventKind::desync_report: return "a report names ranks that have not joined an operation";
    default: return "a rank waited until it timed out";
  }
}

// Nothing that gave up waiting is cited.
std::string_view StillWords(const Case& facts, std::string_view cause) {
  if (cause == "resources-pending") return "the job has not started";
  if (cause.starts_with("init-")) return "setup has not completed";
  return facts.incident.streams.empty()
             ? "the job makes no progress; the finding says what it waits for"
             : "operations did not finish, and were in flight for far longer than those before them";
}

// A listing of ports or a benchmark shows no job.
bool ShowsJob(const Incident& incident) {
  return !incident.streams.empty() || !incident.timelines.empty() || !incident.training.empty() ||
         std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
           return event.kind == EventKind::progress || event.kind == EventKind::init_completed;
         });
}

EvidenceItem WhyStatus(const Case& facts, const Diagnosis& diagnosis) {
  const JobEnd& end = facts.analyses.end;
  const auto by = [&](std::string says) {
    return end.told ? CiteEvent(*end.told, std::move(says)) : CiteAbsence(std::move(says));
  };
  switch (diagnosis.status) {
    case Status::hang:
      if (end.kind == JobEnding::hung && end.looked_at && end.quiet_ns <= 0)
        return by("the stacks of all ranks were taken, and then the job was ended from outside");
      if (end.kind == JobEnding::hung && end.quiet_ns > 0)
        return by("the output stopped for " + DurationWords(end.quiet_ns) + " before the job was ended");
      if (end.kind == JobEnding::hung && end.told) return by(std::string(HangWords(*end.told)));
      if (const Event* timeout = facts.analyses.outcome.first_timeout)
        return CiteEvent(*timeout, "an operation did not finish before its timeout");
      return CiteAbsence(std::string(StillWords(facts, diagnosis.cause)));
    case Status::crash:
      if (diagnosis.cause == "killed-by-scheduler") return by("the job was ended from outside before it was done");
      if (!end.told) return CiteAbsence("the cited error ends a job");
      return by(end.told->kind == EventKind::nccl_warning ? "a process reports an error that ends the job"
                                                          : "processes ended with an error or were ended");
    case Status::slow:
    case Status::degraded:
      return CiteAbsence(ShowsJob(facts.incident) ? "the job makes progress; the finding says what it loses"
                                                  : "nothing failed here; the finding says what is slow or missing");
    case Status::corrupt: return CiteAbsence("the computed results are wrong");
    case Status::healthy: return by("nothing failed, and every rank was seen until its exit");
    case Status::undetermined: return CiteAbsence("nothing shows how the job ended");
  }
  return {};
}

WhyClaim ClaimOf(const Incident& incident, const Standstill& still, const Claim& claim) {
  WhyClaim out;
  out.rank = still.rank;
  out.supports = !claim.knows() || claim.holds == Holds(still.state, claim.says);
  out.reading = (claim.holds ? "" : "not: ") +
                std::string(std::visit([&](auto value) { return Words(value, claim.told_why); }, claim.says));
  out.strength = StrengthWords(claim.strength);
  out.witness = Name(claim.witness);
  if (claim.event)
    out.because = CiteEvent(*claim.event, std::string(claim.because));
  else if (claim.stack && claim.stack->thread)
    out.because = CiteStack(incident, *claim.stack->thread, std::string(claim.because));
  else
    out.because = CiteAbsence(std::string(claim.because));
  return out;
}

void AddStandstillClaims(const Case& facts, const std::set<Rank>& named, Why& why) {
  size_t shown = 0;
  for (const Standstill& still : facts.standstill.ranks) {
    if (!named.contains(still.rank) || shown++ == kMostRanks) continue;
    for (const Claim& claim : still.claims)
      // Beside an answer, who cannot give one adds nothing.
      if (claim.knows() || still.kind == StandstillKind::unclear)
        why.claims.push_back(ClaimOf(facts.incident, still, claim));
  }
}

std::string WhyItLost(const Finding& first, const Finding& rival) {
  if (rival.severity > first.severity)
    return "only a " + std::string(Name(rival.severity)) + "; it does not explain how the job ended";
  if (!rival.explained_by.empty()) return "a consequence of " + rival.explained_by;
  if (first.cause.empty()) return "it does not explain what ended the job";
  if (rival.cause == first.cause) return "the same cause again";
  if (AreIndependent(first.cause, rival.cause)) return "independent of the verdict: both hold";
  if (rival.confidence > first.confidence)
    return "less certain: " + std::string(Name(rival.confidence)) + " against " + std::string(Name(first.confidence));
  return "as certain as the verdict: it is unknown which came first";
}

// A kernel log that is not here excludes nothing.
std::string UnseenWords(const Incident& incident, std::string_view needs) {
  const auto& files = incident.files;
  const bool kernel = std::any_of(files.begin(), files.end(), [](const InputFile& file) {
    return file.format.find("kernel_log") != std::string::npos;
  });
  const bool lacks = !kernel && needs.find("kernel log") != std::string_view::npos;
  return (lacks ? "not fully checked, since no kernel log is here; it would show in " : "it would show in ") +
         std::string(needs);
}

// Causes that would explain the verdict if anything showed them.
void AddUnseenRivals(const Case& facts, const Diagnosis& diagnosis, Why& why) {
  if (diagnosis.cause.empty()) return;
  // Of a job of which no call is known nobody expects that calls differ.
  const bool calls = !facts.incident.streams.empty();
  // What keeps a job from starting did not do so where collectives were issued one after the other.
  constexpr std::string_view kOfTheStart[] = {"resources-pending", "node-unavailable", "port-in-use",
                                              "fabric-manager-down"};
  const bool started =
      !facts.incident.training.empty() || std::any_of(facts.incident.streams.begin(), facts.incident.streams.end(),
                                                      [](const CallStream& stream) { return stream.calls.size() > 1; });
  std::set<std::string_view> known = {diagnosis.cause};
  for (const Finding& finding : diagnosis.findings) known.insert(finding.cause);
  for (const Explanation& line : ExplanationTable()) {
    const bool explains = std::find(line.explains.begin(), line.explains.end(), diagnosis.cause) != line.explains.end();
    if (!explains || why.rivals.size() == kMostRivals) continue;
    if (started && std::find(std::begin(kOfTheStart), std::end(kOfTheStart), line.cause) != std::end(kOfTheStart))
      continue;
    if ((!calls && line.cause.starts_with("collective-")) || !known.insert(line.cause).second) continue;
    const Rule* rule = FindRule(line.cause);
    why.rivals.push_back(
        {std::string(line.cause), {}, false, UnseenWords(facts.incident, rule ? rule->needs : std::string_view())});
  }
}

}  // namespace

Why ExplainVerdict(const Case& facts, const Diagnosis& diagnosis) {
  Why why;
  why.status = WhyStatus(facts, diagnosis);
  const std::set<Rank> named(diagnosis.ranks.begin(), diagnosis.ranks.end());
  const Finding* first = diagnosis.findings.empty() ? nullptr : &diagnosis.findings.front();
  if (first && first->cause == diagnosis.cause)
    for (const EvidenceItem& item : first->evidence) {
      WhyClaim claim;
      claim.rank = first->ranks.size() == 1 ? first->ranks.front() : Rank{};
      claim.reading = first->cause;
      claim.because = item;
      why.claims.push_back(std::move(claim));
      if (why.claims.size() == 3) break;
    }
  AddStandstillClaims(facts, named, why);
  for (const Finding& finding : diagnosis.findings)
    if (&finding != first && why.rivals.size() < kMostRivals && !finding.cause.empty())
      why.rivals.push_back({finding.cause, finding.ranks, true, WhyItLost(*first, finding)});
  AddUnseenRivals(facts, diagnosis, why);
  return why;
}

}  // namespace tacet
