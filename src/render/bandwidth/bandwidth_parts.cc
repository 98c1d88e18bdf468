// SPDX-License-Identifier: Apache-2.0
#include "render/bandwidth/bandwidth_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "analysis/bandwidth/hardware_guess.h"
#include "base/redact.h"
#include "render/prediction/prediction_render.h"
#include "render/render_words.h"

namespace tacet {

std::string PercentWords(double share) {
  char text[32];
  const double percent = 100 * share;
  std::snprintf(text, sizeof text, std::fabs(percent) < 9.95 ? "%.1f %%" : "%.0f %%", percent);
  return text;
}

std::string FixedWords(double value, int decimals) {
  char text[48];
  if (std::fabs(value) < 0.5 * std::pow(10, -decimals)) value = 0;  // never "-0.00"
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string BandwidthAnswer::PathOf(size_t job, const SourceRef& source) const {
  if (job >= jobs.size() || static_cast<uint32_t>(source.file) >= jobs[job]->files.size()) return "";
  std::string path(jobs[job]->PathOf(source.file));
  if (redacted) path = RedactSecrets(path).text;
  return source.line > 0 ? path + ":" + std::to_string(source.line) : path;
}

namespace {

// "1.4 times", "250 times".
std::string TimesWords(double ratio) {
  return (ratio < 20 ? FixedWords(ratio, 1) : "about " + FixedWords(std::round(ratio / 10) * 10, 0)) + " times";
}

// `where`: " in all_reduce, 4 ranks, Ring", where another sweep shows it.
std::string MisfitWords(const ModelCheck& check, const std::string& where) {
  double measured = 0, predicted = 0;
  for (const ModelPoint& point : check.points) {
    measured = std::max(measured, point.measured_gbs);
    predicted = std::max(predicted, point.predicted_gbs);
  }
  return "Unknown: NCCL's model does not fit: " + SpeedWords(measured) + " measured" + where + ", at most " +
         SpeedWords(predicted) +
         " predicted. NCCL rates a network device whose speed it cannot read (lo and many virtual devices) at 10 "
         "Gbit/s.";
}

std::string LogWords(const Sweep& sweep, const ModelCheck& check) {
  if (check.other_release.empty()) return "";
  return " The log is from " + CleanLine(check.other_release) + ", the benchmark from " + CleanLine(sweep.library) +
         ": they are different runs.";
}

}  // namespace

std::string GuessWords(const Sweep& sweep) {
  const std::optional<HardwareGuess> guess = GuessFromHardware(sweep);
  if (!guess) return "";
  return SpeedWords(guess->measured_gbs) + " at " + MessageSizeWords(guess->bytes) + " is about " +
         PercentWords(std::round(100 * guess->measured_gbs / guess->expected_gbs) / 100) + " of the " +
         SpeedWords(guess->expected_gbs) + " that NCCL's model expects for " + guess->machine;
}

// Why the logs that are here say nothing of this sweep.
static std::string OtherLogWords(const BandwidthView& view, const Sweep& sweep) {
  const auto ranks = static_cast<uint64_t>(sweep.ranks);
  if (!sweep.runs.empty() && sweep.runs.front()->host_times)
    return "the benchmark measured until the call returned, which NCCL's model does not predict.";
  const std::string run_it =
      " Run it with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING and give both files.";
  if (view.models)
    for (const NcclGroupModel& model : *view.models)
      if (model.communicator.ranks == sweep.ranks && sweep.Nodes() > 0 && model.communicator.nodes != sweep.Nodes())
        return "the NCCL log here is from a run of " + Count(ranks, "rank") + " on " +
               Count(static_cast<uint64_t>(model.communicator.nodes), "node") + ", the benchmark ran on " +
               Count(static_cast<uint64_t>(sweep.Nodes()), "node") + "." + run_it;
  if (view.ranks_without_search.contains(sweep.ranks))
    return "the NCCL log does not show how NCCL chose rings and trees." + run_it;
  return "none of the NCCL logs here describes a communicator of " + Count(ranks, "rank") + "." + run_it;
}

bool LacksLog(const BandwidthView& view, size_t sweep_index) {
  const Sweep& sweep = view.sweeps[sweep_index];
  return sweep.tool == "nccl-tests" && NcclTunedIndex(sweep.kind) >= 0 && sweep.ranks >= 2 && !view.has_logs &&
         !HasWrongResults(sweep);
}

std::string NormalWords(const BandwidthView& view, size_t sweep_index, bool* is_normal) {
  *is_normal = false;
  const Sweep& sweep = view.sweeps[sweep_index];
  if (HasWrongResults(sweep)) return "No: the results are wrong.";
  if (sweep.tool != "nccl-tests") return "";
  if (NcclTunedIndex(sweep.kind) < 0 || sweep.ranks < 2)
    return sweep.ranks < 2 ? sweep.ranks < 1
                                 ? "Unknown: the output does not show how many ranks took part."
                                 : "Unknown: NCCL's model needs two ranks or more, and the output shows one."
                           : "Unknown: NCCL has no model of this operation.";
  const ModelCheck* check = view.CheckOf(sweep_index);
  if (const std::string guess = !check && !view.has_logs && view.sweeps.size() == 1 ? GuessWords(sweep) : "";
      !guess.empty())
    return "Unknown: NCCL's log of this run is missing. For orientation: " + guess +
           ". For an exact answer, run it with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING and give "
           "both files.";
  if (!check)
    return "Unknown: " + (view.has_logs
                              ? OtherLogWords(view, sweep)
                              : std::string("NCCL's log of this run is missing. Run it with NCCL_DEBUG=INFO "
                                            "NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING and give both files."));
  if (check->large_points == 0)
    return "Unknown: no size of the sweep is large enough to judge bandwidth. Small sizes take " +
           TimesWords(check->latency_ratio) + " as long as NCCL's model predicts." + LogWords(sweep, *check);
  if (const ModelCheck* beaten = FindModelBeaten(view, *check))
    return MisfitWords(*beaten, beaten == check ? "" : " in " + CleanLine(SweepWords(view.sweeps[beaten->sweep]))) +
           LogWords(sweep, *check);
  *is_normal = check->share >= 0.8;
  std::string out = *is_normal                    ? "Large sizes: yes"
                    : check->share >= kBelowModel ? "Large sizes: probably not"
                                                  : "Large sizes: no";
  out += ", they reach " + PercentWords(check->share) + " of what NCCL's model predicts for the graph in its log (";
  out += check->large_points > 1 ? "median of " + Count(check->large_points, "size") : std::string("1 size");
  out += ").";
  if (check->latency_ratio > 0)
    out += " Small sizes take " + TimesWords(check->latency_ratio) + " as long as it predicts.";
  return out + LogWords(sweep, *check);
}

void AddWaterfall(const ModelCheck& check, TextPage& page) {
  const Waterfall& fall = check.waterfall;
  if (fall.losses.empty() || check.share > kAboveModel) return;  // nothing is lost where more comes than can come
  page.Paragraph("  ", "Where the bandwidth goes at " + MessageSizeWords(fall.bytes) + " (" +
                           std::string(Name(fall.algorithm)) + " " + std::string(Name(fall.protocol)) + "): from " +
                           CleanLine(fall.top) + ", to " + SpeedWords(fall.measured_gbs) +
                           " measured, in GB/s of bus bandwidth:");
  std::vector<TextRow> rows = {{{"step"}, {"lost"}, {"left"}, {"", Ink::plain, true}, {"taken by"}}};
  double sum = 0;
  for (const WaterfallLoss& loss : fall.losses) {
    const double bar = fall.line_gbs > 0 ? std::clamp(loss.after_gbs / fall.line_gbs, 0.0, 1.0) : 0;
    rows.push_back({{std::string(Name(loss.step))},
                    {FixedWords(loss.Lost(), 2)},
                    {FixedWords(loss.after_gbs, 2)},
                    {std::string(static_cast<size_t>(std::lround(bar * 20)), '#')},
                    {CleanLine(loss.who)}});
    sum += loss.Lost();
  }
  rows.push_back({{"sum"}, {FixedWords(sum, 2)}, {""}, {""}, {""}});
  page.PartsTable(rows, 4);
  if (std::any_of(fall.losses.begin(), fall.losses.end(),
                  [](const WaterfallLoss& one) { return one.Lost() <= -0.005; }))
    page.Paragraph("    ", "A negative loss is a gain.", Ink::dim);
  if (!fall.missing.empty()) page.Paragraph("    ", "Not known above the graph: " + fall.missing + ".", Ink::dim);
  for (const std::string& one : check.assumptions) page.Paragraph("    ", "assumed: " + CleanLine(one), Ink::dim);
}

void AddStream(const StreamView& stream, TextPage& page) {
  const BenchmarkRun& run = *stream.run;
  page.Heading(CleanLine(run.operation) +
               (run.from.empty() ? "" : " from " + CleanLine(run.from) + " to " + CleanLine(run.to)));
  std::string text = CleanLine(run.tool) + ", " + CleanLine(run.link) + ": ";
  if (!run.failure.empty()) {
    page.Paragraph("  ", text + "stopped with an error: " + CleanLine(run.failure) + ".", Ink::yellow);
    return;
  }
  text += stream.mean_gbs >= 0 ? SpeedWords(stream.mean_gbs) + " received" : "no total";
  if (run.sent_gbs >= 0) text += ", " + SpeedWords(run.sent_gbs) + " sent";
  if (stream.median_gbs >= 0)
    text += "; " + Count(run.rates.size(), "interval") + ": median " + SpeedWords(stream.median_gbs) + ", min " +
            SpeedWords(stream.least_gbs) + ", max " + SpeedWords(stream.most_gbs) +
            (stream.spread >= 0 ? ", spread " + PercentWords(stream.spread) : "");
  if (stream.retransmits >= 0) text += "; " + Count(static_cast<uint64_t>(stream.retransmits), "retransmission");
  if (run.lost_share >= 0) text += "; " + PercentWords(run.lost_share) + " of the datagrams lost";
  page.Paragraph("  ", text + ".");
  if (stream.shift)
    page.Paragraph("  ",
                   "Persistent change: from interval " + std::to_string(stream.shift->first + 1) + " on, " +
                       SpeedWords(stream.shift->after) + " instead of " + SpeedWords(stream.shift->before) + ".",
                   Ink::yellow);
  if (!stream.dips.empty())
    page.Paragraph("  ", "Transient: " + Count(stream.dips.size(), "interval") +
                             " far below the others, the first at " +
                             FixedWords(run.rates[stream.dips.front()].start_s, 0) + " s.");
}

namespace {

// As many digits in the cells as in the words about them.
std::string CellWords(double value) { return FixedWords(value, value < 100 ? 2 : 1); }

void AddCells(const PairMatrixView& view, TextPage& page) {
  const auto& matrix = view.matrix;
  constexpr size_t kMostColumns = 16;
  if (matrix.columns.size() > kMostColumns || matrix.rows.size() > 2 * kMostColumns) {
    page.Paragraph("  ", std::to_string(matrix.rows.size()) + " x " + std::to_string(matrix.columns.size()) +
                             " cells; --format json or --html shows all.");
    return;
  }
  TextRow head = {{""}};
  for (uint32_t i = 0; i < matrix.columns.size(); ++i) head.push_back({CleanLine(matrix.columns[i]), Ink::plain, true});
  std::vector<TextRow> rows = {head};
  const auto listed = [](const std::vector<uint32_t>& list, uint32_t one) {
    return std::count(list.begin(), list.end(), one) > 0;
  };
  for (uint32_t r = 0; r < matrix.cells.size(); ++r) {
    TextRow row = {{CleanLine(r < matrix.rows.size() ? matrix.rows[r] : "")}};
    for (uint32_t c = 0; c < matrix.cells[r].size(); ++c) {
      bool slow = listed(view.slow_rows, r) || listed(view.slow_columns, c) || listed(view.slow_members, r) ||
                  listed(view.slow_members, c);
      for (const PairCell& cell : view.slow_cells) slow = slow || (cell.row == r && cell.column == c);
      const double value = matrix.cells[r][c];
      row.push_back({std::isnan(value) ? "-" : CellWords(value), slow ? Ink::yellow : Ink::plain});
    }
    rows.push_back(std::move(row));
  }
  page.Table(rows, 2, false);
}

}  // namespace

void AddMatrix(const PairMatrixView& view, const BandwidthTextOptions&, TextPage& page) {
  page.Heading(CleanLine(view.matrix.title) + (view.matrix.is_latency ? ", µs" : ", GB/s"));
  std::string about = CleanLine(view.tool);
  if (!view.operation.empty()) about += ", " + CleanLine(view.operation);
  std::ptrdiff_t cells = 0;
  for (const std::vector<double>& row : view.matrix.cells)
    cells += std::count_if(row.begin(), row.end(), [](double value) { return value > 0; });
  // Of one cell all figures are the same, and latencies do not add up.
  if (cells > 1)
    about += ": median " + CellWords(view.typical) + ", min " + CellWords(view.least) + ", max " + CellWords(view.most);
  if (cells > 1 && view.matrix.told_sum >= 0 && !view.matrix.is_latency) about += "; sum " + CellWords(view.sum);
  page.Paragraph("  ", about + ".");
  AddCells(view, page);
  if (view.levels.size() > 1) {
    std::string levels;
    for (const double level : view.levels) levels += (levels.empty() ? "" : ", ") + FixedWords(level, 1);
    page.Paragraph("  ", "Paths differ by design: levels " + levels + ".");
  }
  for (const SlowPart& part : SlowPartsOf(view))
    page.Paragraph("  slow: ",
                   CleanLine(part.name) + ", " + PercentWords(part.share) + " of comparable cells (" +
                       CellWords(part.value) + " instead of " + CellWords(part.expected) + ").",
                   Ink::yellow);
}

static void AddRunNoise(const BetterWay& way, TextPage& page) {
  constexpr double kWorthSaying = 0.05, kMostUsefulNoise = 0.3;
  if (way.run_noise < kWorthSaying) return;
  const TwinRuns& worst = way.worst_twin;
  page.Paragraph("  ",
                 "Two runs of the same algorithm and protocol differ by " + PercentWords(way.run_noise) +
                     " (median of " + Count(way.twin_sizes, "size") + "; " + CleanLine(worst.way) + " at " +
                     MessageSizeWords(worst.bytes) + " took " + TimeWords(worst.chosen_us) + " as NCCL's choice and " +
                     TimeWords(worst.forced_us) + " when forced): " +
                     (way.run_noise < kMostUsefulNoise ? "only gains of three times that count. "
                                                       : "no gain stands out of that noise. ") +
                     "Measure again on a quiet machine.",
                 Ink::yellow);
}

void AddBetterWays(const BandwidthView& view, TextPage& page) {
  for (const BetterWay& way : view.better) {
    page.Heading("Chosen against best: " + CleanLine(SweepWords(view.sweeps[way.sweep])));
    AddRunNoise(way, page);
    if (way.cells.empty()) {
      page.Paragraph("  ",
                     way.ways == 1
                         ? std::string("The forced choice is not faster than NCCL's choice by more than the noise.")
                         : "None of the " + Count(way.ways, "forced choice") +
                               " is faster than NCCL's choice by more than the noise.",
                     Ink::green);
      continue;
    }
    std::vector<TextRow> rows = {{{"size"},
                                  {"NCCL chooses"},
                                  {"its time"},
                                  {"faster"},
                                  {"its time"},
                                  {"gain"},
                                  {"noise"},
                                  {"calls"},
                                  {"per step"}}};
    for (const BetterCell& cell : way.cells)
      rows.push_back({{MessageSizeWords(cell.bytes)},
                      {cell.chosen.empty() ? "unknown" : cell.chosen},
                      {TimeWords(cell.chosen_us)},
                      {CleanLine(cell.algorithm + " " + cell.protocol)},
                      {TimeWords(cell.better_us)},
                      {PercentWords(cell.Gain()), Ink::yellow},
                      {PercentWords(cell.noise)},
                      {cell.calls > 0 ? std::to_string(cell.calls) : ""},
                      {cell.calls_per_step > 0 ? FixedWords(cell.calls_per_step, 1) : ""}});
    page.Table(rows, 2, false);
    page.Paragraph(
        "  ",
        "--tuner FILE writes rows for NCCL's tuner plugin for these sizes; unset NCCL_TUNER_PLUGIN to undo them.");
  }
}

}  // namespace tacet
