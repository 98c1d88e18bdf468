// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "render/prediction/prediction_parts.h"
#include "render/prediction/prediction_render.h"
#include "render/render_words.h"

namespace tacet {
namespace {

std::string Decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string Way(NcclAlgorithm algorithm, NcclProtocol protocol) {
  return std::string(Name(algorithm)) + " " + std::string(Name(protocol));
}

void AddGraphs(const NcclCommunicator& c, TextPage& page) {
  const bool several = c.nodes > 1;
  std::vector<TextRow> rows = {{{"graph"},
                                {"channels"},
                                {several ? "bandwidth per channel in a node" : "bandwidth per channel"},
                                {several ? "between nodes" : ""},
                                {several ? "paths in a node/between" : "paths"}}};
  const auto add = [&](const char* name, const NcclModelGraph& graph) {
    if (graph.channels == 0) return;
    rows.push_back({{name},
                    {std::to_string(graph.channels)},
                    {SpeedWords(graph.bw_intra)},
                    {several ? SpeedWords(graph.bw_inter) : ""},
                    {std::string(Name(graph.type_intra)) + "/" + std::string(Name(graph.type_inter))}});
  };
  add("ring", c.ring);
  add("tree", c.tree);
  add("NVLS", c.nvls);
  add("CollNet direct", c.collnet_direct);
  add("CollNet chain", c.collnet_chain);
  if (rows.size() > 1) page.Table(rows, 2, false);
}

void AddCheck(const CommunicatorPrediction& one, TextPage& page) {
  if (one.has_table) {
    const NcclTableCheck& check = one.table;
    std::string text = std::to_string(check.rows_equal) + " of " + std::to_string(check.rows) +
                       " rows of the printed tuning table are reproduced";
    if (check.rows_equal < check.rows) text += " (where the two differ, trust the printed table)";
    if (check.forbidden_cells > 0)
      text += "; " + std::to_string(check.forbidden_cells) + (check.forbidden_cells == 1 ? " cell is" : " cells are") +
              " switched off by NCCL_ALGO or NCCL_PROTO";
    page.Paragraph("  ", text + ".", check.rows == check.rows_equal ? Ink::green : Ink::yellow);
    size_t shown = 0;
    for (const NcclCellDifference& cell : check.differences) {
      if (shown++ == 8) {
        page.Paragraph("    ", std::to_string(check.differences.size() - 8) + " more cells differ.");
        break;
      }
      page.Paragraph("    ", std::string(Name(cell.op)) + " " + Way(cell.algorithm, cell.protocol) + ": printed " +
                                 Decimal(cell.printed.latency_us) + " µs, " + Decimal(cell.printed.bandwidth_gbps) +
                                 " GB/s; predicted " + Decimal(cell.predicted.latency_us) + " µs, " +
                                 Decimal(cell.predicted.bandwidth_gbps) + " GB/s" +
                                 (cell.switched_off ? " (switched off by a setting that the log does not show)" : ""));
    }
  }
  const NcclChoiceCheck& choices = one.choices;
  if (choices.choices > 0)
    page.Paragraph("  ",
                   choices.choices == 1 ? std::string("The only logged choice is ") +
                                              (choices.equal == 1 ? "the predicted one." : "not the predicted one.")
                                        : std::to_string(choices.equal) + " of " + std::to_string(choices.choices) +
                                              " logged choices are the predicted ones.",
                   choices.equal == choices.choices ? Ink::green : Ink::yellow);
  size_t shown = 0;
  for (const NcclChoiceDifference& other : choices.differences) {
    if (shown++ == 8) break;
    const NcclCandidate* best = other.predicted.best();
    page.Paragraph("    ",
                   std::string(Name(other.logged->op)) + " of " + MessageSizeWords(other.logged->bytes) + " used " +
                       Way(other.logged->algorithm, other.logged->protocol) + ", predicted " +
                       (best ? Way(best->algorithm, best->protocol) : "nothing") +
                       (other.logged->grouped ? " (one of a group of calls, for which NCCL chooses once)" : ""));
  }
}

// The next best of a decision, for "why".
const NcclCandidate* RunnerUp(const NcclDecision& decision) {
  const NcclCandidate* second = nullptr;
  for (size_t i = 0; i < decision.candidates.size(); ++i) {
    const NcclCandidate& one = decision.candidates[i];
    if (static_cast<int>(i) == decision.winner || one.time_us < 0) continue;
    if (!second || one.time_us < second->time_us) second = &one;
  }
  return second;
}

std::string ObstacleWords(const NcclCandidate& way, const NcclCommunicator& communicator) {
  const bool collnet = way.algorithm == NcclAlgorithm::collnet_direct || way.algorithm == NcclAlgorithm::collnet_chain;
  if (collnet && way.obstacle == NcclObstacle::no_paths) return "no graph: SHARP (CollNet) is needed";
  const bool nvls = way.algorithm == NcclAlgorithm::nvls || way.algorithm == NcclAlgorithm::nvls_tree;
  if (nvls && way.obstacle == NcclObstacle::no_paths)
    return "no graph: NVLink SHARP is needed (NVSwitch, H100 or newer)";
  return CleanLine(Explain(way.obstacle, communicator));
}

// "Tree LL128, Ring LL128: LL128 is off: ...": reasons are sentences, and too long for a column.
void AddObstacles(const NcclDecision& decision, const NcclCommunicator& communicator, TextPage& page) {
  std::vector<std::pair<std::string, std::string>> reasons;  // the reason, and the ways
  for (const NcclCandidate& way : decision.candidates) {
    if (way.time_us >= 0) continue;
    const std::string reason = ObstacleWords(way, communicator), name = Way(way.algorithm, way.protocol);
    const auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& one) { return one.first == reason; });
    if (same == reasons.end())
      reasons.emplace_back(reason, name);
    else
      same->second.append(", ").append(name);
  }
  if (!reasons.empty()) page.Line("  Not usable:");
  for (const auto& [reason, ways] : reasons) page.Paragraph("    ", ways + ": " + reason);
}

