// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/earlier_attempts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

using Attempts = std::map<int64_t, std::vector<size_t>>;  // by number: its fragments

// 1 of "run/attempt_1"
std::optional<int64_t> NumberOf(std::string_view attempt) {
  const std::string_view digits = attempt.substr(attempt.rfind('_') + 1);
  int64_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

bool WroteSomething(const std::vector<Fragment>& fragments, const std::vector<size_t>& members) {
  return std::any_of(members.begin(), members.end(),
                     [&](size_t member) { return fragments[member].bytes.understood > 0; });
}

// "rank 2 had raised torch.OutOfMemoryError in attempt 0"; empty where nothing tells it. Of several the earliest.
std::string EndOf(const std::vector<Fragment>& fragments, const std::vector<size_t>& members, int64_t number) {
  const Event* first = nullptr;
  Rank rank;
  for (const size_t member : members)
    for (const Event& event : fragments[member].events) {
      if (event.kind != EventKind::exception || event.As<Raised>().type.empty() || event.Means(Meaning::consequence))
        continue;
      if (first && (event.wall_ns == kNoTime || first->wall_ns == kNoTime || event.wall_ns >= first->wall_ns)) continue;
      first = &event;
      rank = event.rank.known() ? event.rank : RankFromPath(fragments[member].path).value_or(Rank{});
    }
  if (!first) return "";
  return (rank.known() ? "rank " + std::to_string(rank.value) : std::string("a rank")) + " had raised " +
         first->As<Raised>().type + " in attempt " + std::to_string(number);
}

// Its file is still listed, and nothing of it counts.
void Empty(Fragment& fragment) {
  Fragment empty;
  empty.path = std::move(fragment.path);
  empty.format = std::move(fragment.format);
  empty.modified_wall_ns = fragment.modified_wall_ns;
  empty.bytes.total = empty.bytes.ignored = fragment.bytes.total;
  fragment = std::move(empty);
}

void Settle(std::vector<Fragment>& fragments, Attempts& attempts) {
  while (attempts.size() > 1 && !WroteSomething(fragments, attempts.rbegin()->second))
    attempts.erase(std::prev(attempts.end()));
  if (attempts.size() < 2) return;
  const auto last = std::prev(attempts.end()), before = std::prev(last);
  EarlierRun run;
  run.restarts = last->first;
  run.end = EndOf(fragments, before->second, before->first);
  const bool one = before == attempts.begin();
  std::string words = (one ? "attempt " + std::to_string(before->first) + " is"
                           : "the attempts before attempt " + std::to_string(last->first) + " are") +
                      " not used: torchrun restarted all workers after " + (one ? "it" : "each of them") +
                      (run.end.empty() ? "" : " (" + run.end + ")");
  for (auto one = attempts.begin(); one != last; ++one)
    for (const size_t member : one->second) Empty(fragments[member]);
  Fragment& first = fragments[attempts.begin()->second.front()];
  first.Note(DiagnosticSeverity::note, "earlier-attempt", std::move(words));
  fragments[last->second.front()].earlier_runs.push_back(std::move(run));
}

}  // namespace

void SetEarlierAttemptsAside(std::vector<Fragment>& fragments) {
  std::map<std::string, Attempts> runs;
  for (size_t i = 0; i < fragments.size(); ++i)
    if (const auto place = TorchrunPlaceOf(fragments[i].path))
      if (const auto number = NumberOf(place->attempt)) runs[std::string(place->run)][*number].push_back(i);
  for (auto& [run, attempts] : runs) Settle(fragments, attempts);
}

}  // namespace tacet
