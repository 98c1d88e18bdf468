// SPDX-License-Identifier: Apache-2.0
#include "analysis/standstill.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/overdue.h"
#include "analysis/stopped_heart.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

struct RootView {
  const WaitRoot* root = nullptr;
  bool silent_only = true;
};

// Another source shows that the rank issued what it is waited for, and more: the one that names it ends early.
bool WentBeyond(const Incident& incident, const Analyses& analyses, const WaitRoot& root) {
  if (root.kind != RootKind::not_entered || !root.call || root.call->has(kPointToPoint)) return false;
  const auto members = [&](GroupIndex group) { return incident.groups[static_cast<uint32_t>(group)].members; };
  for (const SourceAnalysis& source : analyses.sources) {
    if (root.stream && source.source == root.stream->source) continue;
    for (const GroupCalls& group : source.groups) {
      // A process group and its communicator may be listed apart.
      if (group.group != root.group && members(group.group) != members(root.group)) continue;
      for (const MemberCalls& member : group.members)
        // Sources may count differently by one or two.
        if (member.rank == root.rank && member.stream && member.last_enqueued >= int64_t{root.call->seq} + 3)
          return true;
    }
  }
  return false;
}

// Every rank that some source names as the end of a wait. "Silent" in one source yields to any other source that saw
// it.
std::map<Rank, RootView> JoinRoots(const Incident& incident, const Analyses& analyses) {
  std::map<Rank, RootView> roots;
  for (const SourceAnalysis& source : analyses.sources) {
    for (const WaitRoot& root : source.waits.roots) {
      RootView& view = roots[root.rank];
      const bool silent = root.kind == RootKind::silent;
      if (!view.root || (view.silent_only && !silent)) view.root = &root;
      view.silent_only &= silent;
    }
  }
  // Whoever a better record shows waiting is a victim, even if its log stops early because its last call failed. A call
  // that was only issued, as far as that record tells, may well be the one the rank's GPU does not get to.
  const auto only_issued = [&](const WaitRoot& root, const Call& call) {
    return root.kind == RootKind::gpu_not_started && call.state == CallState::enqueued;
  };
  for (const SourceAnalysis& source : analyses.sources) {
    std::set<Rank> own_roots;
    for (const WaitRoot& root : source.waits.roots) own_roots.insert(root.rank);
    for (const auto& [rank, call] : source.waits.blocked_in) {
      const auto found = roots.find(rank);
      if (found == roots.end() || own_roots.contains(rank)) continue;
      if (call == nullptr || !only_issued(*found->second.root, *call)) roots.erase(found);
    }
  }
  std::erase_if(roots, [&](const auto& root) { return WentBeyond(incident, analyses, *root.second.root); });
  // A rank that lost one kind of record but keeps up, or waits itself, in another is no root.
  for (const SourceAnalysis& source : analyses.sources) {
    std::set<Rank> own_roots;
    for (const WaitRoot& root : source.waits.roots) own_roots.insert(root.rank);
    for (const GroupCalls& group : source.groups) {
      for (const MemberCalls& member : group.members) {
        if (!member.stream || own_roots.contains(member.rank)) continue;
        const auto found = roots.find(member.rank);
        if (found != roots.end() && found->second.silent_only) roots.erase(found);
      }
    }
  }
  return roots;
}

class Finder {
 public:
  Finder(const Incident& incident, const Analyses& analyses) : incident_(incident), analyses_(analyses) {
    for (const StackReading& reading : analyses.stacks) stacks_.emplace(reading.rank, &reading);
    for (const auto& [rank, life] : analyses.life.ranks) {
      if (!life.lost_peer || ClosedByTheEnd(*life.lost_peer)) continue;
      if (!closing_ || IsBefore(*life.lost_peer, *closing_)) closing_ = life.lost_peer;
    }
  }

