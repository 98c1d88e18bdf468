// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pace_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr size_t kMinSteps = 8;
// Peers and shifts that are tried in the rank's place; their mean is what is said.
constexpr size_t kMostPeers = 4;
constexpr std::array<size_t, 2> kShifts = {1, 2};
// A job of many ranks is replayed over its last steps only.
constexpr size_t kMostMembers = 2'000'000;
// A kernel that begins this soon behind another had been ready before.
constexpr double kFollows = 100'000;
// Starts that follow from others' issues and lengths are early by about as much.
constexpr double kEstimateError = 500'000;
// A host that waits for its GPU is never seen ahead of it, but for the error of the clocks, and now and then otherwise.
constexpr double kClockError = 50'000, kNearlyAlways = 0.9;
constexpr size_t kRanksThatTell = 16;
// A replay with the times as they were must take as long as the record.
constexpr double kLikeTheRecord = 0.1;
// A step this much longer than the typical one is a pause of the job: saving, evaluation, the profiler.
constexpr double kPause = 5;

constexpr size_t kUnnumbered = SIZE_MAX;

struct Op {
  uint32_t round = 0;
  int64_t step = 0;
  double enter = 0, end = 0, duration = 0;
  double start = 0;                  // of the kernel
  uint32_t before = kNoIndex;        // the round before it on the same group and rank
  double before_end = -1e300;        // when that had ended here
  double all_end = -1e300;           // when everything before it had ended here
  bool behind_all = false;           // it began after that, so it may depend on any of them
  double host_gap = 0, gpu_gap = 0;  // what the replay takes from the record
  size_t number = kUnnumbered;       // step by step: that of the step times the usual number, and its place
};

struct Place {
  bool host_waits = false;  // for its GPU, before it issues this
  double noise = 0;         // of how long after the end it issues this
  bool ready = false;       // the others' GPUs are ready for it before the operation before has ended
};

// From the median; outliers count, since those are what ends that follow from lengths have.
double MeanDistance(std::vector<double> values) {
  const double middle = Median(values);
  for (double& value : values) value = std::fabs(value - middle);
  return Mean(values);
}

class PaceReplay {
 public:
  PaceReplay(const std::vector<CollectiveRound>& rounds, Rank rank) : rank_(rank) { TakeRounds(rounds); }

  ReplayedGain Run() {
    ReplayedGain out;
    if (!ops_.count(rank_) || ops_.size() < 2 || !FindOrder()) return out;
    out.several_groups = !has_starts_ && HasSeveralGroups();
    FindEnds();
    NumberOperations();
    if (steps_ < kMinSteps || peers_.size() < 2 || !table_.count(rank_)) return out;
    FindSteps();
    if (good_.size() < kMinSteps) return out;
    FindPlaces();
    if (std::none_of(places_.begin(), places_.end(), [](const Place& one) { return one.host_waits; })) return out;
    FindGaps();
    out.steps = StepsOf(Play(nullptr));
    out.step_ns = Median(out.steps);
    const double recorded = RecordedStep();
    if (out.step_ns <= 0 || std::fabs(out.step_ns - recorded) > kLikeTheRecord * recorded) return out;
    for (const Place& one : places_)
      if (!has_starts_ && one.host_waits) out.noise_ns += one.noise;
    out.known = true;
    out.least = MeanGain(out.steps, false);
    out.most = MeanGain(out.steps, true);
    return out;
  }

 private:
  struct Substitute {
    Rank peer;
    size_t shift = 0;
    bool everywhere = false;
  };

