// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pace_record.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/timing/pace.h"
#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

constexpr size_t kMinSteps = 8;
// Ends that follow from others' issues and lengths are early by about as much.
constexpr double kEndError = 500'000;
// A job of many ranks is replayed over its last steps only.
constexpr size_t kMostMembers = 2'000'000;

// A broadcast or a reduction to one rank: its members end when those have begun that the data passes.
bool IsRooted(OpKind kind) {
  return kind == OpKind::broadcast || kind == OpKind::reduce || kind == OpKind::gather || kind == OpKind::scatter;
}

void NumberFrom(const std::vector<size_t>& of_round, std::vector<PaceOp>& ops) {
  size_t last = kUnnumbered, at = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    ops[i].number = of_round[ops[i].round];
    if (ops[i].number == kUnnumbered) continue;
    if (last != kUnnumbered && ops[i].number == last + (i - at))
      for (size_t k = at + 1; k < i; ++k) ops[k].number = last + (k - at);
    last = ops[i].number, at = i;
  }
}

}  // namespace

PaceRecord::PaceRecord(const std::vector<CollectiveRound>& rounds, Rank rank) : rank_(rank) { TakeRounds(rounds); }

bool PaceRecord::Read() {
  if (!ops_.count(rank_) || ops_.size() < 2 || !FindOrder()) return false;
  FindEnds();
  NumberOperations();
  if (steps_ < kMinSteps || peers_.size() < 2 || !table_.count(rank_)) return false;
  FindSteps();
  return good_.size() >= kMinSteps;
}

void PaceRecord::TakeRounds(const std::vector<CollectiveRound>& rounds) {
  size_t members = 0;
  size_t first = rounds.size();
  while (first > 0 && members < kMostMembers) members += rounds[--first].members.size();
  const auto is_whole = [](const RoundMember& m) {
    return m.enter_ns != kNoTime && !m.enter_is_estimate && (m.duration_ns >= 0 || m.end_ns != kNoTime);
  };
  int64_t zero = kNoTime;
  for (size_t i = first; i < rounds.size(); ++i) {
    const CollectiveRound& round = rounds[i];
    if (round.step < 0 || round.members.size() < 2 || !(round.synchronises() || IsRooted(round.kind))) continue;
    if (!std::all_of(round.members.begin(), round.members.end(), is_whole)) continue;
    const auto index = static_cast<uint32_t>(rounds_.size());
    rounds_.push_back(&round);
    for (const RoundMember& m : round.members) {
      if (zero == kNoTime) zero = m.enter_ns;
      PaceOp op{.round = index, .step = round.step, .enter = static_cast<double>(m.enter_ns - zero)};
      has_starts_ &= m.start_ns != kNoTime;
      op.start = m.start_ns != kNoTime ? static_cast<double>(m.start_ns - zero) : op.enter;
      op.duration = static_cast<double>(m.duration_ns >= 0 ? m.duration_ns : m.end_ns - m.start_ns);
      op.end = op.start + op.duration;
      ops_[m.rank].push_back(op);
    }
  }
  for (auto& [rank, ops] : ops_)
    std::stable_sort(ops.begin(), ops.end(), [](const PaceOp& a, const PaceOp& b) { return a.enter < b.enter; });
  for (auto& [rank, ops] : ops_)
    for (PaceOp& op : ops) op.id = static_cast<uint32_t>(all_ops_++);
}

bool PaceRecord::HasSeveralGroups() const {
  return std::any_of(rounds_.begin(), rounds_.end(), [&](const auto* one) { return one->group != rounds_[0]->group; });
}