  StandstillView Find() {
    StandstillView view;
    // Somebody came to the end, and nobody tells of trouble: whoever's files end earlier was not waited for.
    const Outcome& outcome = analyses_.outcome;
    if (outcome.somebody_finished && !outcome.hangs() && !outcome.first_failure && !closing_) return view;
    const auto roots = JoinRoots(incident_, analyses_);
    view.lasts = Lasts() || std::any_of(roots.begin(), roots.end(),
                                        [&](const auto& root) { return IsFarBehind(*root.second.root); });
    // Who lost a peer stopped because of it, as long as somebody else lost none.
    const auto lost_a_peer = [&](Rank rank) {
      const RankLife* life = analyses_.life.Of(rank);
      return life && life->lost_peer;
    };
    const auto is_here = [&](Rank rank) {
      const RankLife* life = analyses_.life.Of(rank);
      return life && life->any();
    };
    const bool somebody_lost_none = std::any_of(
        roots.begin(), roots.end(), [&](const auto& r) { return is_here(r.first) && !lost_a_peer(r.first); });
    for (const auto& [rank, root] : roots) {
      if (somebody_lost_none && lost_a_peer(rank)) continue;
      if (IsConnecting(rank, *root.root))
        view.connecting.push_back(rank);
      else
        view.ranks.push_back(Read(rank, *root.root));
    }
    // Who crashed over memory that another process took away with it is no reason for anything.
    std::erase_if(view.ranks, [&](const Standstill& still) {
      const RankLife* life = analyses_.life.Of(still.rank);
      return still.kind == StandstillKind::unclear && life && life->shared_gpu_error;
    });
    DropAbsentCrowd(view);
    DropLaggingCrowd(view);
    ReadStoppedHearts(incident_, analyses_, closing_, view);
    if (view.ranks.empty()) FindByStackAlone(view);
    if (view.ranks.empty()) FindBySight(view);
    if (view.ranks.empty()) FindBySilence(view);
    if (view.ranks.empty()) FindByKernel(view);
    if (view.ranks.empty()) FindByReport(view);
    ChooseOperation(view);
    return view;
  }

 private:
  // Long after a watchdog had fired: somebody ended the job, and its processes one after the other.
  bool ClosedByTheEnd(const Event& lost) const {
    const Event* timeout = analyses_.outcome.first_timeout;
    return timeout && timeout->wall_ns != kNoTime && lost.wall_ns != kNoTime &&
           lost.wall_ns > timeout->wall_ns + incident_.patience.clean_up_ns;
  }

  // It ended on its own and not by the clean-up that follows a timeout: by a signal that clean-ups do not send, or
  // before anybody else ended or gave up.
  bool EndedFirst(const RankLife& life) const {
    if (life.segfault) return true;
    if (!life.exited) return false;
    const Outcome& outcome = analyses_.outcome;
    if (outcome.first_timeout && IsBefore(*outcome.first_timeout, *life.exited)) return false;
    if (IsFirstHandEnd(*life.exited)) return true;
    return outcome.first_end == life.exited && outcome.first_timeout && IsBefore(*life.exited, *outcome.first_timeout);
  }

  Standstill Read(Rank rank, const WaitRoot& root) const {
    Standstill still{.rank = rank, .root = &root};
    const RankLife* life = analyses_.life.Of(rank);
    const auto stack = stacks_.find(rank);
    if (!life) return still;
    still.alive = life->has_record || life->asked_to_dump;
    if (IsExplained(*life)) {
      still.kind = StandstillKind::explained;
    } else if (life->vanished) {
      still.kind = StandstillKind::dead;
      still.closing = closing_;
    } else if (const InFlight* inside = HostInside(rank, root); inside && root.kind == RootKind::gpu_not_started) {
      still.kind = StandstillKind::host;
      still.inside = inside;
    } else if (root.kind == RootKind::gpu_not_started || root.kind == RootKind::gpu_behind) {
      const bool stands = analyses_.outcome.stands() && LivedOn(rank, root);
      still.kind = stands ? StandstillKind::gpu : StandstillKind::unclear;
    } else if (life->finished && root.call && IsPointToPoint(root.call->kind)) {
      still.kind = StandstillKind::unclear;  // ended in order, with a send or receive too few: not dead
    } else if (EndedFirst(*life) || (life->finished && analyses_.outcome.hangs() && !Diverged(root))) {
      still.kind = StandstillKind::dead;
    } else if (stack != stacks_.end() && HasNoCallOfItsOwn(rank, root) && !ShowsWhereItIs(*stack->second)) {
      still.kind = StandstillKind::unclear;
    } else if (stack != stacks_.end() && stack->second->place == StackReading::Place::host &&
               !IsWhereOthersWait(rank)) {
      still.kind = Lasts() || OthersWait(rank) || IsFarBehind(root) ? StandstillKind::host : StandstillKind::unclear;
      still.stack = stack->second;
    } else if (stack != stacks_.end() && stack->second->place == StackReading::Place::device_wait &&
               root.kind == RootKind::not_entered && Lasts()) {
      // It waits for its GPU before it can issue the operation, and nothing of its communication is open.
      still.kind = StandstillKind::gpu;
      still.stack = stack->second;
    } else if (life->hung_task && root.kind != RootKind::gpu_behind) {
      still.kind = StandstillKind::frozen;
      still.hung_task = life->hung_task;
    } else if (root.kind == RootKind::not_entered && still.alive && !InCommunication(rank) && !HasCutFile(rank)) {
      const bool stands = (analyses_.outcome.aged || analyses_.outcome.overdue) && !life->finished;
      still.kind = stands ? StandstillKind::host : StandstillKind::unclear;
    } else if (!life->any()) {
      still.kind = StandstillKind::absent;
    } else {
      still.kind = ReadSilence(*life, &still);
    }
    return still;
  }

