// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "analysis/calls/message_counts.h"
#include "analysis/printed/told_exchange.h"
#include "rules/findings/hang_finding.h"
#include "rules/findings/parted_finding.h"
#include "rules/findings/stack_only.h"
#include "rules/rule.h"
#include "rules/words/activity_words.h"
#include "rules/words/message_words.h"
#include "rules/words/site_steps.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Links of a pipeline carry the same number of messages. The side whose count is unlike all other links' is at fault.
bool OtherSideIsShort(const std::vector<P2pLink>& links, const P2pLink& bad, bool receives) {
  std::map<size_t, int> counts;
  for (const P2pLink& link : links) {
    if (&link == &bad || !link.counted_from_start || link.sends.size() != link.recvs.size()) continue;
    ++counts[link.sends.size()];
  }
  if (!bad.counted_from_start) return false;
  const size_t surplus = receives ? bad.recvs.size() : bad.sends.size();
  const size_t lacking = receives ? bad.sends.size() : bad.recvs.size();
  return counts[surplus] > counts[lacking];
}

// A rank that left messages out has fewer than its partner on every one of its links.
bool IsShortOnAllLinks(const std::vector<P2pLink>& links, Rank rank) {
  size_t own = 0;
  for (const P2pLink& link : links) {
    if (link.sender != rank && link.receiver != rank) continue;
    const bool sends = link.sender == rank;
    if ((sends ? link.sends : link.recvs).size() >= (sends ? link.recvs : link.sends).size()) return false;
    ++own;
  }
  return own >= 2;
}

// The peer has moved on to something that cannot end before the owner comes. One that waits for a third rank is merely
// late.
bool WaitForEachOther(const WaitGraph& waits, Rank a, Rank b) {
  return std::any_of(waits.cycles.begin(), waits.cycles.end(), [&](const std::vector<Rank>& cycle) {
    return std::binary_search(cycle.begin(), cycle.end(), a) && std::binary_search(cycle.begin(), cycle.end(), b);
  });
}

// A rank waits in the call itself, or in the entry that closes its batch and has its number.
bool IsOrCloses(const Call& blocked, const Call& open) {
  return &blocked == &open || (blocked.has(kCoalescedEnd) && blocked.has(kPointToPoint) && open.has(kCoalescedMember) &&
                               blocked.group == open.group && blocked.seq == open.seq);
}

bool IsInCycleOfP2pOnly(const WaitGraph& waits, Rank rank) {
  for (const std::vector<Rank>& cycle : waits.cycles) {
    if (!std::binary_search(cycle.begin(), cycle.end(), rank)) continue;
    return std::all_of(waits.operations.begin(), waits.operations.end(), [&](const BlockedOperation& operation) {
      return operation.point_to_point || !HasWaiterIn(operation, cycle);
    });
  }
  return false;
}

// A step that one rank left out: nothing is open between its neighbours' calls and its own, since all of them went on.
void JudgeShortExchange(const Case& facts, RuleAnswer& answer) {
  if (!facts.analyses.outcome.hangs()) return;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    if (!source.differences.empty()) continue;
    const auto found = FindShortExchange(source.groups, source.links);
    if (!found) continue;
    Finding finding = HangFinding("p2p-unmatched", found->rank, *found->message, source.waits);
    finding.headline = RankWords({found->rank}) + " skipped messages: before " +
                       OperationWords(facts.incident, *found->collective) + " it exchanged " +
                       std::to_string(found->own) + " messages with " + RankWords({found->peer}) +
                       ", which exchanged " + std::to_string(found->theirs);
    finding.evidence.push_back(CiteCall(facts.incident, *found->stream, *found->collective,
                                        RankWords({found->rank}) + " moved on to this too early"));
    finding.evidence.push_back(CiteCall(facts.incident, *found->peer_stream, *found->message,
                                        "the first message of " + RankWords({found->peer}) + " that it skipped"));
    answer.findings.push_back(std::move(finding));
    return;
  }
}

