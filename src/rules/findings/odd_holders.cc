// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/odd_holders.h"

#include <algorithm>
#include <set>

namespace tacet {

std::vector<Rank> OddHolders(const Holders& holders) {
  std::vector<std::set<Rank>> sides;
  for (const auto& [value, events] : holders) {
    std::set<Rank>& side = sides.emplace_back();
    for (const Event* event : events)
      if (event->rank.known()) side.insert(event->rank);
  }
  std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  if (sides.size() < 2 || sides[0].size() == sides[1].size()) return {};
  std::set<Rank> odd;
  for (size_t i = 1; i < sides.size(); ++i)
    for (const Rank rank : sides[i])
      if (!sides[0].contains(rank)) odd.insert(rank);
  return {odd.begin(), odd.end()};
}

}  // namespace tacet