  // Its innermost frame of Python is the very line at which others stand: what happens below it cannot be seen.
  bool IsWhereOthersWait(Rank rank) const {
    const StackReading& own = *stacks_.at(rank);
    if (own.certain || own.innermost_user.line == 0) return false;
    return std::any_of(stacks_.begin(), stacks_.end(), [&](const auto& other) {
      return other.first != rank && !other.second->certain && other.second->innermost_user == own.innermost_user;
    });
  }

  bool InCommunication(Rank rank) const {
    const auto stack = stacks_.find(rank);
    return stack != stacks_.end() && stack->second->place == StackReading::Place::communication;
  }

  // A time limit that passed, an operation open for many seconds, a report of NCCL or PyTorch.
  bool Lasts() const { return analyses_.outcome.hangs() || !analyses_.told.empty(); }

  // Every other member of the group issued so many operations more that no usual delay explains it: hosts run ahead of
  // each other, but not by that much.
  bool IsFarBehind(const WaitRoot& root) const {
    if (root.kind != RootKind::not_entered) return false;
    for (const SourceAnalysis& source : analyses_.sources) {
      for (const GroupCalls& group : source.groups) {
        if (group.group != root.group) continue;
        size_t own = 0, least = SIZE_MAX;
        for (const MemberCalls& member : group.members) {
          if (member.rank == root.rank)
            own = member.calls.size();
          else
            least = std::min(least, member.calls.size());
        }
        if (least != SIZE_MAX && least >= own + incident_.patience.far_behind) return true;
      }
    }
    return false;
  }

  // At that moment no other stack, and there are at least two, is outside communication and PyTorch's own code, and
  // none came where it is through the line at which this rank is.
  bool OthersWait(Rank rank) const {
    const auto own = stacks_.find(rank);
    size_t others = 0;
    for (const auto& [other, reading] : stacks_) {
      if (other == rank) continue;
      if (reading->place == StackReading::Place::host) return false;
      ++others;
      if (own == stacks_.end() || own->second->innermost_user.line == 0) continue;
      const std::vector<Frame>& frames = incident_.stacks.Get(reading->thread->stack);
      if (std::find(frames.begin(), frames.end(), own->second->innermost_user) != frames.end()) return false;
    }
    return others >= 2;
  }

  // Nothing but the end of its log says that it has not come, or it has no record of its calls at all. A log may have
  // been cut there.
  bool HasNoCallOfItsOwn(Rank rank, const WaitRoot& root) const {
    if (root.kind == RootKind::silent) return true;
    return root.kind == RootKind::not_entered && root.stream && root.stream->source == CallSource::nccl_log &&
           incident_.StreamOf(rank, CallSource::nccl_log);
  }

  // What tells of a closed connection may be lost.
  bool SomeLogIsCut() const {
    return std::any_of(incident_.streams.begin(), incident_.streams.end(),
                       [](const CallStream& stream) { return stream.source == CallSource::nccl_log && stream.cut; }) ||
           SomeLogEndsInSetUp();
  }