// "-41 %"; what takes less than a hundredth of the time is told as a factor: -100 % would leave no time at all.
std::string TimeChangeWords(double before_us, double after_us) {
  const double change = before_us > 0 ? after_us / before_us - 1 : 0;
  char text[32];
  if (std::fabs(change) <= 0.005) return "0 %";
  if (change < -0.99 && after_us > 0)
    std::snprintf(text, sizeof text, "%.0fx faster", before_us / after_us);
  else
    std::snprintf(text, sizeof text, "%+.0f %%", 100 * change);
  return text;
}

// The operations for which NCCL_ALGO and NCCL_PROTO allow nothing, at no size.
std::vector<OpKind> FindForbidden(const CommunicatorPrediction& one) {
  std::vector<OpKind> ops;
  for (const PredictedPoint& point : one.points)
    if (std::find(ops.begin(), ops.end(), point.op) == ops.end()) ops.push_back(point.op);
  std::erase_if(ops, [&](OpKind op) {
    return std::any_of(one.points.begin(), one.points.end(),
                       [op](const PredictedPoint& point) { return point.op == op && point.decision.best(); });
  });
  return ops;
}

void AddForbidden(const std::vector<OpKind>& ops, TextPage& page) {
  if (ops.empty()) return;
  std::string names;
  for (size_t i = 0; i < ops.size(); ++i)
    names += (i == 0 ? "" : i + 1 == ops.size() ? " and " : ", ") + std::string(Name(ops[i]));
  page.Paragraph("  ", "NCCL_ALGO and NCCL_PROTO allow nothing for " + names + ": NCCL ends such a call with an error.",
                 Ink::red);
}

