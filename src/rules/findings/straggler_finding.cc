// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/straggler_finding.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "analysis/network/shared_gpu.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string Percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return text;
}

// The file the times come from, for the reader to look into.
void CiteTimes(const Case& facts, Rank rank, std::string says, Finding& finding) {
  for (const Timeline& timeline : facts.incident.timelines) {
    if (timeline.rank != rank) continue;
    finding.evidence.push_back(CiteFile(timeline.file, std::move(says)));
    return;
  }
  for (const Measurement& measurement : facts.incident.measurements) {
    if (measurement.rank != rank) continue;
    finding.evidence.push_back({measurement.source, "", std::move(says)});
    return;
  }
  if (const CallStream* stream = facts.incident.StreamOf(rank, CallSource::flight_recorder)) {
    finding.evidence.push_back(CiteFile(stream->file, std::move(says)));
    return;
  }
  if (!facts.incident.pipeline_traces.empty()) {
    finding.evidence.push_back(CiteFile(facts.incident.pipeline_traces.front().file, std::move(says)));
    return;
  }
  finding.evidence.push_back(CiteAbsence(std::move(says)));
}

// Timelines know workers by their place, and the number of a rank only by the usual order of places.
std::string WhoWords(const Straggler& straggler) {
  const std::string rank = RankWords({straggler.rank});
  if (straggler.stage < 0) return rank;
  return rank + " (data-parallel rank " + std::to_string(straggler.dp_rank) + " of stage " +
         std::to_string(straggler.stage) + ")";
}

std::string HeadlineWho(const Straggler& worst, const std::vector<Rank>& ranks) {
  if (worst.stage < 0) return RankWords(ranks);
  if (worst.origin == StragglerOrigin::stage)
    return "stage " + std::to_string(worst.stage) + " (" + RankWords(ranks) + ")";
  return ranks.size() == 1 ? WhoWords(worst) : RankWords(ranks);
}

// A stage that is named as such is not said to be somebody's.
std::string WhyWords(const Straggler& worst, std::string_view why) {
  const bool stage = worst.stage >= 0 && worst.origin == StragglerOrigin::stage;
  return stage ? "it has more work than the other stages" : std::string(why);
}

std::string LateWords(const Straggler& straggler) {
  const bool now_and_then = straggler.pattern == StragglerPattern::intermittent;
  const std::string often =
      now_and_then ? " in " + std::to_string(straggler.late_steps) + " of " + std::to_string(straggler.steps) + " steps"
      : straggler.stage >= 0 ? " in each step (" + Percent(straggler.share) + " of it)"
                             : " in each step";
  if (straggler.stage >= 0)
    return " costs " + DurationWords(straggler.late_ns) + often +
           ", according to a replay of the timeline with typical times at this place";
  if (straggler.among_stages)
    return " spends " + DurationWords(straggler.late_ns) + " longer" + often +
           " outside sends, receives and collectives than any other stage";
  return " arrives " + DurationWords(straggler.late_ns) + " after the median rank" + often;
}

// A replay of the steps shows that they would be as long without it.
bool IsHidden(const Straggler& straggler) { return straggler.cost < 0.01 && straggler.high > 0 && straggler.high < 1; }

// A stall now and then is a part of all steps together.
std::string_view OfWhat(const Straggler& straggler) {
  return straggler.pattern == StragglerPattern::intermittent ? " of the recorded time" : " of the step";
}

// Of a few stalls the interval is as wide as it can be, and says nothing.
bool IsOpen(const Straggler& straggler) { return straggler.low <= 0 && straggler.high >= 1; }