  // A communicator was begun and never completed, while others' stacks are long past it: what came later is not there.
  bool SomeLogEndsInSetUp() const {
    std::map<Rank, int> open;
    for (const Event& event : incident_.events) {
      if (event.kind == EventKind::init_started) ++open[event.rank];
      if (event.kind == EventKind::init_completed) --open[event.rank];
    }
    return std::any_of(open.begin(), open.end(), [](const auto& one) { return one.first.known() && one.second > 0; });
  }

  // Where one file of a rank was cut, others may have been, too.
  bool HasCutFile(Rank rank) const {
    return std::any_of(incident_.streams.begin(), incident_.streams.end(),
                       [&](const CallStream& stream) { return stream.rank == rank && stream.cut; });
  }

  // What its stack says against a log that may have been cut.
  bool ShowsWhereItIs(const StackReading& own) const {
    if (own.certain && own.place == StackReading::Place::host) return true;
    return !HasCutFile(own.rank) && StandsApart(own);
  }

  // Its stack is at another place than those of all others: it has not come to where they are. One in the very line in
  // which others wait has come, whatever its log says.
  bool StandsApart(const StackReading& own) const {
    if (own.place == StackReading::Place::communication) return false;
    bool compared = false;
    for (const auto& [other, theirs] : stacks_) {
      if (other == own.rank || theirs->place == StackReading::Place::unknown) continue;
      if (theirs->innermost_user == own.innermost_user && theirs->innermost == own.innermost) return false;
      compared = true;
    }
    return compared && own.whole;
  }

  // The host called NCCL for the operation and has not come back: its kernel was never launched.
  const InFlight* HostInside(Rank rank, const WaitRoot& root) const {
    for (const InFlight& flight : incident_.in_flight) {
      if (flight.rank != rank || !root.call || flight.group != root.group || flight.seq != root.call->seq) continue;
      if (IsPointToPoint(flight.kind) != root.call->has(kPointToPoint)) continue;
      const bool inside = flight.host == HostStage::in_group || flight.host == HostStage::in_group_end ||
                          flight.host == HostStage::in_launch;
      if (inside) return &flight;
    }
    return nullptr;
  }

  // The calls themselves differ: a rank that ended in order with one too few did nothing else wrong.
  bool Diverged(const WaitRoot& root) const {
    const SourceAnalysis* source = root.stream ? analyses_.Of(root.stream->source) : nullptr;
    return source && (!source->divergences.empty() || !source->differences.empty());
  }

  // NCCL connects a group when it first needs to, inside the first call, and waits there for the other members: who is
  // in there says nothing about who is missing.
  bool IsConnecting(Rank rank, const WaitRoot& root) const {
    if (root.kind != RootKind::gpu_not_started) return false;
    const InFlight* inside = HostInside(rank, root);
    if (!inside || inside->stream >= incident_.streams.size()) return false;
    const CallStream& stream = incident_.streams[inside->stream];
    return inside->call < stream.calls.size() && IsFirstOfItsShape(stream, stream.calls[inside->call]);
  }

  // It left no flight record although its peers did: which kind of silence is it? One kind of evidence alone cannot
  // tell a dead process from a stopped one.
  StandstillKind ReadSilence(const RankLife& life, Standstill* still) const {
    if (IsOnlySilentRank(life.rank)) return StandstillKind::frozen;
    if (life.fell_silent) {
      still->closing = closing_;
      return StandstillKind::dead;
    }
    const bool peers_dumped = analyses_.life.records >= 2 && !life.has_record && !life.has_stub_record;
    if (!peers_dumped) return StandstillKind::unclear;
    const bool has_log = life.has_nccl_log || life.has_output;
    if (closing_ && has_log && ClosedFirst(life.rank)) {
      still->closing = closing_;
      return StandstillKind::dead;
    }
    const bool peers_have_stacks = analyses_.life.stacks >= 1 && !life.has_stack;
    if (SpokeSinceOthersWait(life, *still)) return StandstillKind::unclear;
    // Only when everybody's log is here can it be said that nobody saw a connection close.
    const bool all_logs = std::all_of(analyses_.life.ranks.begin(), analyses_.life.ranks.end(),
                                      [](const auto& one) { return one.second.has_nccl_log || one.second.has_output; });
    if (peers_have_stacks && has_log && all_logs && !closing_ && !life.asked_to_dump && !SomeLogIsCut())
      return StandstillKind::frozen;
    return StandstillKind::unclear;
  }

