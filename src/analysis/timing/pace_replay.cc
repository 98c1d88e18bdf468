// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pace_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

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
// A replay with the times as they were must take as long as the record.
constexpr double kLikeTheRecord = 0.1;

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

  static double ReadyOf(const PaceOp& op) { return std::max(op.enter, op.behind_all ? op.all_end : op.before_end); }

  void FindGaps() {
    for (auto& [rank, ops] : ops_)
      for (size_t i = 1; i < ops.size(); ++i) {
        PaceOp& op = ops[i];
        op.host_gap = op.enter - (HostWaits(op) ? std::max(op.all_end, ops[i - 1].enter) : ops[i - 1].enter);
        op.behind_all = op.all_end <= op.start + (has_starts_ ? kFollows : kEstimateError);
        op.gpu_gap = std::max(0.0, op.start - ReadyOf(op));
      }
    transfer_.assign(rounds_.size(), 0);
    for (uint32_t k = 0; k < rounds_.size(); ++k) {
      double shortest = 1e300;
      for (const PaceOp* op : members_[k]) shortest = std::min(shortest, op->end - (ReadyOf(*op) + op->gpu_gap));
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
        const PaceOp& op = *members_[k][m];
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

  void Replace(const PaceOp& op, const Substitute& substitute, double& host_gap, double& gpu_gap) const {
    if (op.number == kUnnumbered) return;
    const auto turn = turn_.find(op.number / usual_);
    if (turn == turn_.end()) return;
    const size_t place = op.number % usual_;
    const PaceOp& other = *At(substitute.peer, (turn->second + substitute.shift) % good_.size(), place);
    host_gap = other.host_gap;
    if (substitute.everywhere || !places_[place].ready) gpu_gap = other.gpu_gap;
  }

  // Of the good steps: from the end of this rank's first operation to that of the next step.
  std::vector<double> StepsOf(const std::vector<double>& ends) const {
    const std::vector<const PaceOp*>& own = table_.at(rank_);
    std::vector<double> out;
    for (const size_t n : good_) out.push_back(ends[own[(n + 1) * usual_]->round] - ends[own[n * usual_]->round]);
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

  std::vector<double> transfer_;  // of each round
  std::vector<Place> places_;
};

}  // namespace

ReplayedGain ReplayWithPeers(const std::vector<CollectiveRound>& rounds, Rank rank) {
  return PaceReplay(rounds, rank).Run();
}

}  // namespace tacet
