// SPDX-License-Identifier: Apache-2.0
#include "live/server/job_runs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace tacet {
namespace {

// Processes that are tied together by communicators, directly or through others.
struct Circle {
  std::vector<size_t> boxes;
  std::set<uint64_t> comms;
  std::set<int32_t> ranks;
  size_t live = 0;
};

std::vector<Circle> FindCircles(const std::vector<const BoxState*>& boxes) {
  std::vector<size_t> parent(boxes.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::map<uint64_t, size_t> first;
  for (size_t i = 0; i < boxes.size(); ++i)
    for (const CommState& comm : boxes[i]->comms)
      if (comm.id != 0) parent[root(i)] = root(first.emplace(comm.id, i).first->second);
  std::map<size_t, Circle> by_root;
  for (size_t i = 0; i < boxes.size(); ++i) {
    Circle& circle = by_root[root(i)];
    circle.boxes.push_back(i);
    for (const CommState& comm : boxes[i]->comms) circle.comms.insert(comm.id);
    if (boxes[i]->rank >= 0) circle.ranks.insert(boxes[i]->rank);
    circle.live += boxes[i]->IsLive();
  }
  std::vector<Circle> circles;
  for (auto& [at, circle] : by_root) circles.push_back(std::move(circle));
  return circles;
}

}  // namespace

std::vector<size_t> FindRun(const std::vector<const BoxState*>& boxes, uint64_t comm) {
  std::vector<Circle> circles = FindCircles(boxes);
  const auto asked = [&](const Circle& circle) { return comm != 0 && circle.comms.contains(comm); };
  std::stable_sort(circles.begin(), circles.end(), [&](const Circle& a, const Circle& b) {
    return asked(a) != asked(b) ? asked(a) : a.live != b.live ? a.live > b.live : a.boxes.size() > b.boxes.size();
  });
  std::vector<size_t> run;
  std::set<int32_t> taken;
  for (const Circle& circle : circles) {
    const bool twice =
        std::any_of(circle.ranks.begin(), circle.ranks.end(), [&](int32_t r) { return taken.contains(r); });
    if (twice) continue;
    run.insert(run.end(), circle.boxes.begin(), circle.boxes.end());
    taken.insert(circle.ranks.begin(), circle.ranks.end());
  }
  std::sort(run.begin(), run.end());
  return run;
}

}  // namespace tacet