  // A GPU stands still only if its process went on living for a while: one whose heart stopped when it had just issued
  // the operation died or froze. True where nothing beats.
  bool LivedOn(Rank rank, const WaitRoot& root) const {
    for (const Pulse& pulse : incident_.pulses) {
      if (pulse.rank != rank || pulse.interval_ns <= 0 || pulse.last_beat_wall_ns == kNoTime) continue;
      if (!root.call || root.call->enter_wall_ns == kNoTime) continue;
      if (pulse.last_beat_wall_ns < root.call->enter_wall_ns + incident_.patience.lived_on_ns) return false;
    }
    return true;
  }

  // It said something when its peers had been waiting for a while already: it runs.
  bool SpokeSinceOthersWait(const RankLife& life, const Standstill& still) const {
    int64_t since = still.root && still.root->call ? still.root->call->enter_wall_ns : kNoTime;
    // A watchdog says how long it has waited (value2, in milliseconds).
    if (const Event* timeout = analyses_.outcome.first_timeout; timeout && timeout->wall_ns != kNoTime)
      since = timeout->wall_ns - std::clamp<int64_t>(timeout->value2, 0, INT32_MAX) * 1'000'000;
    return since != kNoTime && life.last_wall_ns != kNoTime &&
           life.last_wall_ns > since + incident_.patience.stack_margin_ns;
  }

  // All others printed a stack, and their logs, which would tell of a closed connection, do not; of this rank there are
  // files, but nothing in them was written since.
  bool IsOnlySilentRank(Rank rank) const {
    if (closing_ || SomeLogIsCut()) return false;
    if (!Lasts() && !(analyses_.outcome.may_hang() && OthersWait(rank))) return false;
    if (const RankLife* own = analyses_.life.Of(rank); own && SpokeSinceOthersWait(*own, {})) return false;
    for (const auto& [other, life] : analyses_.life.ranks) {
      if (other == rank ? life.has_voice() || !life.has_nccl_log : !life.has_stack || !life.has_nccl_log) return false;
    }
    return analyses_.life.ranks.size() >= 2;
  }

  // Nobody's calls are recorded, but somebody who looked saw the process stopped or gone, while others wait by their
  // stacks.
  void FindBySight(StandstillView& view) const {
    if (!analyses_.outcome.hangs()) return;
    const bool others_wait =
        std::any_of(stacks_.begin(), stacks_.end(), [](const auto& one) { return WaitsInAStandstill(*one.second); });
    if (!others_wait) return;
    for (const Silence& silence : analyses_.silences) {
      const RankLife* life = analyses_.life.Of(silence.rank);
      if (!silence.sight || (!silence.frozen() && !silence.dead()) || (life && IsExplained(*life))) continue;
      Standstill& still = view.ranks.emplace_back();
      still.rank = silence.rank;
      still.kind = silence.dead() ? StandstillKind::dead : StandstillKind::frozen;
      still.silence = &silence;
    }
  }

  // Everybody issued the same, but one rank fell silent in the middle of it: its transfers stand still.
  void FindBySilence(StandstillView& view) const {
    if (!analyses_.outcome.hangs()) return;
    for (const SourceAnalysis& source : analyses_.sources)
      if (!source.waits.cycles.empty() || !source.differences.empty()) return;
    for (const auto& [rank, life] : analyses_.life.ranks)
      if (IsOnlySilentRank(rank)) view.ranks.push_back({.rank = rank, .kind = StandstillKind::frozen});
  }

  // The rank itself reports no lost peer: it is the one that was lost.
  bool ClosedFirst(Rank rank) const {
    const RankLife* life = analyses_.life.Of(rank);
    return life && !life->lost_peer && !life->asked_to_dump && !life->shared_gpu_error;
  }

  // A rank on record that waits in nothing and has not ended: it may be what a rank without files waits for.
  bool SomebodyIdles() const {
    return std::any_of(incident_.streams.begin(), incident_.streams.end(), [&](const CallStream& stream) {
      const RankLife* life = analyses_.life.Of(stream.rank);
      if (!life || !life->has_dump || life->finished || stream.calls.empty()) return false;
      return std::none_of(analyses_.sources.begin(), analyses_.sources.end(),
                          [&](const SourceAnalysis& source) { return source.waits.blocked_in.contains(stream.rank); });
    });
  }

