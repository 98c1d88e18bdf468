// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/one_by_one.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace tacet {
namespace {

constexpr double kNever = -1e300;

}  // namespace

bool FitOneByOne(const std::vector<CollectiveRound>& rounds) {
  struct Span {
    double begin = 1e300, end = -1e300, sum = 0;  // times may be beyond all bounds
  };
  std::map<std::pair<GroupIndex, Rank>, Span> spans;
  for (const CollectiveRound& round : rounds) {
    for (const RoundMember& m : round.members) {
      const int64_t began = m.start_ns != kNoTime ? m.start_ns : m.enter_ns;
      if (began == kNoTime || m.duration_ns < 0 || m.enter_is_estimate) continue;
      const auto begin = static_cast<double>(began), length = static_cast<double>(m.duration_ns);
      Span& span = spans[{round.group, m.rank}];
      span.begin = std::min(span.begin, begin);
      span.end = std::max(span.end, begin + length);
      span.sum += length;
    }
  }
  return std::all_of(spans.begin(), spans.end(), [](const auto& one) {
    constexpr double kSlack = 1.1;
    return one.second.sum <= kSlack * (one.second.end - one.second.begin);
  });
}

std::vector<CollectiveRound> RunOneByOne(std::vector<CollectiveRound> rounds) {
  std::vector<std::pair<int64_t, CollectiveRound*>> in_order;
  for (CollectiveRound& round : rounds)
    if (round.synchronises()) in_order.emplace_back(FirstEnterOf(round), &round);
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<GroupIndex, double> ended;
  std::map<std::tuple<Rank, GroupIndex, OpKind>, double> ended_of_kind;  // operations of one kind share a stream
  for (const auto& [first, round] : in_order) {
    const double before = ended.try_emplace(round->group, kNever).first->second;
    double end = before;
    for (const RoundMember& m : round->members) {
      if (m.enter_ns == kNoTime || m.enter_is_estimate || m.start_ns != kNoTime || m.duration_ns < 0) continue;
      double& own = ended_of_kind.try_emplace({m.rank, round->group, round->kind}, kNever).first->second;
      own = std::max(static_cast<double>(m.enter_ns), own) + static_cast<double>(m.duration_ns);
      end = std::max(end, own);
    }
    if (before > kNever)
      for (RoundMember& m : round->members)
        if (m.start_ns == kNoTime && static_cast<double>(m.duration_ns) > end - before)
          m.duration_ns = std::llround(end - before);
    ended[round->group] = end;
  }
  return rounds;
}

}  // namespace tacet