  void TakeRounds(const std::vector<CollectiveRound>& rounds) {
    size_t members = 0;
    size_t first = rounds.size();
    while (first > 0 && members < kMostMembers) members += rounds[--first].members.size();
    const auto is_whole = [](const RoundMember& m) {
      return m.enter_ns != kNoTime && !m.enter_is_estimate && (m.duration_ns >= 0 || m.end_ns != kNoTime);
    };
    int64_t zero = kNoTime;
    for (size_t i = first; i < rounds.size(); ++i) {
      const CollectiveRound& round = rounds[i];
      if (round.step < 0 || round.members.size() < 2 || !round.synchronises()) continue;
      if (!std::all_of(round.members.begin(), round.members.end(), is_whole)) continue;
      const auto index = static_cast<uint32_t>(rounds_.size());
      rounds_.push_back(&round);
      for (const RoundMember& m : round.members) {
        if (zero == kNoTime) zero = m.enter_ns;
        Op op{.round = index, .step = round.step, .enter = static_cast<double>(m.enter_ns - zero)};
        has_starts_ &= m.start_ns != kNoTime;
        op.start = m.start_ns != kNoTime ? static_cast<double>(m.start_ns - zero) : op.enter;
        op.duration = static_cast<double>(m.duration_ns >= 0 ? m.duration_ns : m.end_ns - m.start_ns);
        op.end = op.start + op.duration;
        ops_[m.rank].push_back(op);
      }
    }
    for (auto& [rank, ops] : ops_)
      std::stable_sort(ops.begin(), ops.end(), [](const Op& a, const Op& b) { return a.enter < b.enter; });
  }

  bool HasSeveralGroups() const {
    return std::any_of(rounds_.begin(), rounds_.end(),
                       [&](const auto* one) { return one->group != rounds_[0]->group; });
  }

  // An order of the rounds that is every rank's own; false where ranks issued them in different orders.
  bool FindOrder() {
    std::vector<std::vector<std::pair<std::vector<Op>*, size_t>>> members(rounds_.size());
    for (auto& [rank, ops] : ops_)
      for (size_t i = 0; i < ops.size(); ++i) members[ops[i].round].emplace_back(&ops, i);
    std::vector<size_t> waiting(rounds_.size());  // members that have something else to do first
    std::vector<uint32_t> ready;
    for (uint32_t k = 0; k < rounds_.size(); ++k) {
      waiting[k] = static_cast<size_t>(
          std::count_if(members[k].begin(), members[k].end(), [](const auto& one) { return one.second > 0; }));
      if (waiting[k] == 0) ready.push_back(k);
    }
    while (!ready.empty()) {
      const uint32_t k = ready.back();
      ready.pop_back();
      order_.push_back(k);
      for (const auto& [ops, i] : members[k])
        if (i + 1 < ops->size() && --waiting[(*ops)[i + 1].round] == 0) ready.push_back((*ops)[i + 1].round);
    }
    if (order_.size() != rounds_.size()) return false;
    members_.resize(rounds_.size());
    for (uint32_t k = 0; k < rounds_.size(); ++k)
      for (const auto& [ops, i] : members[k]) members_[k].push_back(&(*ops)[i]);
    return true;
  }

  // When each operation ended, on each rank. Without starts: not before anybody's issue and length, nor before the one
  // of its kind before it, which has a stream, and its length.
  void FindEnds() {
    if (!has_starts_) {
      std::map<std::tuple<Rank, GroupIndex, OpKind>, double> last_of_kind;
      std::map<GroupIndex, double> last_of_group;
      for (const uint32_t k : order_) {
        const CollectiveRound& round = *rounds_[k];
        double end = last_of_group.try_emplace(round.group, -1e300).first->second;
        for (size_t m = 0; m < members_[k].size(); ++m) {
          const Op& op = *members_[k][m];
          double& own =
              last_of_kind.try_emplace({round.members[m].rank, round.group, round.kind}, -1e300).first->second;
          own = std::max(op.enter, own) + op.duration;
          end = std::max(end, own);
        }
        last_of_group[round.group] = end;
        for (Op* op : members_[k]) {
          op->end = end;
          op->start = end - op->duration;
        }
      }
    }
    for (auto& [rank, ops] : ops_) {
      std::map<GroupIndex, const Op*> before;
      double all_end = -1e300;
      for (Op& op : ops) {
        const Op*& earlier = before[rounds_[op.round]->group];
        if (earlier) op.before = earlier->round, op.before_end = earlier->end;
        op.all_end = all_end;
        all_end = std::max(all_end, op.end);
        earlier = &op;
      }
    }
  }