  void DropAbsentCrowd(StandstillView& view) const {
    const auto world = static_cast<size_t>(std::max<int64_t>(incident_.world_size, 1));
    const auto is_absent = [](const Standstill& s) { return s.kind == StandstillKind::absent; };
    const auto absent = static_cast<size_t>(std::count_if(view.ranks.begin(), view.ranks.end(), is_absent));
    const bool others = absent < view.ranks.size();
    // Whoever was started leaves a log: where logs were collected, a rank without any was not collected.
    const bool logs = analyses_.life.nccl_logs + analyses_.life.outputs > 0;
    const bool keep = others ? !logs && absent * incident_.patience.nearly_all_in <= world &&
                                   world >= incident_.patience.nearly_all_in
                             : absent * incident_.patience.few_absent_in <= world && !SomebodyIdles();
    if (!keep) std::erase_if(view.ranks, is_absent);
  }

  // When most ranks lag behind a few, these went on after the others had given up, and nothing more tells why.
  void DropLaggingCrowd(StandstillView& view) const {
    const auto is_unclear = [](const Standstill& s) { return s.kind == StandstillKind::unclear; };
    if (!std::all_of(view.ranks.begin(), view.ranks.end(), is_unclear)) return;
    const auto absent = static_cast<size_t>(std::count_if(analyses_.life.ranks.begin(), analyses_.life.ranks.end(),
                                                          [](const auto& one) { return !one.second.any(); }));
    const bool crowd = view.ranks.size() > 1 && (view.ranks.size() + absent) * 2 >= analyses_.life.ranks.size();
    // Logs tell nothing of ends: beside a rank whose log is missing, one that is a few calls behind proves nothing.
    const auto by_log = [](const Standstill& s) {
      return s.root && s.root->stream && s.root->stream->source == CallSource::nccl_log;
    };
    const bool logs_with_gaps = analyses_.life.nccl_logs < static_cast<int>(analyses_.life.ranks.size()) &&
                                std::any_of(view.ranks.begin(), view.ranks.end(), by_log);
    const bool by_absence = std::all_of(view.ranks.begin(), view.ranks.end(),
                                        [](const Standstill& s) { return s.root && s.root->kind == RootKind::silent; });
    if (crowd || logs_with_gaps || (by_absence && SomebodyIdles())) view.ranks.clear();
  }

  static bool WaitsInAStandstill(const StackReading& reading) {
    return reading.place == StackReading::Place::communication || reading.place == StackReading::Place::device_wait ||
           (reading.in_library && reading.whole);
  }

  // A watchdog fired, or gloo, which has none, gave up waiting.
  bool TimeWasUp() const {
    const auto& ranks = analyses_.life.ranks;
    return analyses_.outcome.hangs() ||
           std::any_of(ranks.begin(), ranks.end(), [](const auto& one) { return one.second.gloo_timeout != nullptr; });
  }

  // Nobody's calls are recorded, but somebody's watchdog fired: the rank that is not waiting while all others are.
  void FindByStackAlone(StandstillView& view) const {
    if (!TimeWasUp() || stacks_.size() < 2) return;
    for (const SourceAnalysis& source : analyses_.sources)
      if (!source.waits.cycles.empty() || !source.differences.empty()) return;
    std::vector<const StackReading*> outside;
    size_t waiting = 0;
    for (const auto& [rank, reading] : stacks_) {
      if (reading->place == StackReading::Place::host && reading->whole) outside.push_back(reading);
      waiting += WaitsInAStandstill(*reading);
    }
    // Who waits in an operation by its own record was caught at another moment, and so were all stacks. The ends of
    // sends and receives get lost in boxes.
    const bool stale = std::any_of(outside.begin(), outside.end(), [&](const StackReading* reading) {
      return std::any_of(analyses_.sources.begin(), analyses_.sources.end(), [&](const SourceAnalysis& source) {
        const auto own = source.waits.blocked_in.find(reading->rank);
        return own != source.waits.blocked_in.end() &&
               (source.source != CallSource::black_box || !own->second->has(kPointToPoint));
      });
    });
    if (stale) return;
    if (outside.empty() || outside.size() * 2 > waiting) return;
    for (const StackReading* reading : outside) {
      Standstill still{.rank = reading->rank, .kind = StandstillKind::host, .stack = reading, .by_stack_alone = true};
      if (const RankLife* life = analyses_.life.Of(reading->rank)) still.alive = life->asked_to_dump;
      view.ranks.push_back(still);
    }
  }

