// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "render/bandwidth/bandwidth_render.h"
#include "render/prediction/prediction_render.h"

namespace tacet {
namespace {

struct PlotFrame {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;  // logarithms
  size_t width = 0, height = 0;
  // Column and row from the top left; false where it lies outside.
  bool Place(double bytes, double gbs, size_t* column, size_t* row) const {
    if (bytes <= 0 || gbs <= 0) return false;
    const double x = (std::log2(bytes) - x0) / std::max(1e-9, x1 - x0);
    const double y = (std::log10(gbs) - y0) / std::max(1e-9, y1 - y0);
    if (x < -1e-9 || x > 1 + 1e-9 || y < -1e-9 || y > 1 + 1e-9) return false;
    *column = static_cast<size_t>(std::lround(x * static_cast<double>(width - 1)));
    *row = static_cast<size_t>(std::lround((1 - y) * static_cast<double>(height - 1)));
    return *column < width && *row < height;
  }
};

// "0.00478 GB/s" beside the first, the last and the middle row.
std::vector<std::string> RateLabels(const PlotFrame& frame) {
  std::vector<std::string> labels(frame.height);
  for (const size_t i : {size_t{0}, frame.height / 2, frame.height - 1})
    labels[i] = SpeedWords(std::pow(
        10, frame.y1 - (frame.y1 - frame.y0) * static_cast<double>(i) / static_cast<double>(frame.height - 1)));
  return labels;
}

double RateOfPoint(const SweepPoint& point) { return point.bus_gbs > 0 ? point.bus_gbs : point.algorithm_gbs; }

}  // namespace

std::vector<std::string> PlotSweep(const Sweep& sweep, const ModelCheck* check, size_t width, size_t height) {
  PlotFrame frame;
  double least = HUGE_VAL, most = 0, first = HUGE_VAL, last = 0, factor = 0;
  std::set<int64_t> sizes;
  for (const SweepPoint& point : sweep.points) {
    const double rate = RateOfPoint(point);
    if (rate <= 0) continue;
    sizes.insert(point.bytes);
    least = std::min(least, rate), most = std::max(most, rate);
    first = std::min(first, static_cast<double>(point.bytes)), last = std::max(last, static_cast<double>(point.bytes));
    if (point.time_us > 0) factor = rate * point.time_us * 1000 / static_cast<double>(point.bytes);
  }
  if (check)
    for (const ModelPoint& point : check->points) most = std::max(most, point.predicted_gbs);
  // Two points need no picture, and size over latency is no bandwidth.
  constexpr size_t kLeastSizes = 3;
  if (most <= 0 || sizes.size() < kLeastSizes || height < 4 || sweep.IsLatencyTest()) return {};
  frame.height = height;
  frame.x0 = std::log2(first), frame.x1 = std::log2(last);
  frame.y0 = std::log10(least), frame.y1 = std::log10(most);
  if (frame.y1 - frame.y0 < 0.05) frame.y0 -= 0.05, frame.y1 += 0.05;
  const std::vector<std::string> labels = RateLabels(frame);
  size_t label_width = 12;
  for (const std::string& label : labels) label_width = std::max(label_width, label.size());
  if (width < label_width + 20) return {};
  frame.width = width - label_width - 2;
  std::vector<std::string> canvas(frame.height, std::string(frame.width, ' '));
  size_t column = 0, row = 0;
  const bool fitted = sweep.FitTells();
  if (fitted && factor > 0)
    for (size_t i = 0; i < frame.width; ++i) {
      const double bytes =
          std::exp2(frame.x0 + (frame.x1 - frame.x0) * static_cast<double>(i) / static_cast<double>(frame.width - 1));
      const double time = sweep.fit.TimeAt(bytes);
      if (time > 0 && frame.Place(bytes, bytes / time / 1000 * factor, &column, &row)) canvas[row][i] = '-';
    }
  if (check)
    for (const ModelPoint& point : check->points)
      if (frame.Place(static_cast<double>(point.bytes), point.predicted_gbs, &column, &row)) canvas[row][column] = 'o';
  for (const SweepPoint& point : sweep.points)
    if (frame.Place(static_cast<double>(point.bytes), RateOfPoint(point), &column, &row)) canvas[row][column] = '*';
  const bool bus = std::any_of(sweep.points.begin(), sweep.points.end(),
                               [](const SweepPoint& p) { return p.bus_gbs > 0 && p.bus_gbs != p.algorithm_gbs; });
  std::vector<std::string> out = {std::string(label_width + 2, ' ') + (bus ? "bus bandwidth" : "bandwidth") +
                                  " by size (log scales)"};
  for (size_t i = 0; i < canvas.size(); ++i) {
    while (!canvas[i].empty() && canvas[i].back() == ' ') canvas[i].pop_back();
    out.push_back(std::string(label_width - labels[i].size(), ' ') + labels[i] + " |" + canvas[i]);
  }
  const std::string left = MessageSizeWords(static_cast<int64_t>(first)),
                    right = MessageSizeWords(static_cast<int64_t>(last));
  out.push_back(std::string(label_width + 1, ' ') + "+" + std::string(frame.width, '-'));
  const size_t gap = frame.width > left.size() + right.size() ? frame.width - left.size() - right.size() : 1;
  out.push_back(std::string(label_width + 2, ' ') + left + std::string(gap, ' ') + right);
  const bool sides = std::any_of(sweep.points.begin(), sweep.points.end(),
                                 [&](const SweepPoint& p) { return p.in_place != sweep.points.front().in_place; });
  out.push_back(std::string(label_width + 2, ' ') + "* measured" + (sides ? ", in place and out of place" : "") +
                (fitted ? "   - fit" : "") + (check ? "   o NCCL's model" : ""));
  return out;
}

}  // namespace tacet