void AddPoints(const CommunicatorPrediction& one, const PredictionTextOptions& options, TextPage& page) {
  const std::vector<OpKind> forbidden = FindForbidden(one);
  std::vector<TextRow> rows = {
      {{"operation"}, {"size"}, {"NCCL chooses"}, {"time"}, {"bus GB/s"}, {"channels"}, {"next best"}, {"its time"}}};
  OpKind last = OpKind::unknown;
  for (const PredictedPoint& point : one.points) {
    if (std::find(forbidden.begin(), forbidden.end(), point.op) != forbidden.end()) continue;
    const NcclCandidate* best = point.decision.best();
    const NcclCandidate* second = RunnerUp(point.decision);
    rows.push_back({{point.op == last ? "" : std::string(Name(point.op))},
                    {MessageSizeWords(point.bytes)},
                    {best ? Way(best->algorithm, best->protocol) : "no choice left"},
                    {best ? TimeWords(best->time_us) : ""},
                    {best ? RateFigure(point.decision.bus_bandwidth) : ""},
                    {best ? std::to_string(point.decision.channels) : ""},
                    {second ? Way(second->algorithm, second->protocol) : ""},
                    {second ? TimeWords(second->time_us) : ""}});
    last = point.op;
  }
  AlignFigures(rows, 4);
  if (rows.size() > 1) page.PartsTable(rows, 2);
  AddForbidden(forbidden, page);
  if (!options.verbose) return;
  for (const PredictedPoint& point : one.points) {
    page.Heading(std::string(Name(point.op)) + " of " + MessageSizeWords(point.bytes) + ": all choices");
    std::vector<TextRow> ways = {{{"algorithm, protocol"}, {"time"}, {"latency"}, {"bandwidth"}, {"verdict"}}};
    for (size_t i = 0; i < point.decision.candidates.size(); ++i) {
      const NcclCandidate& way = point.decision.candidates[i];
      if (way.time_us < 0) continue;
      const bool wins = static_cast<int>(i) == point.decision.winner;
      ways.push_back({{Way(way.algorithm, way.protocol), wins ? Ink::green : Ink::plain},
                      {TimeWords(way.time_us)},
                      {TimeWords(way.latency_us)},
                      {SpeedWords(way.bandwidth)},
                      {wins ? "chosen" : "slower"}});
    }
    if (ways.size() > 1) page.PartsTable(ways, 2);
    AddObstacles(point.decision, one.communicator, page);
  }
}

void AddRanges(const CommunicatorPrediction& one, TextPage& page) {
  OpKind op = OpKind::unknown;
  std::string text;
  const auto flush = [&] {
    if (!text.empty()) page.Paragraph("  " + std::string(Name(op)) + ": ", text);
  };
  for (const WinnerRange& range : one.ranges) {
    if (range.op != op) {
      flush();
      text.clear();
      op = range.op;
    }
    if (!text.empty()) text += "; ";
    if (range.first_bytes > 0) text += "from " + MessageSizeWords(range.first_bytes) + " ";
    text += Way(range.algorithm, range.protocol);
  }
  flush();
}

void AddTold(const CommunicatorPrediction& one, TextPage& page) {
  if (one.told.empty()) return;
  page.Heading("What NCCL itself expects, according to its log");
  std::vector<TextRow> rows = {{{"operation"}, {"size"}, {"way"}, {"time"}, {"bus GB/s"}, {"operations"}}};
  constexpr size_t kShown = 40;
  for (size_t i = 0; i < one.told.size() && i < kShown; ++i) {
    const ToldTime& told = one.told[i];
    rows.push_back({{std::string(Name(told.op))},
                    {MessageSizeWords(told.bytes)},
                    {CleanLine(told.how)},
                    {TimeWords(told.time_us)},
                    {RateFigure(told.bus_gbps)},
                    {std::to_string(told.times)}});
  }
  AlignFigures(rows, 4);
  page.Table(rows, 2, false);
  if (one.told.size() > kShown) page.Line("  " + std::to_string(one.told.size() - kShown) + " more with --format json");
}

// Why NCCL's own model could not be used, and what is used in its place.
std::string WithoutModelWords(const CommunicatorPrediction& one) {
  const std::string release = one.communicator.release.Text();
  const std::string unknown = "The cost model of " + release + " is not known (those of NCCL 2.12 to 2.30 are)";
  if (one.of_hardware) return unknown + "; the nearest one is used.";
  const std::string why =
      HasCostModel(one.communicator.release) ? "The log does not show NCCL's search for rings and trees" : unknown;
  if (!one.points.empty()) return why + "; the tuning table in the log is used.";
  return why + (HasCostModel(one.communicator.release) ? "" : ", and the log has no tuning table") +
         ": set NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING.";
}

void AddCommunicator(const CommunicatorPrediction& one, const PredictionTextOptions& options, TextPage& page) {
  const NcclCommunicator& c = one.communicator;
  std::string title = CleanLine(one.label) + ": " + c.release.Text() + ", " +
                      Count(static_cast<uint64_t>(c.ranks), "rank") + " on " +
                      Count(static_cast<uint64_t>(c.nodes), "node");
  if (c.channels > 0) title += ", " + Count(static_cast<uint64_t>(c.channels), "channel");
  if (one.alike > 1) title += " (and " + Count(one.alike - 1, "communicator") + " like it)";
  page.Heading(title);
  AddGraphs(c, page);
  if (!one.costs.complaint.empty()) page.Paragraph("  ", CleanLine(one.costs.complaint) + ".", Ink::red);
  if (!one.is_modelled && one.told.empty()) page.Paragraph("  ", WithoutModelWords(one));
  AddCheck(one, page);
  page.Blank();
  AddPoints(one, options, page);
  if (!one.ranges.empty()) {
    page.Heading("What wins where");
    AddRanges(one, page);
  }
  AddTold(one, page);
  if (!one.assumptions.empty()) page.Blank();
  for (const std::string& assumption : one.assumptions)
    page.Paragraph("  assumed: ", CleanLine(assumption) + ".", Ink::dim);
}

