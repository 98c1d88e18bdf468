// SPDX-License-Identifier: Apache-2.0
#include "predict/prediction.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

namespace tacet {
namespace {

constexpr int64_t kSmallest = 64, kLargest = int64_t{8} << 30;

std::string GraphKey(const NcclModelGraph& g) {
  return std::to_string(g.channels) + "," + std::to_string(g.bw_intra) + "," + std::to_string(g.bw_inter) + "," +
         std::to_string(static_cast<int>(g.type_intra)) + "," + std::to_string(static_cast<int>(g.type_inter)) + "," +
         std::to_string(g.pattern) + "," + std::to_string(g.same_channels) + ";";
}

// Communicators with this in common are predicted alike.
std::string KeyOf(const NcclGroupModel& model) {
  const NcclCommunicator& c = model.communicator;
  return c.release.Text() + "," + std::to_string(c.ranks) + "," + std::to_string(c.nodes) + "," +
         std::to_string(c.channels) + "," + std::to_string(c.min_capability) + "," +
         std::to_string(static_cast<int>(c.cpu)) + "," + std::to_string(model.is_modelled) + "," + c.settings.algo +
         "," + c.settings.proto + ";" + GraphKey(c.ring) + GraphKey(c.tree) + GraphKey(c.nvls) +
         GraphKey(c.collnet_direct) + GraphKey(c.collnet_chain);
}

void AddToldTimes(const Incident& incident, const NcclGroupModel& model, std::vector<ToldTime>& told) {
  constexpr size_t kMostTold = 10'000;
  for (const NcclLoggedChoice& choice : model.told_by->choices) {
    if (choice.time_us < 0 || told.size() >= kMostTold) continue;
    ToldTime one;
    one.op = choice.op;
    one.bytes = ChosenBytes(choice, model.communicator);
    one.how = choice.algorithm == NcclAlgorithm::unknown
                  ? std::string(incident.strings.Get(choice.kernel)) + " (symmetric)"
                  : std::string(Name(choice.algorithm)) + " " + std::string(Name(choice.protocol));
    one.time_us = choice.time_us;
    one.bus_gbps = BusBandwidth(choice.op, model.communicator.ranks, one.bytes, choice.time_us);
    one.times = choice.times;
    told.push_back(std::move(one));
  }
}

void Append(NcclTableCheck& to, NcclTableCheck from) {
  to.rows += from.rows;
  to.rows_equal += from.rows_equal;
  to.forbidden_cells += from.forbidden_cells;
  std::move(from.differences.begin(), from.differences.end(), std::back_inserter(to.differences));
}

void Append(NcclChoiceCheck& to, NcclChoiceCheck from) {
  to.choices += from.choices;
  to.equal += from.equal;
  to.not_modelled += from.not_modelled;
  std::move(from.differences.begin(), from.differences.end(), std::back_inserter(to.differences));
}

}  // namespace

void FillPoints(const PredictionRequest& request, CommunicatorPrediction& prediction) {
  const NcclCommunicator& c = prediction.communicator;
  for (const OpKind op : request.ops) {
    if (NcclTunedIndex(op) < 0) continue;
    for (const int64_t bytes : request.sizes)
      prediction.points.push_back({op, bytes, DecideNccl(c, prediction.costs, {op, bytes})});
    for (int64_t bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
      const NcclDecision decision = DecideNccl(c, prediction.costs, {op, bytes});
      const NcclCandidate* best = decision.best();
      if (!best) continue;
      std::vector<WinnerRange>& ranges = prediction.ranges;
      const bool same = !ranges.empty() && ranges.back().op == op && ranges.back().algorithm == best->algorithm &&
                        ranges.back().protocol == best->protocol;
      if (!same) ranges.push_back({op, bytes == kSmallest ? 0 : bytes, best->algorithm, best->protocol, 0});
      ranges.back().bus_gbps = decision.bus_bandwidth;
    }
  }
}

CommunicatorPrediction PredictCommunicator(const NcclCommunicator& communicator, std::string label,
                                           const PredictionRequest& request) {
  CommunicatorPrediction prediction;
  prediction.label = std::move(label);
  prediction.communicator = communicator;
  prediction.is_modelled = HasCostModel(communicator.release);
  prediction.of_hardware = true;
  prediction.costs = ComputeNcclCosts(communicator);
  FillPoints(request, prediction);
  return prediction;
}

std::vector<CommunicatorPrediction> PredictJob(const Incident& incident, const std::vector<NcclGroupModel>& models,
                                               const PredictionRequest& request) {
  std::vector<CommunicatorPrediction> all;
  std::map<std::string, size_t> seen;
  for (const NcclGroupModel& model : models) {
    const auto [place, is_new] = seen.try_emplace(KeyOf(model), all.size());
    if (is_new) {
      CommunicatorPrediction& one = all.emplace_back();
      one.label = model.label;
      one.communicator = model.communicator;
      one.costs = model.costs;
      one.is_modelled = model.is_modelled;
      one.assumptions = model.assumptions;
      if (model.is_modelled || !model.told_by->tables.empty()) FillPoints(request, one);
    } else {
      ++all[place->second].alike;
    }
    CommunicatorPrediction& one = all[place->second];
    if (!model.told_by->tables.empty() && model.is_modelled) {
      one.has_table = true;
      Append(one.table, CheckTable(model, model.told_by->tables.front()));
    }
    if (model.is_modelled) Append(one.choices, CheckChoices(model));
    AddToldTimes(incident, model, one.told);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.communicator.ranks > b.communicator.ranks; });
  return all;
}

}  // namespace tacet
