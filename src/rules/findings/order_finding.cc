// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/order_finding.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>

#include "rules/findings/mismatch_finding.h"
#include "rules/words/hang_capture.h"
#include "rules/words/site_steps.h"
#include "rules/words/words.h"

namespace tacet {

bool SomethingIsWrong(const Case& facts) {
  if (facts.analyses.outcome.hangs() || facts.analyses.outcome.first_failure) return true;
  for (const SourceAnalysis& source : facts.analyses.sources)
    if (!source.waits.cycles.empty() || !source.waits.roots.empty()) return true;
  return false;
}

const Divergence* FindDivergence(const Case& facts, Divergence::Kind kind) {
  for (const SourceAnalysis& source : facts.analyses.sources)
    for (const Divergence& divergence : source.divergences)
      if (divergence.kind == kind) return &divergence;
  return nullptr;
}

namespace {

// Whether peers issue this call, too: as one iteration of a loop, by the call site; perhaps, where no site is recorded.
enum class PeerUse { none, alike, same_site };

PeerUse UseByPeers(const CallStream& peer, const Call& call) {
  PeerUse use = PeerUse::none;
  for (const Call& theirs : peer.calls) {
    if (theirs.group != call.group || theirs.kind != call.kind || theirs.type != call.type ||
        theirs.in_elements != call.in_elements)
      continue;
    const bool sites = theirs.stack != StackId{} && call.stack != StackId{};
    if (sites && theirs.stack == call.stack) return PeerUse::same_site;
    if (!sites) use = PeerUse::alike;
  }
  return use;
}

// One call more of those that all issue is no call to remove: the odd one got there once too often.
void AdviseOnExtra(const Case& facts, const Call& call, PeerUse use, Finding& finding) {
  constexpr std::string_view kSameBatches =
      "If it has more batches: give all ranks the same number of batches (drop_last=True, DistributedSampler), or use "
      "torch's Join context manager for uneven inputs.";
  const std::string site = CallSiteWords(facts.incident, call), who = RankWords(finding.ranks);
  const bool one = finding.ranks.size() == 1;
  if (use == PeerUse::same_site)
    finding.fix = {"All ranks issue this call" + (site.empty() ? site : " in " + site) + ": why " +
                       (one ? "does " : "do ") + who + " get there more often (one extra batch, an evaluation or a " +
                       "retry of " + (one ? "its" : "their") + " own)?",
                   std::string(kSameBatches)};
  else if (use == PeerUse::alike)
    finding.fix = {(one ? "Its" : "Their") + std::string(" peers issue such calls, too: look for a loop that ") + who +
                       (one ? " goes" : " go") + " through more often, and for a call that only " + who +
                       (one ? " makes" : " make") + " (a metric, a retry, a logging hook). A flight record (" +
                       std::string(kRecorderSetting) + ") names the line.",
                   std::string(kSameBatches)};
}

// Calls that look alike pair up, wherever they come from. The first of those before `call` that the odd one issued at
// another place of the program than its peers did: there the extra calls begin. Null where sites agree or are unknown.
const Call* FirstStrayCall(const Incident& incident, const CallStream& odd, const CallStream& usual, const Call& call) {
  const auto by_number = [&](const CallStream& stream) {
    std::map<uint32_t, const Call*> calls;
    for (const Call& one : stream.calls)
      if (one.group == call.group && !one.has(kPointToPoint) && one.seq < call.seq) calls.emplace(one.seq, &one);
    return calls;
  };
  const auto own = by_number(odd), theirs = by_number(usual);
  const Call* stray = nullptr;
  for (auto at = own.rbegin(); at != own.rend(); ++at) {
    const auto other = theirs.find(at->first);
    if (other == theirs.end() || at->second->stack == other->second->stack) break;
    const std::string here = CallSiteWords(incident, *at->second), there = CallSiteWords(incident, *other->second);
    if (here.empty() || there.empty() || here == there) break;
    stray = at->second;
  }
  return stray;
}

// Issued below DistributedDataParallel's forward(): it sends buffers before the pass.
bool IsOfDdpForward(const Incident& incident, const Call& call) {
  for (const Frame& frame : incident.stacks.Get(call.stack))
    if (incident.strings.Get(frame.file).ends_with("torch/nn/parallel/distributed.py") &&
        incident.strings.Get(frame.function).find("forward") != std::string_view::npos)
      return true;
  return false;
}

bool GoesOnAfter(const CallStream& stream, const Call& call) {
  return std::any_of(stream.calls.begin(), stream.calls.end(), [&](const Call& other) {
    return other.group == call.group && other.seq > call.seq && other.has(kPointToPoint) == call.has(kPointToPoint);
  });
}

Finding FromDivergence(const Case& facts, const Divergence& divergence) {
  const bool skipped = divergence.kind == Divergence::Kind::skipped;
  const Call& call = skipped ? *divergence.usual_call : *divergence.odd_call;
  Finding finding;
  finding.ranks = divergence.odd;
  finding.affected_ranks = divergence.usual;
  finding.group = call.group;
  finding.operation = RefOf(call);
  // Ranks that run the same code are members of groups of their own: what one of them left out has another's number.
  const std::string label = facts.incident.groups[static_cast<uint32_t>(call.group)].Label();
  const bool of_peer = call.group != divergence.odd_call->group && skipped;
  const std::string their = divergence.odd.size() == 1 ? "its" : "their";
  const std::string how_many = divergence.count > 1 ? std::to_string(divergence.count) : std::string();
  finding.headline =
      RankWords(divergence.odd) +
      (skipped ? " skipped " + how_many : " issued " + (how_many.empty() ? "one" : how_many) + " more ") +
      (skipped && !how_many.empty() ? " " : "") + std::string(Name(call.kind)) + (how_many.empty() ? "" : " calls") +
      (skipped ? "" : " than " + their + " peers") + " (" +
      (of_peer
           ? RankWords({divergence.usual_stream->rank}) + " issued " + (how_many.empty() ? "it" : "the first") + " as #"
       : how_many.empty() ? "#"
                          : "the first is #") +
      std::to_string(call.seq) + " on " + label + "); from there on " + their +
      " calls are paired with the wrong calls of the others";
  finding.evidence.push_back(CiteCall(facts.incident, *divergence.odd_stream, *divergence.odd_call,
                                      RankWords(divergence.odd) + " issued this after " +
                                          std::to_string(divergence.shared_calls) +
                                          " calls that it shares with all ranks that run the same code"));
  finding.evidence.push_back(
      CiteCall(facts.incident, *divergence.usual_stream, *divergence.usual_call,
               RankWords(divergence.usual) + ", running the same code, issued this at that position"));
  finding.cause = skipped ? "collective-skipped" : "collective-extra";
  if (!skipped) AdviseOnExtra(facts, call, UseByPeers(*divergence.usual_stream, call), finding);
  NameCallInSteps(facts, call, skipped ? divergence.usual : divergence.odd, finding);
  return finding;
}

// "Rank 3 issued 5 extra calls, beginning at #12 on default_pg (all_reduce of 1 float32, one every 4 calls), and is 5
// collectives behind its peers"
std::string DriftWords(const CallDifference& difference, const Call& call, std::string_view label,
                       const std::string& caller) {
  const bool skipped = difference.reading == CallDifference::Reading::skipped, one = difference.odd.size() == 1;
  const std::string count = std::to_string(difference.count);
  std::string words = RankWords(difference.odd) + (skipped ? " skipped " : " issued ") + count +
                      (skipped ? " calls" : " extra calls") + ", beginning at #" + std::to_string(difference.seq) +
                      " on " + std::string(label) + " (" + (difference.alike ? "" : "the first: ") + ShapeWords(call);
  if (difference.every > 1) words += ", one every " + std::to_string(difference.every) + " calls";
  words += ")" + (caller.empty() ? "" : ", called from " + caller) + (one ? ", and is " : ", and are ");
  // A waiting rank may have the number of its peers, since its extra calls took numbers of theirs.
  const auto& odd = difference.sides[1].stream->calls;
  const auto& usual = difference.sides[0].stream->calls;
  const bool same = !skipped && !odd.empty() && !usual.empty() && odd.back().group == usual.back().group &&
                    odd.back().seq == usual.back().seq;
  return words + count + " collectives " + (skipped ? "ahead of " : "behind ") + (one ? "its peers" : "their peers") +
         (same ? " (the numbers agree, because the extra calls took numbers that belong to other calls)" : "");
}

// "rank 1 issued an extra all_gather of 3072 float32 at #26 on default_pg and continues one place behind its peers"
std::string ExtraWords(const Case& facts, const CallDifference& difference, PeerUse use, const Call* stray) {
  const CallSide &usual = difference.sides[0], &odd = difference.sides[1];
  const Call& call = *odd.call;
  const bool one = difference.odd.size() == 1;
  const std::string group = facts.incident.groups[static_cast<uint32_t>(difference.group)].Label();
  const std::string place = "at #" + std::to_string(difference.seq) + " on " + group, its = one ? "its" : "their";
  const bool goes_on = GoesOnAfter(*odd.stream, call);
  const bool waits = !goes_on && odd.stream->knows_finish && call.state != CallState::completed;
  const std::string instead = ", where " + its + " peers issued " + ShapeWords(*usual.call);
  if (stray) {
    const std::string site = CallSiteWords(facts.incident, *stray), from = "#" + std::to_string(stray->seq);
    return RankWords(difference.odd) +
           (stray->seq + 1 == call.seq ? " issued an extra " + ShapeWords(*stray) + " in " + site + ", as " + from
                                       : " issued extra calls in " + site + ", beginning at " + from) +
           " on " + group + "; " +
           (waits ? std::string(one ? "it waits" : "they wait") + " in " + ShapeWords(call)
                  : std::string(one ? "it" : "they") + " issued " + ShapeWords(call)) +
           " at #" + std::to_string(difference.seq) + instead;
  }
  const bool same = use == PeerUse::same_site;
  const std::string what = same
                               ? " issued " + ShapeWords(call) + " one time more than " + its + " peers, " + place + ","
                               : " issued an extra " + ShapeWords(call) + " " + place;
  if (goes_on)
    return RankWords(difference.odd) + what + (one ? " and continues" : " and continue") + " one collective behind " +
           (same ? "them" : its + " peers");
  if (waits) return RankWords(difference.odd) + what + (one ? " and waits in it" : " and wait in it") + instead;
  return RankWords(difference.odd) + (same ? what.substr(0, what.size() - 1) : what) + instead;
}

Finding FromDifference(const Case& facts, const CallDifference& difference) {
  const bool skipped = difference.reading == CallDifference::Reading::skipped;
  const CallSide& usual = difference.sides[0];
  const CallSide& odd = difference.sides[1];
  const Call& call = skipped ? *usual.call : *odd.call;
  const bool extra = !skipped && difference.round == 0 && difference.count <= 1;
  const Call* stray = extra ? FirstStrayCall(facts.incident, *odd.stream, *usual.stream, call) : nullptr;
  const PeerUse use = skipped || stray ? PeerUse::none : UseByPeers(*usual.stream, call);
  Finding finding;
  finding.ranks = difference.odd;
  finding.affected_ranks = usual.ranks;
  finding.group = difference.group;
  finding.operation = RefOf(call);
  const std::string label = facts.incident.groups[static_cast<uint32_t>(difference.group)].Label();
  const std::string place = " at #" + std::to_string(difference.seq) + " on " + label;
  const bool one = difference.odd.size() == 1;
  const std::string peers = one ? "its peers" : "their peers";
  const std::string caller = skipped ? "" : CallerWords(facts.incident, *odd.call, *usual.call);
  if (difference.round > 0)
    finding.headline = RankWords(difference.odd) + " skipped a whole round of " + std::to_string(difference.round) +
                       " calls:" + place + (one ? " it" : " they") + " issued " + ShapeWords(*odd.call) + ", and " +
                       peers + " " + ShapeWords(*usual.call);
  else if (difference.count > 1)
    finding.headline = DriftWords(difference, call, label, caller);
  else if (skipped)
    finding.headline = RankWords(difference.odd) + " skipped " + ShapeWords(call) + place +
                       (one ? " and continues" : " and continue") + " one collective ahead of " + peers;
  else
    finding.headline = ExtraWords(facts, difference, use, stray);
  if (stray)
    finding.evidence.push_back(
        CiteCall(facts.incident, *odd.stream, *stray,
                 RankWords(odd.ranks) + " issued this on a different line of the program from " + peers));
  finding.evidence.push_back(
      CiteCall(facts.incident, *odd.stream, *odd.call,
               RankWords(odd.ranks) + " issued this" + (caller.empty() ? "" : ", called from " + caller)));
  // One line of the program may issue both: then the callers tell them apart.
  const std::string theirs = caller.empty() ? std::string() : CallerWords(facts.incident, *usual.call, *odd.call);
  finding.evidence.push_back(CiteCall(facts.incident, *usual.stream, *usual.call,
                                      RankWords(usual.ranks) + " issued this at the same position" +
                                          (theirs.empty() ? "" : ", called from " + theirs)));
  finding.cause = skipped ? "collective-skipped" : "collective-extra";
  if (!skipped && !stray && !caller.empty() && use != PeerUse::same_site)
    finding.fix = {"Look at " + caller + ": why " + (one ? "does only " : "do only ") + RankWords(odd.ranks) +
                       " get there (an evaluation, a metric, a retry, a logging hook)?",
                   "Remove it, or let all members of the group go through it."};
  else if (!skipped)
    AdviseOnExtra(facts, call, use, finding);
  NameCallInSteps(facts, stray ? *stray : call, skipped ? usual.ranks : odd.ranks, finding);
  if (!skipped && use != PeerUse::same_site && IsOfDdpForward(facts.incident, stray ? *stray : call))
    finding.fix.insert(finding.fix.begin() + std::min<std::ptrdiff_t>(1, std::ssize(finding.fix)),
                       "The call comes from the forward pass of a model that is wrapped in DDP: if only one rank "
                       "evaluates, call model.module in eval mode, or let all ranks call the model.");
  return finding;
}

}  // namespace

std::optional<Finding> OrderFinding(const Case& facts, Divergence::Kind kind, CallDifference::Reading reading,
                                    std::string_view cause) {
  std::optional<Finding> finding;
  const CallDifference* difference = FirstDifferenceOf(facts);
  if (difference && !difference->odd.empty() && difference->reading == reading) {
    finding = FromDifference(facts, *difference);
  } else if (const Divergence* divergence = FindDivergence(facts, kind);
             divergence && !difference && SomethingIsWrong(facts)) {
    finding = FromDivergence(facts, *divergence);
  }
  if (!finding) return finding;
  finding->cause = cause;
  finding->status = StatusAfterDisagreement(facts);
  finding->severity = Severity::critical;
  finding->confidence =
      finding->affected_ranks.size() > finding->ranks.size() ? Confidence::certain : Confidence::likely;
  return finding;
}

}  // namespace tacet