// One table for each operation, so that before and after stand side by side; in a narrow window they stand in two
// parts.
void AddChanges(const CommunicatorPrediction& before, const CommunicatorPrediction& after, TextPage& page) {
  std::vector<TextRow> rows;
  OpKind op = OpKind::unknown;
  const auto flush = [&] {
    if (rows.empty()) return;
    page.Line("  " + std::string(Name(op)));
    AlignFigures(rows, 3);
    AlignFigures(rows, 6);
    page.PartsTable(rows, 4);
    rows.clear();
  };
  for (size_t p = 0; p < before.points.size() && p < after.points.size(); ++p) {
    const NcclDecision &from = before.points[p].decision, &to = after.points[p].decision;
    if (!from.best() || !to.best()) continue;
    if (before.points[p].op != op) flush();
    op = before.points[p].op;
    if (rows.empty())
      rows = {{{"size"},
               {"before"},
               {"time"},
               {"bus GB/s"},
               {"after", Ink::plain, false, true},
               {"time"},
               {"bus GB/s"},
               {"time change"}}};
    const double change = from.best()->time_us > 0 ? to.best()->time_us / from.best()->time_us - 1 : 0;
    const bool same = std::fabs(change) <= 0.005;
    rows.push_back({{MessageSizeWords(before.points[p].bytes)},
                    {Way(from.best()->algorithm, from.best()->protocol)},
                    {TimeWords(from.best()->time_us)},
                    {RateFigure(from.bus_bandwidth)},
                    {Way(to.best()->algorithm, to.best()->protocol)},
                    {TimeWords(to.best()->time_us)},
                    {RateFigure(to.bus_bandwidth)},
                    {TimeChangeWords(from.best()->time_us, to.best()->time_us), same         ? Ink::plain
                                                                                : change < 0 ? Ink::green
                                                                                             : Ink::red}});
  }
  flush();
}

void AddWhatIf(const Prediction& prediction, TextPage& page) {
  std::string changes;
  for (const std::string& change : prediction.changes) changes += (changes.empty() ? "" : ", ") + CleanLine(change);
  for (size_t i = 0; i < prediction.after.size() && i < prediction.before.size(); ++i) {
    const CommunicatorPrediction &before = prediction.before[i], &after = prediction.after[i];
    page.Heading("What if " + changes + (prediction.after.size() > 1 ? ": " + CleanLine(before.label) : ""));
    AddGraphs(after.communicator, page);
    for (const std::string& assumption : after.assumptions)
      page.Paragraph("  assumed: ", CleanLine(assumption) + ".", Ink::dim);
    AddChanges(before, after, page);
    page.Paragraph("  ", "time change: + is slower, - is faster", Ink::dim);
    if (!after.costs.complaint.empty()) page.Paragraph("  ", CleanLine(after.costs.complaint) + ".", Ink::red);
  }
}

}  // namespace

std::string RateFigure(double gbps) {
  constexpr double kLeastShown = 0.005;
  if (gbps > 0 && gbps < kLeastShown) return "<0.01";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", gbps);
  return text;
}

void AlignFigures(std::vector<TextRow>& rows, size_t column) {
  size_t widest = 0;
  for (size_t row = 1; row < rows.size(); ++row) widest = std::max(widest, rows[row][column].text.size());
  for (size_t row = 1; row < rows.size(); ++row) {
    std::string& text = rows[row][column].text;
    if (!text.empty()) text.insert(0, widest - text.size(), ' ');
  }
}

std::string RenderPredictionText(const Prediction& prediction, const PredictionTextOptions& options) {
  TextPage page(options.width, options.colour);
  for (const CommunicatorPrediction& one : prediction.before) AddCommunicator(one, options, page);
  for (const std::string& note : prediction.notes) page.Paragraph("  note: ", CleanLine(note) + ".", Ink::dim);
  AddWhatIf(prediction, page);
  AddPlainModel(prediction, options, page);
  AddStep(prediction, options, page);
  if (options.explain) AddFormulas(prediction, page);
  return page.Take();
}

}  // namespace tacet
