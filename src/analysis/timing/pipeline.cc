// SPDX-License-Identifier: Apache-2.0
#include "analysis/timing/pipeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/timing/statistics.h"
#include "analysis/timing/time_budget.h"

namespace tacet {
namespace {

// Messages of a step between two ranks, by direction, in the order of the sender's host.
struct Links {
  std::map<std::pair<Rank, Rank>, double> per_step;  // sender, receiver -> messages a step
  std::map<Rank, std::set<Rank>> neighbours;
  std::map<Rank, std::vector<std::pair<int64_t, bool>>> order;  // rank -> (enter, is a send) in one whole step
  std::map<Rank, std::vector<std::tuple<int64_t, bool, Rank>>> peers;
};

Links Gather(const std::vector<CollectiveRound>& rounds) {
  Links links;
  std::map<std::pair<Rank, Rank>, std::map<int64_t, size_t>> counts;
  std::set<int64_t> steps;
  for (const CollectiveRound& round : rounds) {
    if (round.kind != OpKind::send || round.members.size() != 2) continue;
    ++counts[{round.members[0].rank, round.members[1].rank}][round.step];
    steps.insert(round.step);
  }
  for (const auto& [pair, by_step] : counts) {
    std::vector<double> values;
    for (const auto& [step, count] : by_step) values.push_back(static_cast<double>(count));
    links.per_step[pair] = Median(std::move(values));
    links.neighbours[pair.first].insert(pair.second);
    links.neighbours[pair.second].insert(pair.first);
  }
  if (steps.empty()) return links;
  // The order of one step in the middle of the recording.
  const int64_t chosen = *std::next(steps.begin(), static_cast<ptrdiff_t>(steps.size() / 2));
  for (const CollectiveRound& round : rounds) {
    if (round.kind != OpKind::send || round.members.size() != 2 || round.step != chosen) continue;
    const RoundMember &from = round.members[0], &to = round.members[1];
    links.peers[from.rank].emplace_back(from.enter_ns, true, to.rank);
    links.peers[to.rank].emplace_back(to.enter_ns, false, from.rank);
  }
  for (auto& [rank, list] : links.peers) std::sort(list.begin(), list.end());
  return links;
}

// Ranks from the first stage on: the first is the one whose first operation of a step is a send, the next the one it
// sends to. Empty when the ranks form no chain.
std::vector<Rank> OrderChain(const Links& links, const std::set<Rank>& component) {
  std::vector<Rank> firsts;
  for (const Rank rank : component) {
    const auto list = links.peers.find(rank);
    if (list != links.peers.end() && !list->second.empty() && std::get<1>(list->second.front())) firsts.push_back(rank);
  }
  if (firsts.size() != 1) return {};
  std::vector<Rank> chain = {firsts[0]};
  std::set<Rank> seen = {firsts[0]};
  while (chain.size() < component.size()) {
    // The first message that goes on to a rank not yet in the chain.
    Rank next;
    for (const auto& [enter, is_send, peer] : links.peers.at(chain.back()))
      if (is_send && !seen.count(peer)) {
        next = peer;
        break;
      }
    if (!next.known()) return {};
    chain.push_back(next);
    seen.insert(next);
  }
  return chain;
}

std::vector<std::set<Rank>> Components(const Links& links) {
  std::vector<std::set<Rank>> out;
  std::set<Rank> seen;
  for (const auto& [start, unused] : links.neighbours) {
    if (seen.count(start)) continue;
    std::set<Rank>& component = out.emplace_back();
    std::vector<Rank> open = {start};
    while (!open.empty()) {
      const Rank rank = open.back();
      open.pop_back();
      if (!component.insert(rank).second) continue;
      seen.insert(rank);
      for (const Rank next : links.neighbours.at(rank)) open.push_back(next);
    }
  }
  return out;
}

double MessagesPerStep(const Links& links, Rank from, Rank to) {
  const auto found = links.per_step.find({from, to});
  return found == links.per_step.end() ? 0 : found->second;
}

void SetSchedule(const Links& links, const std::vector<Rank>& chain, PipelineReport& out) {
  const double main = MessagesPerStep(links, chain[0], chain[1]);
  const double wrap = chain.size() > 2 ? MessagesPerStep(links, chain.back(), chain[0]) : 0;
  out.microbatches = static_cast<int32_t>(std::lround(main - wrap));
  if (out.microbatches <= 0) return;
  out.chunks = std::max<int32_t>(1, static_cast<int32_t>(std::lround(main / out.microbatches)));
  // How many microbatches the first stage sends on before it asks for the first gradient.
  int32_t before = 0;
  for (const auto& [enter, is_send, peer] : links.peers.at(chain[0])) {
    if (peer != chain[1]) continue;
    if (!is_send) break;
    ++before;
  }
  if (out.chunks > 1)
    out.schedule = PipelineSchedule::interleaved;
  else if (before >= out.microbatches)
    out.schedule = PipelineSchedule::gpipe;
  else
    out.schedule = PipelineSchedule::one_forward_one_backward;
}

void MeasureStages(const std::vector<std::vector<Rank>>& chains, std::span<const Timeline> timelines,
                   PipelineReport& out) {
  std::map<Rank, const Timeline*> by_rank;
  for (const Timeline& timeline : timelines) by_rank[timeline.rank] = &timeline;
  std::vector<double> lengths;
  double waiting = 0, idle = 0, length = 0;
  for (int32_t s = 0; s < out.stages; ++s) {
    PipelineStage stage;
    stage.stage = s;
    int64_t steps = 0;
    TimeBudget sum;
    for (const auto& chain : chains) {
      stage.ranks.push_back(chain[static_cast<size_t>(s)]);
      const auto found = by_rank.find(chain[static_cast<size_t>(s)]);
      if (found == by_rank.end()) continue;
      const RankBudget budget = MeasureTimeBudget(*found->second);
      sum += budget.total;
      steps += static_cast<int64_t>(budget.steps.size());
      for (const StepBudget& step : budget.steps) lengths.push_back(static_cast<double>(step.budget.total_ns()));
    }
    waiting += static_cast<double>(sum.exposed_ns);
    idle += static_cast<double>(sum.idle_ns());
    length += static_cast<double>(sum.total_ns());
    if (steps > 0) {
      stage.compute_ns = sum.compute_ns() / steps;
      stage.waiting_ns = sum.exposed_ns / steps;
      stage.idle_ns = sum.idle_ns() / steps;
    }
    out.by_stage.push_back(std::move(stage));
  }
  out.step_ns = std::llround(Median(std::move(lengths)));
  if (length <= 0) return;
  out.bubble = waiting / length;
  out.idle = idle / length;
}

void CompareStages(PipelineReport& out) {
  std::vector<double> compute;
  for (const PipelineStage& stage : out.by_stage) compute.push_back(static_cast<double>(stage.compute_ns));
  const auto most = std::max_element(compute.begin(), compute.end());
  if (most == compute.end() || *most <= 0) return;
  out.heaviest = static_cast<int32_t>(most - compute.begin());
  std::vector<double> others = compute;
  others.erase(others.begin() + out.heaviest);
  const double usual = Median(others);
  out.imbalance = usual > 0 ? *most / usual : 1;
  // Per microbatch a stage needs compute / m; the pipeline needs one pass through all stages and m - 1 times the
  // longest.
  const double m = std::max(1, out.microbatches), p = static_cast<double>(compute.size());
  const double total = Mean(compute) * p;
  const double now = total / m + (m - 1) * *most / m, equal = total / m + (m - 1) * total / p / m;
  out.balance_gain = now > 0 ? 1 - equal / now : 0;
}

}  // namespace

PipelineReport AnalysePipeline(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines) {
  PipelineReport out;
  const Links links = Gather(rounds);
  std::vector<std::vector<Rank>> chains;
  for (const auto& component : Components(links)) {
    std::vector<Rank> chain = OrderChain(links, component);
    if (chain.size() < 2 || (!chains.empty() && chain.size() != chains[0].size())) return out;
    chains.push_back(std::move(chain));
  }
  if (chains.empty()) return out;
  // Both directions are used: activations one way, gradients the other.
  if (MessagesPerStep(links, chains[0][1], chains[0][0]) <= 0) return out;
  out.found = true;
  out.stages = static_cast<int32_t>(chains[0].size());
  out.pipelines = chains.size();
  SetSchedule(links, chains[0], out);
  MeasureStages(chains, timelines, out);
  CompareStages(out);
  const double p = out.stages, m = std::max(1, out.microbatches);
  out.ideal_bubble = (p - 1) / (out.chunks * m + p - 1);
  return out;
}

}  // namespace tacet