// ", which costs 27 % of the step (95 % interval: 24 to 30 %), z-score 31; without this delay, throughput would be 37 %
// higher".
std::string CostWords(const Straggler& straggler) {
  if (straggler.cost >= 1) return "";
  const bool hidden = IsHidden(straggler);
  if (straggler.cost <= 0 && !hidden) return "";
  const bool said = straggler.stage >= 0 && !hidden && Percent(straggler.cost) == Percent(straggler.share);
  std::string out = said     ? ""
                    : hidden ? ", which costs less than 1 %" + std::string(OfWhat(straggler))
                             : ", which costs " + Percent(straggler.cost) + std::string(OfWhat(straggler));
  if (straggler.high > straggler.low && !IsOpen(straggler)) {
    char interval[64];
    std::snprintf(interval, sizeof interval, " (95 %% interval: %.0f to %.0f %%)", straggler.low * 100,
                  straggler.high * 100);
    out += interval;
  }
  if (straggler.z > 0) {
    char z[32];
    std::snprintf(z, sizeof z, ", z-score %.0f", straggler.z);
    out += z;
  }
  if (hidden) return out + ": without it the others would wait for something else";
  if (IsOpen(straggler)) return out + "; there are too few such stalls here to say what they cost in the long run";
  const double gain = straggler.cost / (1 - straggler.cost);
  if (gain < 1) return out + "; without this delay, throughput would be " + Percent(gain) + " higher";
  char times[32];
  std::snprintf(times, sizeof times, "%.1f times as high", 1 + gain);
  return out + "; without this delay, throughput would be " + times;
}

// "14 % of the step"; "about 27 % of the step" where the interval, which the evidence states, is wider than the figure.
std::string ShareWords(const Straggler& worst, double cost) {
  return (worst.high - worst.low > cost ? "about " : "") + Percent(cost) + std::string(OfWhat(worst));
}

// Where in the step a slow host loses the time, and nothing where it is slow all over.
void CitePlace(const Case& facts, const Straggler& straggler, Finding& finding) {
  if (straggler.origin != StragglerOrigin::host && straggler.origin != StragglerOrigin::data_loading) return;
  if (!straggler.place.HoldsMostOf(static_cast<double>(straggler.late_ns))) return;
  CiteTimes(facts, straggler.rank,
            "in each step the host of " + WhoWords(straggler) + " takes " +
                DurationWords(std::llround(straggler.place.late_ns)) +
                " longer than the others' in one place: " + straggler.place.Words(),
            finding);
}

// What those of one finding cost together: who are always late are so at the same time, stalls add up.
double CostOf(const StragglerReport& report, bool (*belongs)(const Straggler&)) {
  double cost = 0;
  for (const Straggler& one : report.stragglers) {
    if (!belongs(one)) continue;
    cost = one.pattern == StragglerPattern::intermittent ? std::min(1.0, cost + one.cost) : std::max(cost, one.cost);
  }
  return cost;
}

// Where all ranks use one GPU, it is not the GPU that is slow on one of them.
bool IsOnSharedGpu(const Incident& incident, const std::vector<Rank>& ranks) {
  const auto sets = FindSharedGpus(incident);
  return sets.size() == 1 && sets.front().size() == incident.RanksSeen().size() &&
         std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
           return std::find(sets.front().begin(), sets.front().end(), rank) != sets.front().end();
         });
}

// The steps of the rule begin with the whole step; where the place is known, it comes first.
void TellFirstStep(const Incident& incident, const Straggler& worst, Finding& finding) {
  const std::string who = RankWords(finding.ranks);
  const bool place = worst.place.HoldsMostOf(static_cast<double>(worst.late_ns));
  if (finding.cause == "straggler-host" && finding.ranks.size() == 1 && place)
    finding.fix = {"Look at what the host of " + who + " does in that place (" + worst.place.Words() +
                       "): loading data, logging, a lock. py-spy record and the trace's CPU rows show it.",
                   "Check CPU affinity and load of its host: one core for all ranks, another job, frequency scaling.",
                   "Move per-step work that only this rank does (logging, metrics, sleep, .item()) out of the step."};
  if (finding.cause == "straggler-compute" && IsOnSharedGpu(incident, finding.ranks))
    finding.fix = {"Compare the kernels of " + who +
                   " with another rank's. All ranks share one GPU, so clocks are not the reason: look for more or "
                   "larger kernels (a larger batch, extra work in the code)."};
}

}  // namespace

