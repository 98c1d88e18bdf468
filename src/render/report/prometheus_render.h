// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tacet {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricSample {
  MetricLabels labels;
  double value = 0;
};

// Counts by upper bound; the last count is of what lies above all bounds.
struct MetricHistogram {
  MetricLabels labels;
  const std::vector<double>* bounds = nullptr;
  std::vector<uint64_t> counts;
  double sum = 0;
};

enum class MetricType { counter, gauge, histogram };

struct MetricFamily {
  std::string name;
  MetricType type = MetricType::gauge;
  std::string help;
  std::vector<MetricSample> samples;
  std::vector<MetricHistogram> histograms;
};

// Prometheus' text format: HELP and TYPE once a family, all samples of a family together, label values escaped.
// Families without samples are left out.
std::string RenderPrometheus(const std::vector<MetricFamily>& families);

}  // namespace tacet
