// SPDX-License-Identifier: Apache-2.0
#include "rules/words/timeout_words.h"

#include <algorithm>
#include <set>
#include <vector>

#include "rules/words/caller_places.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "in all_reduce #7 (one element: most likely a barrier) after 30 min"
// A stack shows what it is.
std::string SizeWords(const TimedOutCall& call, bool no_stack) {
  if (no_stack && IsLikeABarrier(*call.first)) return " (one element: most likely a barrier)";
  if (call.group_size <= static_cast<int64_t>(call.ranks.size())) return "";
  return " (a group of " + std::to_string(call.group_size) + " ranks)";
}

std::string AfterWords(const Event& event) {
  const auto& timeout = event.As<WatchdogTimeout>();
  const int64_t ms = timeout.elapsed_ms > 0 ? timeout.elapsed_ms : timeout.timeout_ms;
  if (ms <= 0) return "";
  return " after " + DurationWords(ms * 1'000'000) +
         (IsFoundLate(event) ? " (limit: " + DurationWords(timeout.timeout_ms * 1'000'000) + ")" : "");
}

// HCCL tells whom a wait was for. One alone may be waiting for a neighbour that waits as well; the number is one of the
// group.
std::string AwaitedWords(const TimeoutCensus& census) {
  const TimedOutCall& call = census.calls.front();
  if (census.calls.size() > 1 || call.ranks.size() != 1 || !call.first->peer.known()) return "";
  return ", waiting for rank " + std::to_string(call.first->peer.value) + " of its group";
}

// Numbers of one group can be compared. Where the lines name none, they may be of several.
struct FirstAndLast {
  const TimedOutCall *lowest = nullptr, *highest = nullptr;  // null where nothing can be compared
  bool far_apart = false;
};

FirstAndLast CompareNumbers(const TimeoutCensus& census) {
  FirstAndLast out;
  const std::string& group = census.calls.front().group;
  for (const TimedOutCall& call : census.calls) {
    if (call.seq < 0 || call.op == OpKind::unknown) continue;
    if (call.group != group && !call.group.empty() && !group.empty()) return {};
    if (!out.lowest || call.seq < out.lowest->seq) out.lowest = &call;
    if (!out.highest || call.seq > out.highest->seq) out.highest = &call;
  }
  if (!out.lowest || out.lowest->seq == out.highest->seq) return {};
  // A collective holds everybody up: nobody gets thousands of calls ahead in one group.
  constexpr int64_t kMostAhead = 500;
  out.far_apart =
      out.highest->seq - out.lowest->seq > kMostAhead && (group.empty() || out.lowest->group != out.highest->group);
  return out;
}

// " (numbers of group 2)": each group counts its own; of the default one it need not be said.
std::string GroupOfNumbers(const TimedOutCall& call) {
  if (call.group.empty() || call.group == "0") return "";
  return " (numbers of group " + call.group + (call.name.empty() ? "" : ", " + call.name) + ")";
}

std::string BehindWords(const TimeoutCensus& census) {
  const auto [lowest, highest, far_apart] = CompareNumbers(census);
  if (!lowest) return "";
  if (far_apart) return " (numbers of different groups)";
  const std::string& group = census.calls.front().group;
  if (!census.completed.empty())
    return ", although " + RankWords(census.completed) + (census.completed.size() == 1 ? " has" : " have") +
           " completed #" + std::to_string(lowest->seq) + GroupOfNumbers(*lowest) +
           ". The ranks most likely do not issue the same collectives";
  const std::string behind = RankWords(lowest->ranks) + (lowest->ranks.size() == 1 ? " is" : " are") + " behind";
  return group.empty() || lowest->group != highest->group ? " (different groups, or " + behind + ")" : ", so " + behind;
}

// The same operation and number in groups that have no rank in common: tensor, data or pipeline groups side by side.
bool IsSideBySide(const TimeoutCensus& census) {
  const TimedOutCall& first = census.calls.front();
  std::set<std::string> groups;
  for (const TimedOutCall& call : census.calls)
    if (call.op != first.op || call.seq != first.seq || call.seq < 0 || call.group.empty() ||
        !groups.insert(call.group).second)
      return false;
  return census.calls.size() > 2 && first.op != OpKind::unknown;
}

