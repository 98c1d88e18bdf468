// SPDX-License-Identifier: Apache-2.0
#include "render/report/prometheus_render.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/utf8.h"

namespace tacet {
namespace {

// Label values are UTF-8; only these three characters must be escaped. Control characters and malformed bytes of
// hostile names become visible escapes first.
void AppendValue(std::string& out, std::string_view value) {
  for (const char c : EscapeForTerminal(value)) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

void AppendNumber(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    char text[40];
    out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
}

void AppendSeries(std::string& out, std::string_view name, std::string_view suffix, const MetricLabels& labels,
                  std::string_view bound = {}) {
  out.append(name).append(suffix);
  if (!labels.empty() || !bound.empty()) out += '{';
  bool first = true;
  for (const auto& [label, value] : labels) {
    if (!first) out += ',';
    first = false;
    out.append(label).append("=\"");
    AppendValue(out, value);
    out += '"';
  }
  if (!bound.empty()) out.append(first ? "" : ",").append("le=\"").append(bound).append("\"");
  if (!labels.empty() || !bound.empty()) out += '}';
  out += ' ';
}

void AppendHistogram(std::string& out, const MetricFamily& family, const MetricHistogram& histogram) {
  uint64_t seen = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    seen += histogram.counts[i];
    std::string bound = "+Inf";
    if (histogram.bounds != nullptr && i < histogram.bounds->size()) {
      bound.clear();
      AppendNumber(bound, (*histogram.bounds)[i]);
    }
    AppendSeries(out, family.name, "_bucket", histogram.labels, bound);
    out.append(std::to_string(seen)).append("\n");
  }
  AppendSeries(out, family.name, "_sum", histogram.labels);
  AppendNumber(out, histogram.sum);
  out += '\n';
  AppendSeries(out, family.name, "_count", histogram.labels);
  out.append(std::to_string(seen)).append("\n");
}

std::string_view Name(MetricType type) {
  switch (type) {
    case MetricType::counter: return "counter";
    case MetricType::gauge: return "gauge";
    case MetricType::histogram: return "histogram";
  }
  return "untyped";
}

}  // namespace

std::string RenderPrometheus(const std::vector<MetricFamily>& families) {
  std::string out;
  for (const MetricFamily& family : families) {
    if (family.samples.empty() && family.histograms.empty()) continue;
    out.append("# HELP ").append(family.name).append(" ").append(family.help).append("\n");
    out.append("# TYPE ").append(family.name).append(" ").append(Name(family.type)).append("\n");
    for (const MetricSample& sample : family.samples) {
      AppendSeries(out, family.name, "", sample.labels);
      AppendNumber(out, sample.value);
      out += '\n';
    }
    for (const MetricHistogram& histogram : family.histograms) AppendHistogram(out, family, histogram);
  }
  return out;
}

}  // namespace tacet