  // Numbers the operations of the rank's usual steps, and those of the others that are the same or lie between them.
  // The steps of the rounds are no help there: an early rank's first operation may lie in the step before.
  void NumberOperations() {
    NumberOwn(ops_.at(rank_));
    std::vector<size_t> of_round(rounds_.size(), kUnnumbered);
    std::vector<Rank> reached = {rank_};
    std::set<Rank> known = {rank_};
    for (size_t i = 0; i < reached.size(); ++i) {
      for (const Op& op : ops_.at(reached[i])) {
        if (op.number == kUnnumbered) continue;
        of_round[op.round] = op.number;
        for (const RoundMember& m : rounds_[op.round]->members)
          if (known.insert(m.rank).second) reached.push_back(m.rank);
      }
      if (i + 1 < reached.size()) NumberFrom(of_round, ops_.at(reached[i + 1]));
    }
    for (const Rank rank : reached) {
      std::vector<const Op*> table(steps_ * usual_, nullptr);
      size_t found = 0;
      for (const Op& op : ops_.at(rank)) {
        if (op.number >= table.size()) continue;
        found += table[op.number] == nullptr;
        table[op.number] = &op;
      }
      if (found * 2 < table.size()) continue;
      peers_.push_back(rank);
      table_.emplace(rank, std::move(table));
    }
  }