// An order of the rounds that is every rank's own; false where ranks issued them in different orders.
bool PaceRecord::FindOrder() {
  std::vector<std::vector<std::pair<std::vector<PaceOp>*, size_t>>> members(rounds_.size());
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
void PaceRecord::FindEnds() {
  if (!has_starts_) {
    std::map<std::tuple<Rank, GroupIndex, OpKind>, double> last_of_kind;
    std::map<GroupIndex, double> last_of_group;
    for (const uint32_t k : order_) {
      const CollectiveRound& round = *rounds_[k];
      double end = last_of_group.try_emplace(round.group, -1e300).first->second;
      for (size_t m = 0; m < members_[k].size(); ++m) {
        const PaceOp& op = *members_[k][m];
        double& own = last_of_kind.try_emplace({round.members[m].rank, round.group, round.kind}, -1e300).first->second;
        own = std::max(op.enter, own) + op.duration;
        end = std::max(end, own);
        if (!round.synchronises()) members_[k][m]->end = own, members_[k][m]->start = own - op.duration;
      }
      if (!round.synchronises()) continue;
      last_of_group[round.group] = end;
      for (PaceOp* op : members_[k]) {
        op->end = end;
        op->start = end - op->duration;
      }
    }
  }
  const bool guessed = !has_starts_ && HasSeveralGroups();
  for (auto& [rank, ops] : ops_) {
    std::map<GroupIndex, const PaceOp*> before;
    double all_end = -1e300;
    for (PaceOp& op : ops) {
      const PaceOp*& earlier = before[rounds_[op.round]->group];
      if (earlier) op.before = earlier->id, op.before_end = earlier->end;
      if (guessed) TakeLatestBefore(ops, op);
      op.all_end = all_end;
      all_end = std::max(all_end, op.end);
      earlier = &op;
    }
  }
}

// Where starts are not known an operation may wait for one of another group: for that which ended last before it.
void PaceRecord::TakeLatestBefore(const std::vector<PaceOp>& ops, PaceOp& op) {
  constexpr ptrdiff_t kInQueue = 16;
  const PaceOp* const first = &op - std::min<ptrdiff_t>(kInQueue, &op - ops.data());
  for (const PaceOp* other = first; other != &op; ++other)
    if (other->end > op.before_end && other->end <= op.start + kEndError)
      op.before = other->id, op.before_end = other->end;
}

// Numbers the operations of the rank's usual steps, and those of the others that are the same or lie between them.
// The steps of the rounds are no help there: an early rank's first operation may lie in the step before.
void PaceRecord::NumberOperations() {
  NumberOwn(ops_.at(rank_));
  std::vector<size_t> of_round(rounds_.size(), kUnnumbered);
  std::vector<Rank> reached = {rank_};
  std::set<Rank> known = {rank_};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const PaceOp& op : ops_.at(reached[i])) {
      if (op.number == kUnnumbered) continue;
      const bool first = of_round[op.round] == kUnnumbered;
      of_round[op.round] = op.number;
      if (!first) continue;  // another member has named all of them
      for (const RoundMember& m : rounds_[op.round]->members)
        if (known.insert(m.rank).second) reached.push_back(m.rank);
    }
    if (i + 1 < reached.size()) NumberFrom(of_round, ops_.at(reached[i + 1]));
  }
  for (const Rank rank : reached) {
    std::vector<const PaceOp*> table(steps_ * usual_, nullptr);
    size_t found = 0;
    for (const PaceOp& op : ops_.at(rank)) {
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
void PaceRecord::NumberOwn(std::vector<PaceOp>& own) {
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

// Steps of which every peer has all, and which were no pause.
void PaceRecord::FindSteps() {
  std::vector<double> lengths;
  const std::vector<const PaceOp*>& own = table_.at(rank_);
  for (size_t n = 0; n + 1 < steps_; ++n) lengths.push_back(own[(n + 1) * usual_]->end - own[n * usual_]->end);
  const double longest = kPauseOfJob * Median(lengths);
  for (size_t n = 1; n + 1 < steps_; ++n) {
    const bool whole = std::all_of(peers_.begin(), peers_.end(), [&](Rank rank) {
      const auto begin = table_.at(rank).begin() + static_cast<ptrdiff_t>(n * usual_);
      return std::all_of(begin, begin + static_cast<ptrdiff_t>(usual_), [](const PaceOp* op) { return op != nullptr; });
    });
    if (!whole || lengths[n] >= longest || lengths[n - 1] >= longest) continue;
    turn_[n] = good_.size();
    good_.push_back(n);
  }
}

}  // namespace tacet