// "ranks 0-3 timed out in recv #4413 after 10 min, each in a group of its own"
std::string SideBySideWords(const TimeoutCensus& census) {
  std::vector<Rank> ranks;
  bool single = true;
  for (const TimedOutCall& call : census.calls) {
    ranks.insert(ranks.end(), call.ranks.begin(), call.ranks.end());
    single = single && call.ranks.size() == 1;
  }
  std::sort(ranks.begin(), ranks.end());
  const TimedOutCall& first = census.calls.front();
  return RankWords(ranks) + " timed out in " + TimedOutCallWords(first) + AfterWords(*first.first) +
         (single ? ", each in a group of its own" : ", in " + std::to_string(census.calls.size()) + " groups");
}

}  // namespace

std::string TimedOutCallWords(const TimedOutCall& call) {
  if (call.op == OpKind::unknown) return "an operation that the log does not name";
  return std::string(Name(call.op)) + (call.seq >= 0 ? " #" + std::to_string(call.seq) : "");
}

// HCCL tells for which rank a wait was. Of several waits each may name its own neighbour in a ring.
Rank AwaitedRank(const TimeoutCensus& census) {
  return census.calls.size() == 1 && census.calls[0].ranks.size() == 1 ? census.calls[0].first->peer : Rank{};
}

bool HaveDiverged(const TimeoutCensus& census) {
  if (!census || census.completed.empty()) return false;
  const FirstAndLast numbers = CompareNumbers(census);
  return numbers.lowest && !numbers.far_apart;
}

std::string ReportedCallWords(const Event& report) {
  const std::string op = report.op == OpKind::unknown ? "" : std::string(Name(report.op));
  if (report.seq >= 0) return (op.empty() ? "collective" : op) + " #" + std::to_string(report.seq);
  const std::string& tensor = report.As<DesyncReport>().tensor;
  return tensor.empty() ? op : (op.empty() ? "the operation on " : op + " of ") + tensor;
}

std::string GroupInWords(const TimeoutCensus& census) {
  const TimedOutCall& call = census.calls.front();
  Group group;
  group.name = call.group;
  group.description = call.name;
  return group.Label();
}

std::string TimeoutWords(const Incident& incident, const TimeoutCensus& census) {
  constexpr size_t kMostCalls = 3, kMostUnheard = 3;
  const TimedOutCall& common = census.calls.front();
  if (IsSideBySide(census)) return SideBySideWords(census);
  const CallerPlaces places = FindCallerPlaces(incident, common);
  std::string words = RankWords(common.ranks) + " timed out" +
                      (common.op == OpKind::unknown ? "" : " in " + TimedOutCallWords(common)) +
                      SizeWords(common, places.empty()) + AfterWords(*common.first) + AwaitedWords(census) +
                      CallerPlaceWords(places);
  std::vector<Rank> more;
  for (size_t i = 1; i < census.calls.size(); ++i) {
    const TimedOutCall& call = census.calls[i];
    if (i < kMostCalls)
      words += ", " + RankWords(call.ranks) + " in " + TimedOutCallWords(call) +
               (call.group != common.group && !call.group.empty() && !common.group.empty() ? " of another group" : "");
    else
      more.insert(more.end(), call.ranks.begin(), call.ranks.end());
  }
  if (!more.empty())
    words += ", " + std::to_string(more.size()) + (more.size() == 1 ? " more rank" : " more ranks") + " in other calls";
  words += BehindWords(census);
  if (const Rank peer = AwaitedRank(census); peer.known() && AwaitedWords(census).empty())
    words += ", waiting for " + RankWords({peer});
  // Where many are missing, their output was not collected.
  const auto& unheard = census.unheard;
  if (!census.bar_ranks.empty()) {
    const bool one = census.bar_ranks.size() == 1;
    return words + "; the progress " + (one ? "bar" : "bars") + " of " + RankWords(census.bar_ranks) +
           (one ? " still runs ('" : " still run ('") + census.bar + "'): the others wait for " + (one ? "it" : "them");
  }
  if (!census.bar.empty())
    return words + "; a progress bar in the same output is still advancing ('" + census.bar + "'): " +
           (unheard.size() == 1 ? "most likely it is " + RankWords(unheard) + "'s, which has no other line here"
                                : "the rank that draws it, most likely rank 0, is waited for");
  if (!unheard.empty() && unheard.size() <= kMostUnheard && unheard.size() < common.ranks.size() &&
      census.nameless.empty())
    words += "; no line is from " + RankWords(unheard);
  const auto& printing = census.printing;
  if (unheard.empty() && !printing.empty() && printing.size() <= kMostUnheard && printing.size() < common.ranks.size())
    words += "; " + RankWords(printing) +
             (printing.size() == 1 ? " prints output and reports" : " print output and report") + " no timeout";
  return words;
}

}  // namespace tacet