RuleAnswer JudgeStragglers(const Case& facts, bool (*belongs)(const Straggler&), std::string_view cause,
                           std::string_view why, std::string_view why_many) {
  RuleAnswer answer;
  const StragglerReport& report = facts.analyses.stragglers;
  Finding finding;
  const Straggler* worst = nullptr;
  for (const Straggler& straggler : report.stragglers) {
    if (!belongs(straggler)) continue;
    if (!worst) worst = &straggler;
    finding.ranks.push_back(straggler.rank);
    CiteTimes(facts, straggler.rank, WhoWords(straggler) + LateWords(straggler) + CostWords(straggler), finding);
    CitePlace(facts, straggler, finding);
  }
  // A job that failed has other worries than its pace.
  if (!worst || facts.analyses.outcome.hangs() || facts.analyses.outcome.first_failure) return answer;
  const double cost = CostOf(report, belongs);
  finding.cause = cause;
  finding.status = Status::slow;
  finding.severity = Severity::warning;
  finding.confidence = worst->trust == Trust::certain  ? Confidence::certain
                       : worst->trust == Trust::likely ? Confidence::likely
                                                       : Confidence::possible;
  std::vector<Rank> compared;
  for (const RankLateness& one : report.ranks) compared.push_back(one.rank);
  if (compared.empty()) compared = facts.incident.RanksSeen();  // a stage is compared by its work, not by lateness
  for (const Rank rank : compared)
    if (std::find(finding.ranks.begin(), finding.ranks.end(), rank) == finding.ranks.end())
      finding.affected_ranks.push_back(rank);
  const bool one = finding.ranks.size() == 1 || (worst->stage >= 0 && worst->origin == StragglerOrigin::stage);
  const std::string_view either =
      worst->among_stages ? "its pipeline stage takes longest, because it has more work or because its GPU or host is "
                            "slow"
      : one               ? "it arrives late at the collectives, because of its GPU or its host"
                          : "they arrive late at the collectives, because of their GPUs or their hosts";
  const bool unknown = worst->origin == StragglerOrigin::unknown && worst->pattern == StragglerPattern::persistent;
  finding.headline = HeadlineWho(*worst, finding.ranks) + (one ? " makes" : " make") + " the others wait: " +
                     WhyWords(*worst, unknown ? either
                                      : one   ? why
                                              : why_many) +
                     " (" + DurationWords(worst->late_ns) +
                     (worst->pattern == StragglerPattern::intermittent ? " in a late step" : " per step") +
                     (cost > 0 && !IsHidden(*worst) ? "; this costs all ranks " + ShareWords(*worst, cost) : "") +
                     "), according to " + report.source;
  if (IsHidden(*worst)) finding.headline += "; the step is hardly longer for it";
  TellFirstStep(facts.incident, *worst, finding);
  if (unknown) {
    // Where most are late, there is nobody left to be late against: too few ranks are on record.
    if (finding.ranks.size() * 2 > report.ranks.size()) return answer;
    // Who is late is certain, why is not: no cause is named.
    finding.cause.clear();
    if (worst->among_stages)
      finding.fix = {
          "Compare the layers of this stage with those of the others; count embedding, loss and data loading as "
          "work too. If it has more, move layers.",
          "If it has no more work, look at its host and its GPU: nvidia-smi -q -d PERFORMANCE,CLOCK,ECC, other "
          "processes, CPU contention."};
    answer.open.push_back({worst->among_stages
                               ? "Does the stage of " + RankWords(finding.ranks) +
                                     " have more work than the others, or is its GPU or host slow?"
                               : (one ? "Is " : "Are ") + RankWords(finding.ranks) + " late because of " +
                                     (one ? "its GPU or its host?" : "their GPUs or their hosts?"),
                           "torch.profiler traces of all ranks over a few steps"});
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

}  // namespace tacet
