// SPDX-License-Identifier: Apache-2.0
#include "analysis/calls/strong_components.h"

#include <algorithm>
#include <unordered_map>

namespace tacet {
namespace {

struct NodeState {
  int index = -1, low = -1;
  bool on_stack = false;
};

}  // namespace

std::vector<std::vector<Rank>> StrongComponents(const std::map<Rank, std::vector<Rank>>& edges) {
  std::unordered_map<Rank, NodeState> state;
  std::vector<Rank> stack;
  std::vector<std::vector<Rank>> components;
  static const std::vector<Rank> kNone;
  const auto out = [&](Rank rank) -> const std::vector<Rank>& {
    const auto found = edges.find(rank);
    return found == edges.end() ? kNone : found->second;
  };
  int counter = 0;
  struct Visit {
    Rank rank;
    size_t next = 0;
  };
  for (const auto& [start, unused] : edges) {
    if (state[start].index >= 0) continue;
    std::vector<Visit> path{{start}};
    while (!path.empty()) {
      const Rank rank = path.back().rank;
      NodeState& node = state[rank];
      if (path.back().next == 0) {
        node = {counter, counter, true};
        ++counter;
        stack.push_back(rank);
      }
      bool descended = false;
      const auto& targets = out(rank);
      while (path.back().next < targets.size()) {
        const Rank target = targets[path.back().next++];
        NodeState& other = state[target];
        if (other.index < 0) {
          path.push_back({target});
          descended = true;
          break;
        }
        if (other.on_stack) state[rank].low = std::min(state[rank].low, other.index);
      }
      if (descended) continue;
      const NodeState done = state[rank];
      path.pop_back();
      if (!path.empty()) state[path.back().rank].low = std::min(state[path.back().rank].low, done.low);
      if (done.low != done.index) continue;
      std::vector<Rank> component;
      while (true) {
        const Rank member = stack.back();
        stack.pop_back();
        state[member].on_stack = false;
        component.push_back(member);
        if (member == rank) break;
      }
      if (component.size() > 1) {
        std::sort(component.begin(), component.end());
        components.push_back(std::move(component));
      }
    }
  }
  return components;
}

}  // namespace tacet