// Without records: one rank is in a send or receive while all others wait in something else, for it among others.
void JudgeUnmatchedByStacks(const Case& facts, RuleAnswer& answer) {
  if (!OnlyStacksTell(facts)) return;
  const StackReading* lone = nullptr;
  for (const StackReading& reading : facts.analyses.stacks) {
    const bool alone = !PointToPointCallOf(facts, reading).empty();
    if (!WaitsByStack(reading) || (alone && lone)) return;
    if (alone) lone = &reading;
  }
  if (!lone || facts.analyses.stacks.size() < 3) return;
  const std::string call(PointToPointCallOf(facts, *lone));
  Finding finding;
  finding.cause = "p2p-unmatched";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;  // its partner may have left the other half out
  finding.ranks = {lone->rank};
  for (const StackReading& reading : facts.analyses.stacks)
    if (&reading != lone) finding.affected_ranks.push_back(reading.rank);
  finding.headline = RankWords({lone->rank}) + " waits in " + call + " (" + lone->where +
                     "), no other rank is in a send or receive, and all of them wait elsewhere";
  finding.evidence.push_back({lone->thread->source, lone->where, "the only rank in a " + call});
  answer.findings.push_back(std::move(finding));
  answer.open.push_back(
      {"Did " + RankWords({lone->rank}) + " post one " + call + " too many, or its partner one too few?",
       "records of the calls: flight records with NCCL, TORCH_DISTRIBUTED_DEBUG=DETAIL with gloo"});
}

// Nobody's calls are recorded, and what two ranks printed of one exchange does not fit. That it stands still is told by
// how the job ended, or by the stack of one that is in a send or receive while nobody else is.
void JudgeToldExchange(const Case& facts, RuleAnswer& answer) {
  const JobEnd& end = facts.analyses.end;
  if (!facts.analyses.sources.empty() || end.kind == JobEnding::finished || end.said) return;
  const ToldExchange told = FindToldExchange(facts.analyses.printed);
  if (!told) return;
  const auto& stacks = facts.analyses.stacks;
  const auto in_message = std::count_if(stacks.begin(), stacks.end(), [&](const StackReading& one) {
    return !PointToPointCallOf(facts, one).empty() && one.thread->last_words &&
           (one.rank == told.of_one || one.rank == told.of_other);
  });
  const bool hangs = end.kind == JobEnding::hung || facts.analyses.outcome.hangs() || in_message == 1;
  Finding finding;
  finding.cause = "p2p-unmatched";
  finding.status = hangs ? Status::hang : Status::undetermined;
  finding.severity = Severity::critical;
  finding.confidence = hangs && told.odd.known() ? Confidence::likely : Confidence::possible;
  if (told.odd.known()) finding.ranks = {told.odd};
  for (const Rank rank : facts.incident.AllRanks())
    if (rank != told.odd) finding.affected_ranks.push_back(rank);
  const std::string one = RankWords({told.of_one}), other = RankWords({told.of_other});
  finding.headline = one + " and " + other + " do not agree on their exchange: " + one + " prints " +
                     QuotedLine(*told.one) + ", and " + other + " prints " + QuotedLine(*told.other) +
                     (told.odd.known() ? "; in all rounds before, both had " + std::to_string(told.usual)
                                       : "; in all rounds before, the two numbers were equal");
  finding.evidence.push_back({told.one->source, told.one->text, "the last line of " + one});
  finding.evidence.push_back({told.other->source, told.other->text, "the last line of " + other});
  for (const StackReading& reading : stacks)
    if (hangs && !PointToPointCallOf(facts, reading).empty() && reading.thread->last_words &&
        (reading.rank == told.of_one || reading.rank == told.of_other))
      finding.evidence.push_back(CiteStack(facts.incident, *reading.thread, RankWords({reading.rank}) + " is here"));
  finding.fix = {"Find out how " + (told.odd.known() ? RankWords({told.odd}) : one + " and " + other) +
                     " obtains the number: both sides must compute it from the same data.",
                 "Send the number of messages first, or compute it once and broadcast it."};
  answer.findings.push_back(std::move(finding));
}

