// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "render/prediction/prediction_render.h"

namespace tacet {
namespace {

void WriteGraph(const char* name, const NcclModelGraph& graph, JsonWriter& json) {
  if (graph.channels == 0) return;
  json.Key(name).BeginObject();
  json.Key("channels").Int(graph.channels);
  json.Key("within_gbps").Double(graph.bw_intra).Key("between_gbps").Double(graph.bw_inter);
  json.Key("type_within").String(Name(graph.type_intra)).Key("type_between").String(Name(graph.type_inter));
  json.Key("pattern").Int(graph.pattern).Key("same_channels").Bool(graph.same_channels);
  json.EndObject();
}

void WriteDecision(const PredictedPoint& point, const NcclCommunicator& c, JsonWriter& json) {
  const NcclDecision& decision = point.decision;
  json.BeginObject();
  json.Key("operation").String(Name(point.op)).Key("bytes").Int(point.bytes);
  if (const NcclCandidate* best = decision.best()) {
    json.Key("algorithm").String(Name(best->algorithm)).Key("protocol").String(Name(best->protocol));
    json.Key("time_us").Double(best->time_us).Key("bus_gbps").Double(decision.bus_bandwidth);
    json.Key("channels").Int(decision.channels).Key("threads").Int(decision.threads);
  } else {
    json.Key("algorithm").Null();
  }
  json.Key("candidates").BeginArray();
  for (const NcclCandidate& way : decision.candidates) {
    json.BeginObject();
    json.Key("algorithm").String(Name(way.algorithm)).Key("protocol").String(Name(way.protocol));
    if (way.time_us >= 0) {
      json.Key("time_us").Double(way.time_us).Key("latency_us").Double(way.latency_us);
      json.Key("algorithm_gbps").Double(way.bandwidth);
    } else {
      json.Key("forbidden").String(Explain(way.obstacle, c));
    }
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteLog(const CommunicatorPrediction& one, JsonWriter& json) {
  json.Key("log").BeginObject();
  json.Key("table_rows").Int(one.table.rows).Key("table_rows_equal").Int(one.table.rows_equal);
  json.Key("forbidden_cells").Int(one.table.forbidden_cells);
  json.Key("choices").Int(static_cast<int64_t>(one.choices.choices));
  json.Key("choices_equal").Int(static_cast<int64_t>(one.choices.equal));
  json.Key("choices_not_modelled").Int(static_cast<int64_t>(one.choices.not_modelled));
  json.Key("cells_different").BeginArray();
  for (const NcclCellDifference& cell : one.table.differences) {
    json.BeginObject().Key("operation").String(Name(cell.op)).Key("algorithm").String(Name(cell.algorithm));
    json.Key("protocol").String(Name(cell.protocol)).Key("switched_off").Bool(cell.switched_off);
    json.Key("printed").BeginArray().Double(cell.printed.latency_us).Double(cell.printed.bandwidth_gbps).EndArray();
    json.Key("predicted")
        .BeginArray()
        .Double(cell.predicted.latency_us)
        .Double(cell.predicted.bandwidth_gbps)
        .EndArray();
    json.EndObject();
  }
  json.EndArray().Key("choices_different").BeginArray();
  for (const NcclChoiceDifference& other : one.choices.differences) {
    json.BeginObject().Key("operation").String(Name(other.logged->op)).Key("bytes").Int(other.logged->bytes);
    json.Key("times").Int(static_cast<int64_t>(other.logged->times)).Key("grouped").Bool(other.logged->grouped);
    json.Key("logged").String(std::string(Name(other.logged->algorithm)) + " " +
                              std::string(Name(other.logged->protocol)));
    const NcclCandidate* best = other.predicted.best();
    json.Key("predicted");
    if (best)
      json.String(std::string(Name(best->algorithm)) + " " + std::string(Name(best->protocol)));
    else
      json.Null();
    json.EndObject();
  }
  json.EndArray().Key("expected_by_nccl").BeginArray();
  for (const ToldTime& told : one.told) {
    json.BeginObject().Key("operation").String(Name(told.op)).Key("bytes").Int(told.bytes).Key("way").String(told.how);
    json.Key("time_us").Double(told.time_us).Key("bus_gbps").Double(told.bus_gbps);
    json.Key("times").Int(static_cast<int64_t>(told.times)).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteTable(const CommunicatorPrediction& one, JsonWriter& json) {
  json.Key("table").BeginArray();
  for (int f = 0; f < kNcclTuned; ++f)
    for (int a = 0; a < NcclAlgorithmCount(one.communicator.release); ++a)
      for (int p = 0; p < kNcclProtocols; ++p) {
        const NcclCell& cell = one.costs.cells[f][a][p];
        if (cell.obstacle == NcclObstacle::not_made || cell.obstacle == NcclObstacle::older_release) continue;
        json.BeginObject().Key("operation").String(Name(kNcclTunedOps[f]));
        json.Key("algorithm").String(Name(static_cast<NcclAlgorithm>(a)));
        json.Key("protocol").String(Name(static_cast<NcclProtocol>(p)));
        json.Key("latency_us").Double(cell.latency_us).Key("algorithm_gbps").Double(cell.bandwidth);
        if (cell.obstacle != NcclObstacle::none) json.Key("forbidden").String(Explain(cell.obstacle, one.communicator));
        json.EndObject();
      }
  json.EndArray();
}

void WriteCommunicator(const CommunicatorPrediction& one, JsonWriter& json) {
  const NcclCommunicator& c = one.communicator;
  json.BeginObject().Key("label").String(one.label).Key("alike").Int(static_cast<int64_t>(one.alike));
  json.Key("release").String(c.release.Text()).Key("modelled").Bool(one.is_modelled);
  json.Key("ranks").Int(c.ranks).Key("nodes").Int(c.nodes).Key("channels").Int(c.channels);
  json.Key("compute_capability").Int(c.min_capability);
  json.Key("graphs").BeginObject();
  WriteGraph("ring", c.ring, json);
  WriteGraph("tree", c.tree, json);
  WriteGraph("nvls", c.nvls, json);
  WriteGraph("collnet_direct", c.collnet_direct, json);
  WriteGraph("collnet_chain", c.collnet_chain, json);
  json.EndObject();
  if (!one.costs.complaint.empty()) json.Key("complaint").String(one.costs.complaint);
  json.Key("assumptions").BeginArray();
  for (const std::string& text : one.assumptions) json.String(text);
  json.EndArray();
  WriteTable(one, json);
  json.Key("points").BeginArray();
  for (const PredictedPoint& point : one.points) WriteDecision(point, c, json);
  json.EndArray().Key("ranges").BeginArray();
  for (const WinnerRange& range : one.ranges) {
    json.BeginObject().Key("operation").String(Name(range.op)).Key("from_bytes").Int(range.first_bytes);
    json.Key("algorithm").String(Name(range.algorithm)).Key("protocol").String(Name(range.protocol)).EndObject();
  }
  json.EndArray();
  WriteLog(one, json);
  json.EndObject();
}

void WriteStep(const Prediction& p, JsonWriter& json) {
  const StepEstimate& step = p.step;
  json.Key("step").BeginObject();
  json.Key("parameters").Double(p.parameters.total()).Key("active_parameters").Double(p.parameters.active);
  json.Key("gpus").Int(p.layout.gpus()).Key("tokens").Double(step.tokens);
  json.Key("model_flops").Double(step.model_flops).Key("hardware_flops").Double(step.hardware_flops);
  json.Key("compute_ms").Double(step.compute_ms).Key("communication_ms").Double(step.communication_ms);
  json.Key("bubble").Double(step.bubble).Key("shortest_ms").Double(step.ideal_ms);
  if (step.step_ms > 0) {
    json.Key("step_ms").Double(step.step_ms).Key("mfu").Double(step.mfu).Key("hfu").Double(step.hfu);
    json.Key("gpu_hours_lost_per_day").Double(step.gpu_hours_lost_per_day);
    if (p.overlap >= 0) json.Key("overlap_efficiency").Double(p.overlap);
  }
  json.Key("memory_bytes").BeginObject().Key("parameters").Double(p.memory.parameters);
  json.Key("gradients").Double(p.memory.gradients).Key("optimizer").Double(p.memory.optimizer);
  json.Key("activations").Double(p.memory.activations).Key("total").Double(p.memory.total()).EndObject();
  json.Key("communication").BeginArray();
  for (const StepTraffic& one : p.traffic) {
    json.BeginObject().Key("what").String(one.what).Key("operation").String(Name(one.op)).Key("ranks").Int(one.ranks);
    json.Key("bytes").Double(one.bytes).Key("times").Double(one.times).Key("sent_bytes").Double(one.sent_bytes);
    json.Key("time_ms").Double(one.time_ms).Key("formula").String(one.formula).EndObject();
  }
  json.EndArray().Key("assumptions").BeginArray();
  for (const std::string& text : p.step_assumptions) json.String(text);
  json.EndArray().EndObject();
}

}  // namespace

std::string RenderPredictionJson(const Prediction& prediction) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.prediction.v1");
  json.Key("communicators").BeginArray();
  for (const CommunicatorPrediction& one : prediction.before) WriteCommunicator(one, json);
  json.EndArray();
  if (!prediction.after.empty()) {
    json.Key("what_if").BeginObject().Key("changes").BeginArray();
    for (const std::string& change : prediction.changes) json.String(change);
    json.EndArray().Key("communicators").BeginArray();
    for (const CommunicatorPrediction& one : prediction.after) WriteCommunicator(one, json);
    json.EndArray().EndObject();
  }
  if (!prediction.plain.empty()) {
    json.Key("plain").BeginObject().Key("link").String(prediction.plain_link).Key("rows").BeginArray();
    for (const Prediction::PlainRow& row : prediction.plain) {
      json.BeginObject().Key("operation").String(Name(row.op)).Key("bytes").Int(row.bytes);
      json.Key("algorithm").String(row.cost.algorithm).Key("time_us").Double(row.time_us);
      json.Key("bus_gbps").Double(row.bus_gbps).Key("formula").String(row.cost.formula).EndObject();
    }
    json.EndArray().EndObject();
  }
  if (prediction.has_step) WriteStep(prediction, json);
  json.EndObject();
  return json.Take() + "\n";
}

std::string RenderPredictionCsv(const Prediction& prediction) {
  std::string out = "change,communicator,ranks,nodes,operation,bytes,algorithm,protocol,time_us,chosen\n";
  const auto add = [&](const CommunicatorPrediction& one, size_t index, const char* change) {
    for (const PredictedPoint& point : one.points)
      for (size_t i = 0; i < point.decision.candidates.size(); ++i) {
        const NcclCandidate& way = point.decision.candidates[i];
        if (way.time_us < 0) continue;
        char text[256];
        std::snprintf(text, sizeof text, "%s,%zu,%d,%d,%s,%lld,%s,%s,%.3f,%d\n", change, index, one.communicator.ranks,
                      one.communicator.nodes, std::string(Name(point.op)).c_str(), static_cast<long long>(point.bytes),
                      std::string(Name(way.algorithm)).c_str(), std::string(Name(way.protocol)).c_str(), way.time_us,
                      static_cast<int>(i) == point.decision.winner ? 1 : 0);
        out += text;
      }
  };
  for (size_t i = 0; i < prediction.before.size(); ++i) add(prediction.before[i], i, "before");
  for (size_t i = 0; i < prediction.after.size(); ++i) add(prediction.after[i], i, "after");
  for (const Prediction::PlainRow& row : prediction.plain) {
    char text[256];
    std::snprintf(text, sizeof text, "plain,,,,%s,%lld,%s,,%.3f,\n", std::string(Name(row.op)).c_str(),
                  static_cast<long long>(row.bytes), std::string(row.cost.algorithm).c_str(), row.time_us);
    out += text;
  }
  return out;
}

}  // namespace tacet
