// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string_view>

#include "render/bandwidth/bandwidth_parts.h"
#include "render/bandwidth/bandwidth_render.h"
#include "render/prediction/prediction_render.h"
#include "render/render_words.h"

namespace tacet {
namespace {

// No link is so much faster than the fastest message: the time of small ones does not depend on their size.
constexpr double kAbovePeak = 1.5;
constexpr size_t kMostSizes = 14;  // of a sweep, unless all are asked for

bool HasSides(const Sweep& sweep, bool in_place) {
  return std::any_of(sweep.points.begin(), sweep.points.end(),
                     [&](const SweepPoint& p) { return p.in_place == in_place; });
}

// Of a long sweep every second, third, ... size, and always the last, the one with the highest bandwidth and those that
// the text below names.
std::vector<int64_t> ShownSizes(const Sweep& sweep, bool all) {
  std::vector<int64_t> sizes;
  for (const SweepPoint& point : sweep.points)
    if (sizes.empty() || sizes.back() != point.bytes) sizes.push_back(point.bytes);
  if (all || sizes.size() <= kMostSizes) return sizes;
  std::vector<int64_t> shown;
  const size_t step = (sizes.size() + kMostSizes - 1) / kMostSizes;
  shown.reserve(kMostSizes + sweep.fit.segments.size() + 1);
  for (size_t i = (sizes.size() - 1) % step; i < sizes.size(); i += step) shown.push_back(sizes[i]);
  if (const SweepPoint* peak = sweep.Peak()) shown.push_back(peak->bytes);
  for (const FitSegment& one : sweep.fit.segments) {
    const auto worst = static_cast<int64_t>(one.worst_bytes);
    if (std::find(sizes.begin(), sizes.end(), worst) != sizes.end()) shown.push_back(worst);
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

const SweepPoint* PointOf(const Sweep& sweep, int64_t bytes, bool in_place) {
  for (const SweepPoint& point : sweep.points)
    if (point.bytes == bytes && point.in_place == in_place) return &point;
  return nullptr;
}

void AddFigures(const BandwidthView& view, size_t index, const BandwidthTextOptions& options, TextPage& page) {
  const Sweep& sweep = view.sweeps[index];
  const ModelCheck* check = view.CheckOf(index);
  const bool both = HasSides(sweep, true) && HasSides(sweep, false);
  const bool iterations =
      std::any_of(sweep.points.begin(), sweep.points.end(), [](const SweepPoint& p) { return p.p99_us >= 0; });
  // Between two ends both bandwidths are the same figure.
  const bool one_rate = std::all_of(sweep.points.begin(), sweep.points.end(),
                                    [](const SweepPoint& p) { return p.algorithm_gbs == p.bus_gbs; });
  TextRow head = {{"size"}, {"time"}, {one_rate ? "bandwidth" : "algbw"}, {one_rate ? "" : "busbw"}, {"spread"}};
  if (both) head.push_back({one_rate ? "bandwidth in place" : "in place"});
  if (iterations) head.insert(head.end(), {{"median"}, {"99 %"}, {"longest"}});
  if (check) head.insert(head.end(), {{"model"}, {"of model"}, {"NCCL chooses"}});
  std::vector<TextRow> rows = {head};
  const auto rate = [](double gbs) { return gbs >= 0 ? SpeedWords(gbs) : std::string(); };
  for (const int64_t bytes : ShownSizes(sweep, options.verbose)) {
    const SweepPoint* out = PointOf(sweep, bytes, false);
    const SweepPoint* in = PointOf(sweep, bytes, true);
    const SweepPoint* one = out ? out : in;
    if (!one) continue;
    TextRow row = {{MessageSizeWords(bytes)},
                   {one->time_us >= 0 && !one->time_derived ? TimeWords(one->time_us) : ""},
                   {rate(one->algorithm_gbs)},
                   {one_rate ? "" : rate(one->bus_gbs)},
                   {one->spread >= 0 ? PercentWords(one->spread) : ""}};
    if (both) row.push_back({in ? rate(in->bus_gbs >= 0 ? in->bus_gbs : in->algorithm_gbs) : ""});
    if (iterations)
      row.insert(row.end(), {{one->median_us >= 0 ? TimeWords(one->median_us) : ""},
                             {one->p99_us >= 0 ? TimeWords(one->p99_us) : ""},
                             {one->max_us >= 0 ? TimeWords(one->max_us) : ""}});
    if (check) {
      const auto at = std::find_if(check->points.begin(), check->points.end(),
                                   [&](const ModelPoint& p) { return p.bytes == bytes; });
      const bool known = at != check->points.end();
      row.insert(row.end(), {{known ? SpeedWords(at->predicted_gbs) : ""},
                             {known ? PercentWords(at->Share()) : ""},
                             {known ? std::string(Name(at->algorithm)) + " " + std::string(Name(at->protocol)) : ""}});
    }
    rows.push_back(std::move(row));
  }
  page.Table(rows, 2, false);
  const size_t all = ShownSizes(sweep, true).size(), shown = rows.size() - 1;
  if (shown < all)
    page.Paragraph("  ", std::to_string(shown) + " of " + Count(all, "size") + "; --verbose shows all", Ink::dim);
}

// "88 ± 13 µs", "0.3600 ± 0.0020 µs": two digits of the error, and as many decimals of the value.
std::string WithError(double value, double error, std::string_view unit) {
  constexpr int kMostDecimals = 6;
  const int decimals =
      error > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, kMostDecimals) : kMostDecimals;
  const std::string least = error > 0 ? FixedWords(error, decimals) : "0";
  return FixedWords(value, error > 0 ? decimals : 3) + " ± " + least + " " + std::string(unit);
}

std::string TimeWithError(double us, double error_us) {
  if (us >= 1e6) return WithError(us / 1e6, error_us / 1e6, "s");
  return us >= 1e3 ? WithError(us / 1e3, error_us / 1e3, "ms") : WithError(us, error_us, "µs");
}

void AddFit(const Sweep& sweep, TextPage& page) {
  if (sweep.fit.segments.empty()) return;
  if (!sweep.FitTells()) {
    page.Paragraph("  ", "Fit: no combination of latency and bandwidth describes these sizes (mean error " +
                             PercentWords(sweep.fit.mean_error) + ").");
    return;
  }
  const bool pipelined = sweep.IsPipelined();
  const std::string share = pipelined ? "per message" : "latency";
  std::vector<TextRow> rows = {{{"sizes"}, {share}, {"bandwidth"}, {"R²"}, {"mean error"}, {"worst error"}}};
  const SweepPoint* peak = sweep.Peak();
  for (const FitSegment& one : sweep.fit.segments) {
    const double bandwidth = one.BandwidthGbs();
    const double error = one.beta_us_per_byte > 0 ? bandwidth * one.beta_error_us_per_byte / one.beta_us_per_byte : 0;
    rows.push_back(
        {{MessageSizeWords(static_cast<int64_t>(one.first_bytes)) + " to " +
          MessageSizeWords(static_cast<int64_t>(one.last_bytes))},
         {one.TellsAlpha() ? TimeWithError(one.alpha_us, one.alpha_error_us) : "unknown"},
         {one.TellsBandwidth() && !(pipelined && peak && bandwidth > kAbovePeak * peak->algorithm_gbs)
              ? WithError(bandwidth, error, "GB/s")
              : "unknown"},
         {FixedWords(one.r_squared, 3)},
         {PercentWords(one.mean_error)},
         {PercentWords(one.worst_error) + " at " + MessageSizeWords(static_cast<int64_t>(one.worst_bytes))}});
  }
  page.Paragraph("  ", "Fit: " +
                           (pipelined ? std::string("time per message = a fixed part + size / bandwidth")
                                      : std::string("time = latency + size / algorithm bandwidth")) +
                           ", 95 % intervals" +
                           std::string(sweep.fit_joins_layouts ? ", in place and out of place together" : "") +
                           "; R² " + FixedWords(sweep.fit.r_squared, 4) + ", mean error " +
                           PercentWords(sweep.fit.mean_error) + ", worst " + PercentWords(sweep.fit.worst_error) + ".");
  page.PartsTable(rows, 4);
}

void AddOutliers(const Sweep& sweep, TextPage& page) {
  size_t shown = 0;
  for (const SweepOutlier& one : sweep.outliers) {
    if (shown++ == 6) {
      page.Paragraph("  ", Count(sweep.outliers.size() - 6, "more size") +
                               (sweep.outliers.size() == 7 ? " is an outlier." : " are outliers."));
      break;
    }
    std::string text = MessageSizeWords(one.bytes) + " took " +
                       std::string(one.kind == OutlierKind::lasting ? "" : "up to ") + FixedWords(one.factor, 1) +
                       " times as long as the " + (one.by_neighbours ? "sizes next to it" : "other sizes") +
                       " suggest: ";
    if (one.kind == OutlierKind::lasting && one.iteration >= 0)
      text +=
          "it is slow from iteration " + std::to_string(one.iteration + 1) + " of " + std::to_string(one.of) + " on.";
    else if (one.kind == OutlierKind::lasting)
      text += "it is slow in " + (one.of == 2 ? "both" : "all " + std::to_string(one.of)) + " measurements.";
    else if (one.kind == OutlierKind::passing)
      text += "it is slow in " + std::to_string(one.slow) + " of " + std::to_string(one.of) + " measurements only.";
    else
      text += "measured once, so it is unknown whether it persists.";
    if (one.at_change) text += " The fit changes here: NCCL may switch its algorithm or protocol at this size.";
    if (one.iteration < 0 && one.bytes == sweep.points.front().bytes)
      text += " The smallest size is often measured first, so this may be warm-up.";
    page.Paragraph("  ", text, one.kind == OutlierKind::lasting ? Ink::yellow : Ink::plain);
  }
  if (sweep.in_place_ratio > 0 && std::fabs(sweep.in_place_ratio - 1) > 0.03 && !sweep.fit_joins_layouts)
    page.Paragraph("  ", std::string("Out of place takes ") + PercentWords(std::fabs(sweep.in_place_ratio - 1)) +
                             (sweep.in_place_ratio > 1 ? " more" : " less") +
                             " time than in place at the median size.");
}

void AddSweep(const BandwidthAnswer& answer, size_t index, const BandwidthTextOptions& options, TextPage& page) {
  const Sweep& sweep = answer.view.sweeps[index];
  page.Heading(CleanLine(SweepWords(sweep)) + (sweep.way_assumed ? " (according to the file's name)" : ""));
  const SweepPoint* peak = sweep.Peak();
  std::string about = CleanLine(sweep.tool) + (sweep.library.empty() ? "" : ", NCCL " + CleanLine(sweep.library)) +
                      ", " + Count(sweep.runs.size(), "run");
  if (sweep.IsLatencyTest()) {
    if (const SweepPoint* least = sweep.Quickest())
      about += std::string("; lowest ") + (sweep.runs.size() > 1 ? "mean " : "") + "latency " +
               TimeWords(least->time_us) + " at " + MessageSizeWords(least->bytes);
  } else if (peak)
    about += std::string("; highest ") + (sweep.runs.size() > 1 ? "mean " : "") +
             std::string(sweep.IsPipelined()  ? ""
                         : peak->bus_gbs >= 0 ? "bus "
                                              : "algorithm ") +
             "bandwidth " + SpeedWords(peak->bus_gbs >= 0 ? peak->bus_gbs : peak->algorithm_gbs) + " at " +
             MessageSizeWords(peak->bytes);
  page.Paragraph("  ", about + ".");
  AddFigures(answer.view, index, options, page);
  AddFit(sweep, page);
  for (const std::string& line : PlotSweep(sweep, answer.view.CheckOf(index), std::min<size_t>(options.width, 90), 12))
    page.Line(line);
  AddOutliers(sweep, page);
  bool normal = false;
  const std::string words = NormalWords(answer.view, index, &normal);
  const bool told_below = answer.view.sweeps.size() > 1 && LacksLog(answer.view, index);
  if (const std::string guess = told_below ? GuessWords(sweep) : ""; !guess.empty())
    page.Paragraph("  For orientation: ", guess + ".");
  if (!words.empty() && !told_below) page.Paragraph("  Is this normal? ", words, normal ? Ink::green : Ink::plain);
  if (const ModelCheck* check = answer.view.CheckOf(index)) AddWaterfall(*check, page);
}

// Once for all sweeps: five times the same three lines hide what differs.
void AddLackOfLog(const BandwidthView& view, TextPage& page) {
  size_t lacking = 0, first = 0;
  std::vector<std::string> names;
  for (size_t i = view.sweeps.size(); i-- > 0;) {
    if (!LacksLog(view, i)) continue;
    ++lacking;
    first = i;
    if (std::find(names.begin(), names.end(), view.sweeps[i].operation) == names.end())
      names.insert(names.begin(), view.sweeps[i].operation);
  }
  if (lacking == 0 || view.sweeps.size() < 2) return;
  std::string who;
  if (lacking < view.sweeps.size())
    for (const std::string& name : names) who.append(who.empty() ? "" : ", ").append(CleanLine(name));
  bool normal = false;
  page.Blank();
  std::string words = NormalWords(view, first, &normal);
  constexpr std::string_view kUnknown = "Unknown";
  if (!who.empty() && words.starts_with(kUnknown)) words.insert(kUnknown.size(), " for " + who);
  page.Paragraph("Is this normal? ", words);
}

// Cells are held against each other; of one or two there is nothing to hold them against.
bool IsComparable(const PairMatrixView& view) {
  constexpr std::ptrdiff_t kLeastCells = 3;
  std::ptrdiff_t cells = 0;
  for (const std::vector<double>& row : view.matrix.cells)
    cells += std::count_if(row.begin(), row.end(), [](double value) { return value > 0; });
  return cells >= kLeastCells;
}

// Of matrices alone: which were held against themselves, and which against nothing.
std::string MatrixWords(const BandwidthView& view) {
  const auto compared = static_cast<size_t>(std::count_if(view.matrices.begin(), view.matrices.end(), IsComparable));
  const size_t open = view.matrices.size() - compared;
  std::string out, named;
  for (const PairMatrixView& one : view.matrices)
    if (IsComparable(one)) named = CleanLine(one.matrix.title);
  if (compared > 0)
    out = (compared == 1 && !named.empty() ? "In '" + named + "'"
           : compared == 1                 ? std::string("In 1 matrix")
                                           : "In " + std::to_string(compared) + " matrices") +
          " no cell is far slower than the comparable ones.";
  if (open > 0)
    out += (out.empty() ? "" : " ") + std::to_string(open) + (open == 1 ? " matrix" : " matrices") +
           " cannot be judged: these files do not show how fast " + (open == 1 ? "it" : "they") + " should be.";
  return out;
}

}  // namespace

std::string NoFaultWords(const BandwidthView& view) {
  size_t judged = 0, lacking = 0, odd_sizes = 0, odd_streams = 0;
  bool explained = false;
  size_t unexplained = 0;
  for (size_t i = 0; i < view.sweeps.size(); ++i) {
    const ModelCheck* check = view.CheckOf(i);
    bool normal = false;
    const std::string words = NormalWords(view, i, &normal);
    judged += check && normal;
    lacking += LacksLog(view, i);
    explained = explained || !words.empty();
    unexplained += words.empty() && !(check && normal);
    odd_sizes += view.sweeps[i].outliers.size();
  }
  for (const StreamView& stream : view.streams) odd_streams += stream.shift.has_value();
  const size_t open = view.sweeps.size() - judged;
  std::string out;
  if (view.sweeps.empty() && !view.matrices.empty())
    out = MatrixWords(view);
  else if (view.sweeps.empty())
    out = Count(view.streams.size(), "test") + " cannot be judged: these files do not show how fast " +
          (view.streams.size() == 1 ? "it" : "they") + " should be.";
  else if (open == 0)
    out = "Nothing is slower than expected, as far as these files show.";
  else if (judged > 0)
    out = Count(judged, "operation") + (judged == 1 ? " is" : " are") + " as fast as expected; " +
          std::to_string(open) + " cannot be judged" +
          (unexplained == open
               ? ": these files do not show how fast " + std::string(open == 1 ? "it" : "they") + " should be."
               : std::string(" (see \"Is this normal?\")."));
  else
    out =
        Count(open, "operation") + " cannot be judged" +
        (lacking == open ? " without NCCL's log of the run."
         : explained     ? " (see \"Is this normal?\")."
                     : ": these files do not show how fast " + std::string(open == 1 ? "it" : "they") + " should be.");
  if (open > 0 && !view.matrices.empty()) out += " No outlier in the rest.";
  if (odd_sizes > 0)
    out += " " + Count(odd_sizes, "size") + (odd_sizes == 1 ? " is an outlier (below)." : " are outliers (below).");
  if (odd_streams > 0)
    out += " " + Count(odd_streams, "stream") + (odd_streams == 1 ? " has" : " have") +
           " a persistent change of bandwidth (below).";
  return out;
}

// Where the advice stands: the faults are told in one sentence each.
static void AddWhatToDo(const std::vector<BandwidthFault>& faults, TextPage& page) {
  std::string words;
  std::set<std::string_view> told = {"wrong-results"};  // says so itself
  for (const BandwidthFault& fault : faults)
    if (told.insert(fault.cause).second)
      words += (words.empty() ? "tacet explain " : ", tacet explain ") + std::string(fault.cause);
  if (!words.empty()) page.Paragraph("What to do: ", words);
}

std::string RenderBandwidthText(const BandwidthAnswer& answer, const BandwidthTextOptions& options) {
  TextPage page(options.width, options.colour);
  for (const BandwidthFault& fault : answer.faults) {
    page.Paragraph(page.Paint(std::string(fault.cause) + ": ", Ink::yellow), CleanLine(fault.headline) + ".",
                   Ink::strong);
    if (const std::string place = answer.PathOf(fault.incident, fault.source); !place.empty())
      page.Paragraph("  ", CleanLine(place) + ": " + CleanLine(fault.says), Ink::dim);
  }
  AddWhatToDo(answer.faults, page);
  if (answer.faults.empty())
    page.Paragraph("", answer.view.empty() ? "No benchmark was found." : NoFaultWords(answer.view), Ink::strong);
  for (size_t i = 0; i < answer.view.sweeps.size(); ++i) AddSweep(answer, i, options, page);
  AddLackOfLog(answer.view, page);
  for (const StreamView& stream : answer.view.streams) AddStream(stream, page);
  for (const PairMatrixView& matrix : answer.view.matrices) AddMatrix(matrix, options, page);
  AddBetterWays(answer.view, page);
  if (!answer.remarks.empty()) {
    page.Heading("Remarks");
    for (const ReportDiagnostic& remark : answer.remarks)
      page.Paragraph("  ",
                     (remark.file.empty() ? "" : CleanLine(remark.file) + ": ") + CleanLine(remark.message) +
                         (remark.hint.empty() ? "" : " (" + CleanLine(remark.hint) + ")"),
                     Ink::dim);
  }
  return page.Take();
}

}  // namespace tacet