  // What most steps are made of is sought from the first such step on, one behind the other; where something else comes
  // between, again from where the next step begins.
  void NumberOwn(std::vector<Op>& own) {
    using Pattern = std::vector<std::tuple<GroupIndex, OpKind, int64_t>>;
    const auto read = [&](size_t begin, size_t count) {
      Pattern out;
      for (size_t i = begin; i < begin + count; ++i) {
        const CollectiveRound& round = *rounds_[own[i].round];
        out.emplace_back(round.group, round.kind, round.bytes);
      }
      return out;
    };
    const auto begins_step = [&](size_t i) { return i == 0 || own[i].step != own[i - 1].step; };
    std::map<Pattern, size_t> patterns;
    for (size_t i = 0, next = 0; i < own.size(); i = next) {
      for (next = i + 1; next < own.size() && !begins_step(next);) ++next;
      ++patterns[read(i, next - i)];
    }
    const auto usual = std::max_element(patterns.begin(), patterns.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (usual == patterns.end()) return;
    usual_ = usual->first.size();
    bool inside = false;
    for (size_t i = 0; i + usual_ <= own.size();) {
      if (!(inside || begins_step(i)) || read(i, usual_) != usual->first) {
        inside = false;
        ++i;
        continue;
      }
      for (size_t place = 0; place < usual_; ++place) own[i + place].number = steps_ * usual_ + place;
      ++steps_;
      i += usual_;
      inside = true;
    }
  }

  static void NumberFrom(const std::vector<size_t>& of_round, std::vector<Op>& ops) {
    size_t last = kUnnumbered, at = 0;
    for (size_t i = 0; i < ops.size(); ++i) {
      ops[i].number = of_round[ops[i].round];
      if (ops[i].number == kUnnumbered) continue;
      if (last != kUnnumbered && ops[i].number == last + (i - at))
        for (size_t k = at + 1; k < i; ++k) ops[k].number = last + (k - at);
      last = ops[i].number, at = i;
    }
  }

  // Steps of which every peer has all, and which were no pause.
  void FindSteps() {
    std::vector<double> lengths;
    const std::vector<const Op*>& own = table_.at(rank_);
    for (size_t n = 0; n + 1 < steps_; ++n) lengths.push_back(own[(n + 1) * usual_]->end - own[n * usual_]->end);
    const double longest = kPause * Median(lengths);
    for (size_t n = 1; n + 1 < steps_; ++n) {
      const bool whole = std::all_of(peers_.begin(), peers_.end(), [&](Rank rank) {
        const auto begin = table_.at(rank).begin() + static_cast<ptrdiff_t>(n * usual_);
        return std::all_of(begin, begin + static_cast<ptrdiff_t>(usual_), [](const Op* op) { return op != nullptr; });
      });
      if (!whole || lengths[n] >= longest || lengths[n - 1] >= longest) continue;
      turn_[n] = good_.size();
      good_.push_back(n);
    }
  }

  const Op* At(Rank rank, size_t turn, size_t place) const { return table_.at(rank)[good_[turn] * usual_ + place]; }

  void FindPlaces() {
    places_.resize(usual_);
    for (size_t place = 0; place < usual_; ++place) {
      double behind_issue = 0, behind_end = 0, scatter = 0, told_by = 0;
      size_t never_ahead = 0, all = 0, ready = 0, others = 0, told = 0;
      for (const Rank rank : peers_) {
        if (told++ >= kRanksThatTell && rank != rank_) continue;
        std::vector<double> since_issue, since_end;
        for (size_t n = 0; n < good_.size(); ++n) {
          const Op* op = At(rank, n, place);
          if (op->all_end <= -1e300) continue;
          const Op* before = op - 1;  // the rank's list is in order, and something was before
          since_issue.push_back(op->enter - before->enter);
          since_end.push_back(op->enter - op->all_end);
          never_ahead += since_end.back() >= -kClockError;
          ++all;
          if (rank == rank_) continue;
          ready += op->start < op->before_end + kFollows && op->enter < op->before_end;
          ++others;
        }
        behind_issue += RobustDeviation(since_issue);
        behind_end += RobustDeviation(since_end);
        scatter += MeanDistance(since_end);
        ++told_by;
      }
      if (told_by > 0) places_[place].noise = scatter / told_by;
      places_[place].host_waits = static_cast<double>(never_ahead) >= kNearlyAlways * static_cast<double>(all) &&
                                  all > 0 && behind_end <= behind_issue;
      places_[place].ready = ready * 2 > others;
    }
  }

  bool HostWaits(const Op& op) const { return op.number != kUnnumbered && places_[op.number % usual_].host_waits; }

  static double ReadyOf(const Op& op) { return std::max(op.enter, op.behind_all ? op.all_end : op.before_end); }

  void FindGaps() {
    for (auto& [rank, ops] : ops_)
      for (size_t i = 1; i < ops.size(); ++i) {
        Op& op = ops[i];
        op.host_gap = op.enter - (HostWaits(op) ? std::max(op.all_end, ops[i - 1].enter) : ops[i - 1].enter);
        op.behind_all = op.all_end <= op.start + (has_starts_ ? kFollows : kEstimateError);
        op.gpu_gap = std::max(0.0, op.start - ReadyOf(op));
      }
    transfer_.assign(rounds_.size(), 0);
    for (uint32_t k = 0; k < rounds_.size(); ++k) {
      double shortest = 1e300;
      for (const Op* op : members_[k]) shortest = std::min(shortest, op->end - (ReadyOf(*op) + op->gpu_gap));
      transfer_[k] = std::max(0.0, shortest);
    }
  }

  struct HostState {
    double enter = 0, all_end = -1e300;
    bool begun = false;
  };

  // When each round ends.
  std::vector<double> Play(const Substitute* substitute) const {
    std::vector<double> ends(rounds_.size(), 0);
    std::map<Rank, HostState> hosts;
    std::vector<HostState*> of_member;
    for (const uint32_t k : order_) {
      double arrival = -1e300;
      of_member.clear();
      for (size_t m = 0; m < members_[k].size(); ++m) {
        const Op& op = *members_[k][m];
        const Rank rank = rounds_[k]->members[m].rank;
        HostState& host = hosts[rank];
        double host_gap = op.host_gap, gpu_gap = op.gpu_gap;
        if (substitute && rank == rank_) Replace(op, *substitute, host_gap, gpu_gap);
        host.enter =
            !host.begun ? op.enter : (HostWaits(op) ? std::max(host.all_end, host.enter) : host.enter) + host_gap;
        host.begun = true;
        const double before = op.behind_all ? host.all_end : op.before == kNoIndex ? -1e300 : ends[op.before];
        arrival = std::max(arrival, std::max(host.enter, before) + gpu_gap);
        of_member.push_back(&host);
      }
      ends[k] = arrival + transfer_[k];
      for (HostState* host : of_member) host->all_end = std::max(host->all_end, ends[k]);
    }
    return ends;
  }

  void Replace(const Op& op, const Substitute& substitute, double& host_gap, double& gpu_gap) const {
    if (op.number == kUnnumbered) return;
    const auto turn = turn_.find(op.number / usual_);
    if (turn == turn_.end()) return;
    const size_t place = op.number % usual_;
    const Op& other = *At(substitute.peer, (turn->second + substitute.shift) % good_.size(), place);
    host_gap = other.host_gap;
    if (substitute.everywhere || !places_[place].ready) gpu_gap = other.gpu_gap;
  }

  // Of the good steps: from the end of this rank's first operation to that of the next step.
  std::vector<double> StepsOf(const std::vector<double>& ends) const {
    const std::vector<const Op*>& own = table_.at(rank_);
    std::vector<double> out;
    for (const size_t n : good_) out.push_back(ends[own[(n + 1) * usual_]->round] - ends[own[n * usual_]->round]);
    return out;
  }

  double RecordedStep() const {
    const std::vector<const Op*>& own = table_.at(rank_);
    std::vector<double> out;
    for (const size_t n : good_) out.push_back(own[(n + 1) * usual_]->end - own[n * usual_]->end);
    return Median(std::move(out));
  }

  std::vector<double> MeanGain(const std::vector<double>& usual, bool everywhere) const {
    std::vector<double> out(usual.size(), 0);
    std::vector<Rank> others;
    for (const Rank rank : peers_)
      if (rank != rank_) others.push_back(rank);
    const size_t stride = std::max<size_t>(1, others.size() / kMostPeers);
    double played = 0;
    for (size_t i = 0; i < others.size() && i / stride < kMostPeers; i += stride)
      for (const size_t shift : kShifts) {
        const Substitute substitute{others[i], shift, everywhere};
        const std::vector<double> steps = StepsOf(Play(&substitute));
        for (size_t n = 0; n < steps.size(); ++n) out[n] += usual[n] - steps[n];
        ++played;
      }
    for (double& gain : out) gain /= std::max(1.0, played);
    return out;
  }

  const Rank rank_;
  bool has_starts_ = true;
  std::vector<const CollectiveRound*> rounds_;
  std::map<Rank, std::vector<Op>> ops_;  // in the order in which they were issued
  std::vector<uint32_t> order_;
  std::vector<std::vector<Op*>> members_;  // by round, as the round has them
  std::vector<double> transfer_;
  size_t usual_ = 0;                              // operations of the rank in a step
  std::vector<Rank> peers_;                       // that have as many, the rank among them
  size_t steps_ = 0;                              // with so many
  std::vector<size_t> good_;                      // of these, in which the rank is replaced
  std::map<size_t, size_t> turn_;                 // where a step stands in that list
  std::map<Rank, std::vector<const Op*>> table_;  // of the peers, by number
  std::vector<Place> places_;
};

}  // namespace

ReplayedGain ReplayWithPeers(const std::vector<CollectiveRound>& rounds, Rank rank) {
  return PaceReplay(rounds, rank).Run();
}

}  // namespace tacet
