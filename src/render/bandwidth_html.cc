// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "render/bandwidth_parts.h"
#include "render/bandwidth_render.h"
#include "render/markup_escape.h"
#include "render/prediction_render.h"

namespace tacet {
namespace {

// No script at all: the policy forbids every one, whatever the benchmark's texts hold.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width, "
    "initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><meta http-equiv=\"Content-Security-Policy\" "
    "content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>Tacet: bandwidth</title><style>"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem}table{border-collapse:collapse;"
    "margin:.5rem 0;font-variant-numeric:tabular-nums}td,th{padding:.15rem .6rem;text-align:right;border-bottom:1px "
    "solid #8884}"
    "td:first-child,th:first-child{text-align:left}.fault{border-left:4px solid #d80;padding:.3rem "
    ".8rem;background:#d8801a18}"
    ".slow{background:#d8806a55}svg{max-width:100%;height:auto}.axis{stroke:#888;stroke-width:1}.grid{stroke:#8883}"
    ".fit{stroke:#27c;stroke-width:2;fill:none}.model{stroke:#2a7;stroke-width:2;fill:none;stroke-dasharray:5 "
    "4}.dot{fill:#d40}"
    ".bar{fill:#27c}.lost{fill:#d8804a}text{font:12px system-ui,sans-serif;fill:currentColor}pre{overflow:auto}"
    "</style></head><body>\n<h1>Bandwidth</h1>\n";

std::string Formatted(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Formatted(const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return text;
}

double ShownRate(const SweepPoint& point) { return point.bus_gbs > 0 ? point.bus_gbs : point.algorithm_gbs; }

// Both axes are logarithms: sizes in powers of two, rates in powers of ten.
struct Chart {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  static constexpr double kWidth = 860, kHeight = 330, kLeft = 80, kBottom = 40, kTop = 12, kRight = 12;
  double X(double bytes) const { return kLeft + (std::log2(bytes) - x0) / (x1 - x0) * (kWidth - kLeft - kRight); }
  double Y(double gbs) const { return kTop + (y1 - std::log10(gbs)) / (y1 - y0) * (kHeight - kTop - kBottom); }
};

std::string Axes(const Chart& chart) {
  std::string out;
  for (double y = std::ceil(chart.y0); y <= chart.y1 + 1e-9; y += 1) {
    const double at = chart.Y(std::pow(10, y));
    out += Formatted("<line class=\"grid\" x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\"/>", Chart::kLeft, at,
                     Chart::kWidth - Chart::kRight, at);
    out += Formatted("<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>", Chart::kLeft - 6, at + 4,
                     SpeedWords(std::pow(10, y)).c_str());
  }
  const double step = std::max(1.0, std::ceil((chart.x1 - chart.x0) / 8));
  for (double x = chart.x0; x <= chart.x1 + 1e-9; x += step)
    out += Formatted("<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>", chart.X(std::exp2(x)),
                     Chart::kHeight - 16, MessageSizeWords(static_cast<int64_t>(std::exp2(x))).c_str());
  return out + Formatted("<line class=\"axis\" x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>", Chart::kLeft,
                         Chart::kHeight - Chart::kBottom, Chart::kWidth - Chart::kRight,
                         Chart::kHeight - Chart::kBottom);
}

std::string ChartOf(const Sweep& sweep, const ModelCheck* check) {
  Chart chart;
  double least = HUGE_VAL, most = 0, first = HUGE_VAL, last = 0, factor = 0;
  for (const SweepPoint& point : sweep.points) {
    const double rate = ShownRate(point);
    if (rate <= 0) continue;
    least = std::min(least, rate), most = std::max(most, rate);
    first = std::min(first, static_cast<double>(point.bytes)), last = std::max(last, static_cast<double>(point.bytes));
    if (point.time_us > 0) factor = rate * point.time_us * 1000 / static_cast<double>(point.bytes);
  }
  if (check)
    for (const ModelPoint& point : check->points) most = std::max(most, point.predicted_gbs);
  if (most <= 0 || last <= first) return "";
  chart.x0 = std::log2(first), chart.x1 = std::log2(last);
  chart.y0 = std::log10(least) - 0.1, chart.y1 = std::log10(most) + 0.1;
  std::string out = Formatted("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Bandwidth over size\">",
                              Chart::kWidth, Chart::kHeight) +
                    Axes(chart);
  for (const FitSegment& one : sweep.fit.segments) {
    if (factor <= 0) break;
    std::string path;
    for (int i = 0; i <= 24; ++i) {
      const double bytes = one.first_bytes * std::pow(one.last_bytes / one.first_bytes, i / 24.0);
      const double time = one.alpha_us + one.beta_us_per_byte * bytes;
      if (time > 0 && bytes > 0)
        path +=
            Formatted("%s%.1f %.1f", path.empty() ? "M" : "L", chart.X(bytes), chart.Y(bytes / time / 1000 * factor));
    }
    out += "<path class=\"fit\" d=\"" + path + "\"/>";
  }
  if (check) {
    std::string path;
    for (const ModelPoint& point : check->points)
      if (point.predicted_gbs > 0)
        path += Formatted("%s%.1f %.1f", path.empty() ? "M" : "L", chart.X(static_cast<double>(point.bytes)),
                          chart.Y(point.predicted_gbs));
    out += "<path class=\"model\" d=\"" + path + "\"/>";
  }
  for (const SweepPoint& point : sweep.points)
    if (ShownRate(point) > 0)
      out += Formatted("<circle class=\"dot\" r=\"3\" cx=\"%.1f\" cy=\"%.1f\"/>",
                       chart.X(static_cast<double>(point.bytes)), chart.Y(ShownRate(point)));
  return out + "</svg><p>Dots: measured. Solid: fit. " +
         std::string(check ? "Dashed: NCCL's model of this machine." : "") + "</p>\n";
}

std::string WaterfallChart(const ModelCheck& check) {
  const Waterfall& fall = check.waterfall;
  if (fall.losses.empty() || fall.line_gbs <= 0) return "";
  double most = fall.line_gbs;
  for (const WaterfallLoss& loss : fall.losses) most = std::max({most, loss.before_gbs, loss.after_gbs});
  const double row = 24, height = row * static_cast<double>(fall.losses.size() + 1) + 8;
  std::string out = "<h3>Where the bandwidth goes at " + EscapeForHtml(MessageSizeWords(fall.bytes)) + "</h3><p>From " +
                    EscapeForHtml(fall.top) + " to " + SpeedWords(fall.measured_gbs) + " measured.</p>" +
                    Formatted("<svg viewBox=\"0 0 860 %.0f\" role=\"img\" aria-label=\"Losses by step\">", height);
  const auto width = [&](double gbs) { return std::max(0.0, gbs) / most * 420; };
  out += Formatted(
      "<text x=\"0\" y=\"17\">line rate</text><rect class=\"bar\" x=\"130\" y=\"4\" width=\"%.1f\" "
      "height=\"16\"/><text x=\"560\" y=\"17\">%s</text>",
      width(fall.line_gbs), SpeedWords(fall.line_gbs).c_str());
  double y = row;
  for (const WaterfallLoss& loss : fall.losses) {
    out += Formatted("<text x=\"0\" y=\"%.0f\">", y + 17) + EscapeForHtml(Name(loss.step)) + "</text>";
    out += Formatted("<rect class=\"bar\" x=\"130\" y=\"%.0f\" width=\"%.1f\" height=\"16\"/>", y + 4,
                     width(std::min(loss.after_gbs, loss.before_gbs)));
    if (loss.Lost() > 0)
      out += Formatted("<rect class=\"lost\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"16\"/>",
                       130 + width(loss.after_gbs), y + 4, width(loss.Lost()));
    out +=
        Formatted("<text x=\"560\" y=\"%.0f\">%+.2f GB/s ", y + 17, -loss.Lost()) + EscapeForHtml(loss.who) + "</text>";
    y += row;
  }
  return out + "</svg>\n" + (fall.missing.empty() ? "" : "<p>Missing: " + EscapeForHtml(fall.missing) + ".</p>\n");
}

std::string MatrixTable(const PairMatrixView& view) {
  constexpr size_t kMostCells = 40000;
  const BenchmarkMatrix& matrix = view.matrix;
  std::string out = "<h2>" + EscapeForHtml(matrix.title) + (matrix.is_latency ? ", µs" : ", GB/s") + "</h2>";
  for (const SlowPart& part : SlowPartsOf(view))
    out +=
        "<p class=\"fault\">" + EscapeForHtml(part.name) + ": " + PercentWords(part.share) + " of comparable cells</p>";
  if (matrix.rows.size() * matrix.columns.size() > kMostCells) return out + "<p>Too many cells to show.</p>";
  out += "<table><tr><th></th>";
  for (const std::string& column : matrix.columns) out += "<th>" + EscapeForHtml(column) + "</th>";
  out += "</tr>";
  const auto listed = [](const std::vector<uint32_t>& list, uint32_t one) {
    return std::count(list.begin(), list.end(), one) > 0;
  };
  for (uint32_t r = 0; r < matrix.cells.size(); ++r) {
    out += "<tr><th>" + EscapeForHtml(r < matrix.rows.size() ? matrix.rows[r] : "") + "</th>";
    for (uint32_t c = 0; c < matrix.cells[r].size(); ++c) {
      bool slow = listed(view.slow_rows, r) || listed(view.slow_columns, c) || listed(view.slow_members, r) ||
                  listed(view.slow_members, c);
      for (const PairCell& cell : view.slow_cells) slow = slow || (cell.row == r && cell.column == c);
      const double value = matrix.cells[r][c];
      out += std::string(slow ? "<td class=\"slow\">" : "<td>") + (std::isnan(value) ? "" : FixedWords(value, 2)) +
             "</td>";
    }
    out += "</tr>";
  }
  return out + "</table>\n";
}

}  // namespace

std::string RenderBandwidthHtml(const BandwidthAnswer& answer) {
  std::string out(kHead);
  for (const BandwidthFault& fault : answer.faults)
    out += "<p class=\"fault\"><b>" + EscapeForHtml(fault.cause) + "</b>: " + EscapeForHtml(fault.headline) + "</p>\n";
  for (size_t i = 0; i < answer.view.sweeps.size(); ++i) {
    const Sweep& sweep = answer.view.sweeps[i];
    const ModelCheck* check = answer.view.CheckOf(i);
    out += "<h2>" + EscapeForHtml(SweepWords(sweep)) + "</h2>\n" + ChartOf(sweep, check);
    bool normal = false;
    if (const std::string words = NormalWords(answer.view, i, &normal); !words.empty())
      out += "<p><b>Is this normal?</b> " + EscapeForHtml(words) + "</p>\n";
    if (check) out += WaterfallChart(*check);
  }
  for (const PairMatrixView& matrix : answer.view.matrices) out += MatrixTable(matrix);
  out += "<h2>All figures</h2><pre>" + EscapeForHtml(RenderBandwidthText(answer, {.width = 110, .verbose = true})) +
         "</pre>\n";
  return out + "</body></html>\n";
}

}  // namespace tacet
