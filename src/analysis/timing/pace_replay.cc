// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pace_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "analysis/timing/pace_record.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Peers and shifts that are tried in the rank's place; their mean is what is said.
constexpr size_t kMostPeers = 4;
constexpr std::array<size_t, 2> kShifts = {1, 2};
// A kernel that begins this soon behind another had been ready before.
constexpr double kFollows = 100'000;
// Starts that follow from others' issues and lengths are early by about as much.
constexpr double kEstimateError = 500'000;
// A host that waits for its GPU is never seen ahead of it, but for the error of the clocks, and now and then otherwise.
constexpr double kClockError = 50'000, kNearlyAlways = 0.9;
constexpr size_t kRanksThatTell = 16;
// A host that takes so much longer than usual, and this many times as long, behind an operation that the rank held up,
// waited for its end: for room in its GPU's queue or memory, or in a communication that is not in the record.
constexpr double kLongGap = 1'000'000, kLonger = 1.5;
// Less in common than this is chance, or comes of waiting for each other.
constexpr double kSurelyAlike = 0.6;
// A replay with the times as they were must take as long as the record.
constexpr double kLikeTheRecord = 0.1;
constexpr double kNeverSeen = std::numeric_limits<double>::quiet_NaN();

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

class PaceReplay : PaceRecord {
 public:
  using PaceRecord::PaceRecord;

