// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "live/box_watch.h"
#include "render/prometheus_render.h"

namespace tacet {

// Six classes by the whole operation's bytes: "4KiB" holds what is not larger than that, "larger" what exceeds 256 MiB.
inline constexpr int kSizeClasses = 6;
int SizeClassOf(int64_t bytes);
std::string_view SizeClassName(int size_class);

// What a scrape shows of finished operations. Label sets are bounded: at most `most_groups` pairs of job and group are
// told apart, all others share group="other"; a job is forgotten once none of its boxes is left.
//
//     histogram label sets <= (most_groups + jobs) * 13 operations * 6 size classes
//     per-rank label sets  <= boxes * 13 operations
class OperationMetrics {
 public:
  explicit OperationMetrics(size_t most_groups = 64) : most_groups_(most_groups) {}
  void Add(const FinishedOperation& finished);
  void ForgetJobsNotIn(const HostState& state);
  void AppendTo(std::vector<MetricFamily>& families) const;

 private:
  using SeriesKey = std::tuple<std::string, std::string, OpKind, int>;  // job, group, operation, size class
  struct Series {
    std::vector<uint64_t> duration, bandwidth;
    double duration_sum = 0, bandwidth_sum = 0, bytes = 0;
    uint64_t count = 0;
  };
  using RankKey =
      std::tuple<std::string, int32_t, int64_t, OpKind>;  // job, rank, pid where the rank is unknown, operation
  struct RankSeries {
    double seconds = 0, bytes = 0;
    uint64_t count = 0;
  };
  const std::string& GroupLabel(const std::string& job, const FinishedOperation& finished);

  size_t most_groups_;
  std::map<std::pair<std::string, std::string>, std::string> groups_;  // (job, name) -> label
  std::map<SeriesKey, Series> series_;
  std::map<RankKey, RankSeries> ranks_;
};

std::string GroupNameOf(const CommState& comm);      // its name, else "size 8"
std::string RankLabelOf(int32_t rank, int64_t pid);  // "5", or "pid4711" where the rank is unknown

}  // namespace tacet