// The only message ever between these two, while its owner exchanges many with others: it went to the wrong rank.
bool WentAstray(const std::vector<P2pLink>& links, const P2pLink& link, bool receives) {
  constexpr size_t kMany = 3;
  const Rank owner = receives ? link.receiver : link.sender;
  if ((receives ? link.recvs : link.sends).size() != 1 || !(receives ? link.sends : link.recvs).empty()) return false;
  return std::any_of(links.begin(), links.end(), [&](const P2pLink& other) {
    return (other.sender == owner && other.sends.size() >= kMany) ||
           (other.receiver == owner && other.recvs.size() >= kMany);
  });
}

bool Failed(const RankLife& life) {
  return life.exception || life.cuda_oom || life.oom_killed || life.host_memory || life.segfault || life.vanished;
}

// "train_and_predict (user_job3.py:351)": where the rank made the call, by the traceback that carries this message.
std::string SiteOfException(const Case& facts, const Event& message) {
  constexpr uint32_t kLinesOfAMessage = 3;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::exception || event.rank != message.rank || event.source.file != message.source.file)
      continue;
    const uint32_t a = event.source.line, b = message.source.line;
    const CodePlace& place = event.As<Raised>().place;
    if (std::max(a, b) - std::min(a, b) > kLinesOfAMessage || place.file.empty()) continue;
    return CodePlaceWords(place);
  }
  return "";
}

static void TellPairSetup(const Event& event, const std::string& own, const std::string& partner,
                          const std::string& site, int64_t limit_ms, Finding& finding) {
  finding.headline = own + " gave up on its first send or receive with " + partner +
                     (limit_ms > 0 ? " after " + DurationWords(limit_ms * 1'000'000) : "") +
                     (site.empty() ? "" : ", in " + site) + ": " + partner + " had made no matching call";
  finding.evidence.push_back(CiteEvent(event, "it waits for the communicator id that " + partner + " has to publish"));
  if (site.empty()) return;
  finding.fix = {"Look at " + site + " on " + own + ": which call of " + partner +
                     " should match it, and under which condition does " + partner + " make it?",
                 "In a pipeline: compare the number of microbatches and the schedule on both sides."};
}

// No record is needed: PyTorch makes a communicator for each pair of ranks at their first message, and one of the two
// waited for the other in vain.
void JudgePairSetup(const Case& facts, RuleAnswer& answer) {
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::store_wait_timeout || !event.As<StoreWait>().pair) continue;
    if (!event.rank.known() || !event.peer.known()) continue;
    const RankLife* peer = facts.analyses.life.Of(event.peer);
    if (peer && Failed(*peer)) continue;
    Finding finding;
    finding.cause = "p2p-unmatched";
    finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::likely;
    finding.affected_ranks = {event.rank};
    const int64_t limit = event.As<StoreWait>().timeout_ms;
    const std::string site = SiteOfException(facts, event), own = RankWords({event.rank});
    const std::string partner = RankWords({event.peer});
    TellPairSetup(event, own, partner, site, limit, finding);
    answer.findings.push_back(std::move(finding));
    const RankLife* sender = facts.analyses.life.Of(event.rank);
    std::vector<Rank> unread;
    if (!sender || !sender->has_dump) unread.push_back(event.rank);
    if (!peer || !peer->has_dump) unread.push_back(event.peer);
    std::string question = "Did ";
    question.append(own).append(" post one message too many, or ").append(partner).append(" one too few?");
    answer.open.push_back(
        {std::move(question), unread.empty()
                                  ? "the code at both call sites"
                                  : std::string(unread.size() > 1 ? "flight records of " : "the flight record of ") +
                                        RankWords(unread) + " (TORCH_FR_BUFFER_SIZE=20000)"});
    return;
  }
}

// "sent 3 of the 4 messages that rank 1 expects"
std::string CountOfLink(const P2pLink& link, bool receives, Rank owner) {
  const size_t here = (receives ? link.recvs : link.sends).size(), there = (receives ? link.sends : link.recvs).size();
  const std::string did = receives ? "sent " : "received ";
  if (there == 0) return did + "nothing";
  return did + std::to_string(there) + " of the " + std::to_string(here) + " messages that " + RankWords({owner}) +
         (receives ? " expects" : " has sent");
}