  ReplayedGain Run() {
    ReplayedGain out;
    out.several_groups = !has_starts_ && HasSeveralGroups();
    if (!Read()) return out;
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

  void FindPlaces() {
    places_.resize(usual_);
    for (size_t place = 0; place < usual_; ++place) {
      double behind_issue = 0, behind_end = 0, scatter = 0, told_by = 0;
      size_t never_ahead = 0, all = 0, ready = 0, others = 0, told = 0;
      for (const Rank rank : peers_) {
        if (told++ >= kRanksThatTell && rank != rank_) continue;
        std::vector<double> since_issue, since_end;
        for (size_t n = 0; n < good_.size(); ++n) {
          const PaceOp* op = At(rank, n, place);
          if (op->all_end <= -1e300) continue;
          const PaceOp* before = op - 1;  // the rank's list is in order, and something was before
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

  bool HostWaits(const PaceOp& op) const { return op.number != kUnnumbered && places_[op.number % usual_].host_waits; }

  static double EndBefore(const PaceOp& op) { return op.behind_all ? op.all_end : op.before_end; }

  void FindGaps() {
    for (auto& [rank, ops] : ops_)
      for (size_t i = 1; i < ops.size(); ++i) {
        PaceOp& op = ops[i];
        op.host_waited = HostWaits(op);
        op.host_gap = op.enter - (op.host_waited ? std::max(op.all_end, ops[i - 1].enter) : ops[i - 1].enter);
        op.behind_all = op.all_end <= op.start + (has_starts_ ? kFollows : kEstimateError);
      }
    FindGpuTimes();
    last_.resize(rounds_.size());
    for (uint32_t k = 0; k < rounds_.size(); ++k) last_[k] = LastOf(k);
    FindUnusualWaits();
    tails_.resize(rounds_.size());
    for (uint32_t k = 0; k < rounds_.size(); ++k) tails_[k] = FindTail(k);
    common_ = CommonPart();
  }

  // What a GPU works before an operation begins with the end of the one before, and goes on while the host issues it:
  // the operation waits for both, and the record shows only that which came last. The other is as usual at this place.
  void FindGpuTimes() {
    std::vector<double> usual_work(usual_, kNeverSeen), usual_lag(usual_, 0);
    for (size_t place = 0; place < usual_; ++place) {
      std::vector<double> work, lag;
      for (const Rank rank : peers_)
        for (size_t n = 0; n < good_.size() && rank != rank_; ++n) {
          const PaceOp& op = *At(rank, n, place);
          (op.enter < EndBefore(op) ? work : lag).push_back(std::max(0.0, ArrivalOf(op) - ReadyOf(op)));
        }
      if (!work.empty()) usual_work[place] = Median(std::move(work));
      if (!lag.empty()) usual_lag[place] = Median(std::move(lag));
    }
    for (auto& [rank, ops] : ops_)
      for (PaceOp& op : ops) {
        const double since_end = ArrivalOf(op) - EndBefore(op), since_issue = ArrivalOf(op) - op.enter;
        const size_t place = op.number % usual_;
        op.after_end = since_end, op.after_issue = since_issue;
        if (op.enter < EndBefore(op)) {
          op.after_issue = std::min(since_issue, op.number == kUnnumbered ? 0 : usual_lag[place]);
        } else {
          const bool known = op.number != kUnnumbered && !std::isnan(usual_work[place]);
          op.after_end = std::min(since_end, known ? usual_work[place] : since_issue);
        }
      }
  }

  static double ReadyOf(const PaceOp& op) { return std::max(op.enter, EndBefore(op)); }
  static double ArrivalOf(const PaceOp& op) { return std::max(ReadyOf(op), op.start); }

  Rank LastOf(uint32_t k) const {
    const auto last = std::max_element(members_[k].begin(), members_[k].end(),
                                       [](const PaceOp* a, const PaceOp* b) { return ArrivalOf(*a) < ArrivalOf(*b); });
    return rounds_[k]->members[static_cast<size_t>(last - members_[k].begin())].rank;
  }

  // One of those that were still going on when the host had issued the one before was held up by the rank.
  bool HeldUp(const std::vector<PaceOp>& ops, size_t i) const {
    constexpr size_t kInQueue = 32;
    const size_t first = i > kInQueue ? i - kInQueue : 0;
    for (size_t k = i; k-- > first && ops[k].end > ops[i - 1].enter;)
      if (last_[ops[k].round] == rank_) return true;
    return false;
  }

  void FindUnusualWaits() {
    for (auto& [rank, ops] : ops_) {
      if (rank == rank_ || !table_.count(rank)) continue;
      std::vector<double> usual(usual_);
      for (size_t place = 0; place < usual_; ++place) {
        std::vector<double> gaps(good_.size());
        for (size_t n = 0; n < good_.size(); ++n) gaps[n] = At(rank, n, place)->host_gap;
        usual[place] = Median(std::move(gaps));
      }
      for (size_t i = 1; i < ops.size(); ++i) {
        PaceOp& op = ops[i];
        if (op.host_waited || op.number == kUnnumbered || op.enter < op.all_end - kClockError) continue;
        const double often = usual[op.number % usual_];
        if (op.host_gap < kLonger * often || op.host_gap < often + kLongGap || !HeldUp(ops, i)) continue;
        op.host_waited = true;
        op.host_gap = op.enter - std::max(op.all_end, ops[i - 1].enter);
      }
    }
  }

  // What is left of a round when those have arrived that a member waits for: of an operation that synchronizes all of
  // them; of a rooted one those that had arrived when it ended.
  struct Tail {
    double transfer = 0;
    std::vector<uint32_t> by_arrival;  // of a rooted round: its members, the first one first
    std::vector<size_t> waits_for;     // by member: so many of these
    std::vector<double> transfers;     // by member
  };

  Tail FindTail(uint32_t k) const {
    Tail out;
    const std::vector<PaceOp*>& members = members_[k];
    const auto arrival = [&](uint32_t m) { return ArrivalOf(*members[m]); };
    if (rounds_[k]->synchronises()) {
      double shortest = 1e300;
      for (uint32_t m = 0; m < members.size(); ++m) shortest = std::min(shortest, members[m]->end - arrival(m));
      out.transfer = std::max(0.0, shortest);
      return out;
    }
    out.by_arrival.resize(members.size());
    std::iota(out.by_arrival.begin(), out.by_arrival.end(), 0U);
    std::stable_sort(out.by_arrival.begin(), out.by_arrival.end(),
                     [&](uint32_t a, uint32_t b) { return arrival(a) < arrival(b); });
    for (uint32_t m = 0; m < members.size(); ++m) {
      const auto end = std::upper_bound(out.by_arrival.begin(), out.by_arrival.end(), members[m]->end,
                                        [&](double ns, uint32_t other) { return ns < arrival(other); });
      out.waits_for.push_back(static_cast<size_t>(end - out.by_arrival.begin()));
      const double last = end == out.by_arrival.begin() ? arrival(m) : std::max(arrival(m), arrival(*std::prev(end)));
      out.transfers.push_back(std::max(0.0, members[m]->end - last));
    }
    return out;
  }

  // `arrivals`: of the members; becomes their ends.
  void End(const Tail& tail, std::vector<double>& arrivals) const {
    if (tail.by_arrival.empty()) {
      const double end = *std::max_element(arrivals.begin(), arrivals.end()) + tail.transfer;
      std::fill(arrivals.begin(), arrivals.end(), end);
      return;
    }
    std::vector<double> latest;  // of so many that arrived first in the record
    latest.reserve(arrivals.size() + 1);
    latest.push_back(-1e300);
    for (const uint32_t m : tail.by_arrival) latest.push_back(std::max(latest.back(), arrivals[m]));
    for (size_t m = 0; m < arrivals.size(); ++m)
      arrivals[m] = std::max(arrivals[m], latest[tail.waits_for[m]]) + tail.transfers[m];
  }

  struct HostState {
    double enter = 0, all_end = -1e300;
    bool begun = false;
  };

  // When each operation ends, by id.
  std::vector<double> Play(const Substitute* substitute) const {
    std::vector<double> ends(all_ops_, 0), arrivals;
    std::map<Rank, HostState> hosts;
    std::vector<HostState*> of_member;
    for (const uint32_t k : order_) {
      arrivals.clear();
      of_member.clear();
      for (size_t m = 0; m < members_[k].size(); ++m) {
        const PaceOp& op = *members_[k][m];
        const Rank rank = rounds_[k]->members[m].rank;
        HostState& host = hosts[rank];
        Times times{op.host_gap, op.after_end, op.after_issue, op.host_waited};
        if (substitute && rank == rank_) Replace(op, *substitute, times);
        const double from = times.host_waits ? std::max(host.all_end, host.enter) : host.enter;
        host.enter = host.begun ? from + times.host_gap : op.enter;
        host.begun = true;
        const double before = op.behind_all ? host.all_end : op.before == kNoIndex ? -1e300 : ends[op.before];
        arrivals.push_back(std::max({host.enter, host.enter + times.after_issue, before + times.after_end}));
        of_member.push_back(&host);
      }
      End(tails_[k], arrivals);
      for (size_t m = 0; m < arrivals.size(); ++m) {
        ends[members_[k][m]->id] = arrivals[m];
        of_member[m]->all_end = std::max(of_member[m]->all_end, arrivals[m]);
      }
    }
    return ends;
  }

  struct Times {
    double host_gap, after_end, after_issue;
    bool host_waits;
  };

  void Replace(const PaceOp& op, const Substitute& substitute, Times& times) const {
    if (op.number == kUnnumbered) return;
    const auto turn = turn_.find(op.number / usual_);
    if (turn == turn_.end()) return;
    const size_t place = op.number % usual_;
    const size_t from = (turn->second + substitute.shift) % good_.size();
    const PaceOp& other = *At(substitute.peer, from, place);
    times.host_waits = other.host_waited;
    times.host_gap = Carry(other.host_gap, place, turn->second, from);
    if (substitute.everywhere || !places_[place].ready)
      times.after_end = other.after_end, times.after_issue = other.after_issue;
  }

  // A step that takes all hosts longer (a larger batch, a busy machine) takes the peer longer, too: of another step
  // comes only by how much it differed from the others there.
  double Carry(double value, size_t place, size_t to, size_t from) const {
    return std::max(std::min(0.0, value), value + common_[to * usual_ + place] - common_[from * usual_ + place]);
  }

  // By turn and place: the part of the others' host times that they have in common. Where each differs from step to
  // step by itself there is none; one other rank alone does not tell.
  std::vector<double> CommonPart() const {
    std::vector<Rank> others;
    for (const Rank rank : peers_)
      if (rank != rank_ && others.size() < kRanksThatTell) others.push_back(rank);
    std::vector<double> out(good_.size() * usual_, 0);
    const auto k = static_cast<double>(others.size());
    if (others.size() < 2) return out;
    for (size_t place = 0; place < usual_; ++place) {
      double own = 0;  // mean variance of a rank
      std::vector<double> means(good_.size(), 0), values(good_.size());
      for (const Rank rank : others) {
        for (size_t n = 0; n < good_.size(); ++n) values[n] = At(rank, n, place)->host_gap;
        const double low = Quantile(values, 0.1), high = Quantile(values, 0.9);  // one hiccup would decide
        for (size_t n = 0; n < good_.size(); ++n) {
          values[n] = std::clamp(values[n], low, high);
          means[n] += values[n] / k;
        }
        own += Variance(values) / k;
      }
      // The variance of a mean is 1/k of a rank's own where they have nothing in common, and all of it where they are
      // alike.
      double alike = own > 0 ? std::min(1.0, (Variance(means) / own - 1 / k) / (1 - 1 / k)) : 0;
      if (alike < kSurelyAlike) alike = 0;
      for (size_t n = 0; n < good_.size(); ++n) out[n * usual_ + place] = alike * means[n];
    }
    return out;
  }

  // Of the good steps: from the end of this rank's first operation to that of the next step.
  std::vector<double> StepsOf(const std::vector<double>& ends) const {
    const std::vector<const PaceOp*>& own = table_.at(rank_);
    std::vector<double> out;
    for (const size_t n : good_) out.push_back(ends[own[(n + 1) * usual_]->id] - ends[own[n * usual_]->id]);
    return out;
  }

  double RecordedStep() const {
    const std::vector<const PaceOp*>& own = table_.at(rank_);
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

  std::vector<Rank> last_;      // to arrive, of each round
  std::vector<Tail> tails_;     // of each round
  std::vector<double> common_;  // CommonPart
  std::vector<Place> places_;
};

}  // namespace

ReplayedGain ReplayWithPeers(const std::vector<CollectiveRound>& rounds, Rank rank) {
  return PaceReplay(rounds, rank).Run();
}

}  // namespace tacet