  // The job hangs, and the kernel says that few of its processes are blocked inside it.
  void FindByKernel(StandstillView& view) const {
    if (!analyses_.outcome.hangs()) return;
    for (const SourceAnalysis& source : analyses_.sources)
      if (!source.waits.cycles.empty() || !source.differences.empty()) return;
    for (const auto& [rank, life] : analyses_.life.ranks)
      if (life.hung_task && !IsExplained(life) && !life.timeout)
        view.ranks.push_back({.rank = rank, .kind = StandstillKind::frozen, .hung_task = life.hung_task});
    if (view.ranks.size() * 2 > analyses_.life.ranks.size()) view.ranks.clear();
  }

  // No record shows it, but RAS or PyTorch's own report names who lags.
  void FindByReport(StandstillView& view) const {
    const auto world =
        std::max(static_cast<size_t>(std::max<int64_t>(incident_.world_size, 1)), analyses_.life.ranks.size());
    if (analyses_.told.empty() || analyses_.told.size() * 2 > world || !analyses_.outcome.may_hang()) return;
    for (const SourceAnalysis& source : analyses_.sources)
      if (!source.waits.cycles.empty() || !source.differences.empty()) return;
    // Numbers of sends and collectives are not one count: who waits in a send or receive of its own is behind nobody.
    const auto waits_itself = [&](Rank rank) {
      return std::any_of(analyses_.sources.begin(), analyses_.sources.end(),
                         [&](const SourceAnalysis& source) { return source.waits.blocked_in.contains(rank); });
    };
    for (const ToldLaggard& told : analyses_.told) {
      if (waits_itself(told.rank)) continue;
      Standstill still{.rank = told.rank, .told = &told};
      const auto stack = stacks_.find(told.rank);
      if (stack != stacks_.end() && stack->second->place == StackReading::Place::host &&
          !IsWhereOthersWait(told.rank)) {
        still.kind = StandstillKind::host;
        still.stack = stack->second;
      }
      if (const RankLife* life = analyses_.life.Of(told.rank); life && !still.stack) ReadEndOf(*life, &still);
      view.ranks.push_back(still);
      for (const Rank rank : told.waiters) view.waiters.push_back(rank);
    }
  }

  // What its own output says of the end of a rank that only others' reports name.
  void ReadEndOf(const RankLife& life, Standstill* still) const {
    still->alive = life.asked_to_dump;
    if (IsExplained(life))
      still->kind = StandstillKind::explained;
    else if (life.vanished || EndedFirst(life))
      still->kind = StandstillKind::dead;
    // A monitor that still spoke tells of a living process, not of where it is: it may wait in another operation.
  }

  void ChooseOperation(StandstillView& view) const {
    std::set<Rank> waiters, guilty;
    for (const Standstill& still : view.ranks) guilty.insert(still.rank);
    for (const SourceAnalysis& source : analyses_.sources)
      for (const BlockedOperation& operation : source.waits.operations)
        waiters.insert(operation.waiters.begin(), operation.waiters.end());
    for (const Standstill& still : view.ranks) {
      const WaitRoot* root = still.root;
      if (!root || !root->call) continue;
      const bool earlier =
          !view.operation || (root->call->enter_wall_ns != kNoTime && view.operation->enter_wall_ns != kNoTime &&
                              root->call->enter_wall_ns < view.operation->enter_wall_ns);
      if (!earlier) continue;
      view.operation = root->call;
      view.stream = root->stream;
      view.group = root->group;
    }
    ChooseOperationOfStoppedHearts(incident_, analyses_, view, waiters);
    waiters.insert(view.waiters.begin(), view.waiters.end());
    view.waiters.clear();
    for (const Rank rank : waiters)
      if (!guilty.contains(rank)) view.waiters.push_back(rank);
  }

  const Incident& incident_;
  const Analyses& analyses_;
  std::map<Rank, const StackReading*> stacks_;
  const Event* closing_ = nullptr;
};

}  // namespace

StandstillView FindStandstills(const Incident& incident, const Analyses& analyses) {
  return Finder(incident, analyses).Find();
}

}  // namespace tacet