// A message to the wrong rank closes a circle of waits, but only one of its ranks did something unusual.
void JudgeMisdirected(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.end.kind != JobEnding::hung && !facts.analyses.outcome.hangs()) return;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    if (!source.differences.empty()) continue;
    const MisdirectedMessage wrong = FindMisdirected(source.links);
    const RankLife* life = wrong ? facts.analyses.life.Of(wrong.owner) : nullptr;
    if (!wrong || (life && Failed(*life))) continue;
    const bool receives = wrong.receives;
    const CallStream& stream = *(receives ? wrong.stray->recv_stream : wrong.stray->send_stream);
    const CallStream& other = *(receives ? wrong.missed->send_stream : wrong.missed->recv_stream);
    const Call& astray = stream.calls[(receives ? wrong.stray->recvs : wrong.stray->sends).front()];
    const Call& open = *(receives ? wrong.missed->unmatched_send : wrong.missed->unmatched_recv);
    const Rank target = receives ? wrong.stray->sender : wrong.stray->receiver;
    const Rank usual = receives ? wrong.missed->sender : wrong.missed->receiver;
    const std::string who = RankWords({wrong.owner}), place = CallSiteWords(facts.incident, astray);
    Finding finding = HangFinding("p2p-unmatched", wrong.owner, astray, source.waits);
    finding.confidence = Confidence::likely;
    finding.headline = who + (receives ? " receives from " : " sends to ") + RankWords({target}) + " in " +
                       OperationWords(facts.incident, astray) + ", which " +
                       (receives ? "sends nothing to it" : "posts no matching receive") + "; " + RankWords({usual}) +
                       " waits for the message that " + who +
                       " usually exchanges with it. The peer is most likely wrong";
    finding.evidence = {CiteCall(facts.incident, stream, astray,
                                 "the only " + std::string(receives ? "receive" : "send") + " between the two"),
                        CiteCall(facts.incident, other, open,
                                 RankWords({usual}) + " waits here for " + who + ", after " +
                                     std::to_string((receives ? wrong.missed->recvs : wrong.missed->sends).size()) +
                                     " messages that were exchanged")};
    finding.fix = {"Check how " + who + " computes its peer" + (place.empty() ? "" : " in " + place) +
                       ": is the number of ranks, or the table of neighbors, the same on all ranks at that moment?",
                   "Print rank and peer of every send and receive of one step on all ranks: each must have its "
                   "counterpart."};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

}  // namespace

static RuleAnswer JudgeP2pUnmatched(const Case& facts) {
  RuleAnswer answer;
  JudgeMisdirected(facts, answer);
  if (!answer.findings.empty()) return answer;
  for (const SourceAnalysis& source : facts.analyses.sources) {
    for (const P2pLink& link : source.links) {
      const Call* open = link.unmatched_recv ? link.unmatched_recv : link.unmatched_send;
      if (!open) continue;
      const bool receives = link.unmatched_recv != nullptr;
      const Rank owner = receives ? link.receiver : link.sender;
      const Rank peer = receives ? link.sender : link.receiver;
      if (const RankLife* own = facts.analyses.life.Of(owner); own && own->finished) continue;
      // The peer must have moved on to something else. One that has simply not come yet stands still elsewhere, and one
      // that failed owes what it owes because of that.
      const RankLife* peer_life = facts.analyses.life.Of(peer);
      if (peer_life && Failed(*peer_life)) continue;
      const bool moved_on = WaitForEachOther(source.waits, owner, peer) || (peer_life && peer_life->finished);
      if (!moved_on || IsInCycleOfP2pOnly(source.waits, owner)) continue;
      const auto blocked = source.waits.blocked_in.find(owner);
      if (blocked == source.waits.blocked_in.end() || !IsOrCloses(*blocked->second, *open)) continue;
      Finding finding;
      finding.cause = "p2p-unmatched";
      finding.status = Status::hang;
      finding.severity = Severity::critical;
      const bool astray = WentAstray(source.links, link, receives);
      const bool short_peer =
          !astray && (OtherSideIsShort(source.links, link, receives) || IsShortOnAllLinks(source.links, peer));
      // Of records that lost their beginning, beside a peer that ended in order, either may be one off.
      const bool either = !link.counted_from_start && peer_life && peer_life->finished && !short_peer;
      if (!either) finding.ranks = {short_peer ? peer : owner};
      finding.confidence = Confidence::likely;
      finding.group = link.group;
      finding.operation = RefOf(*open);
      for (const auto& [rank, call] : source.waits.blocked_in)
        if (either || rank != finding.ranks[0]) finding.affected_ranks.push_back(rank);
      if (either) finding.status = Status::undetermined;
      finding.headline = RankWords({owner}) + " waits in " + OperationWords(facts.incident, *open) +
                         (receives ? " from " : " to ") + RankWords({peer}) + ", which has " +
                         CountOfLink(link, receives, owner) + " and has moved on";
      if (astray) {
        finding.headline += "; the two exchange nothing else, so " + RankWords({peer}) + " may be the wrong peer";
        finding.fix = {
            "Check the peer that " + RankWords({owner}) + " passes to " + (receives ? "recv" : "send") +
                (CallSiteWords(facts.incident, *open).empty() ? "."
                                                              : " in " + CallSiteWords(facts.incident, *open) + "."),
            "Print rank and peer of every send and receive of one step on all ranks: each must have its "
            "counterpart."};
      }
      NameCallInSteps(facts, *open, {owner}, finding);
      const CallStream& stream = *(receives ? link.recv_stream : link.send_stream);
      const CallStream& other = *(receives ? link.send_stream : link.recv_stream);
      finding.evidence.push_back(
          CiteCall(facts.incident, stream, *open,
                   receives ? "this receive has no matching send" : "this send has no matching receive"));
      const auto& theirs = receives ? link.sends : link.recvs;
      if (!theirs.empty())
        finding.evidence.push_back(CiteCall(facts.incident, other, other.calls[theirs.back()],
                                            RankWords({peer}) + "'s last " + (receives ? "send to " : "receive from ") +
                                                RankWords({owner}) + ", number " + std::to_string(theirs.size()) +
                                                " between the two"));
      if (const auto next = source.waits.blocked_in.find(peer); next != source.waits.blocked_in.end())
        finding.evidence.push_back(
            CiteCall(facts.incident, other, *next->second, "where " + RankWords({peer}) + " waits now"));
      answer.findings.push_back(std::move(finding));
      return answer;
    }
  }
  JudgeShortExchange(facts, answer);
  if (answer.findings.empty()) JudgeUnmatchedByStacks(facts, answer);
  if (answer.findings.empty()) JudgePairSetup(facts, answer);
  if (answer.findings.empty()) JudgeToldExchange(facts, answer);
  if (answer.findings.empty())
    if (auto parted = PartedFinding(facts, "p2p-unmatched")) answer.findings.push_back(std::move(*parted));
  return answer;
}

extern const Rule kP2pUnmatchedRule;
const Rule kP2pUnmatchedRule = {
    "p2p-unmatched",
    "A receive has no send, or the reverse",
    "flight records, black boxes or NCCL logs with the COLL subsystem, of both sides",
    "One side of a pair posted one message more than the other. It waits forever, while its peer has moved on and soon "
    "waits for it. After the abort the peers' later operations are marked completed although they were not.",
    "In a circle of sends every rank posts one half and none has moved on. A peer that has not arrived because it is "
    "stuck on the host is a separate cause.",
    {"Compare the number of microbatches and the schedule on both sides.",
     "Find the call in the program (a flight record names its line): is it outside the regular loop (an off-by-one, a "
     "flush at the end)?"},
    {"Compute the number of messages once and pass it to all stages.",
     "Use the pipeline schedules of torch.distributed.pipelining instead of hand-written ones."},
    JudgeP2pUnmatched};

}  // namespace tacet
