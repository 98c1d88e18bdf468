// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "http/http_message.h"
#include "live/agent/box_watch.h"
#include "render/report/prometheus_render.h"

namespace tacet {

// Six classes by the whole operation's bytes: "4KiB" holds what is not larger than that, "larger" what exceeds 256 MiB.
inline constexpr int kSizeClasses = 6;
int SizeClassOf(int64_t bytes);
std::string_view SizeClassName(int size_class);

// What a scrape shows of finished operations. Label sets are bounded for each user: at most `most_groups` pairs of job
// and group are told apart, all others share group="other", and of more than `most_series` label sets the rest share
// job_id="other" as well. A job is forgotten once none of its boxes is left.
//
//     histogram label sets <= users * (most_series + 13 operations * 6 size classes)
//     per-rank label sets  <= users * (most_series + 13 operations)
class OperationMetrics {
 public:
  explicit OperationMetrics(size_t most_groups = 64, size_t most_series = 1024)
      : most_groups_(most_groups), most_series_(most_series) {}
  void Add(const FinishedOperation& finished);
  void ForgetJobsNotIn(const HostState& state);
  void AppendTo(std::vector<MetricFamily>& families, const Viewer& viewer) const;

 private:
  using SeriesKey = std::tuple<JobKey, std::string, OpKind, int>;  // job, group, operation, size class
  struct Series {
    std::vector<uint64_t> duration, bandwidth;
    double duration_sum = 0, bandwidth_sum = 0, bytes = 0;
    uint64_t count = 0;
  };
  using RankKey = std::tuple<JobKey, int32_t, int64_t, OpKind>;  // job, rank, pid where the rank is unknown, operation
  struct RankSeries {
    double seconds = 0, bytes = 0;
    uint64_t count = 0;
  };
  const std::string& GroupLabel(const JobKey& job, const FinishedOperation& finished);
  struct Counts {
    size_t groups = 0, series = 0, ranks = 0;
  };
  template <typename Map>
  typename Map::mapped_type& Place(Map& map, typename Map::key_type key, typename Map::key_type otherwise,
                                   size_t* count);

  size_t most_groups_, most_series_;
  std::map<int64_t, Counts> counts_;                 // by user
  std::set<std::pair<JobKey, std::string>> groups_;  // told apart
  std::map<SeriesKey, Series> series_;
  std::map<RankKey, RankSeries> ranks_;
};

std::string GroupNameOf(const CommState& comm);      // its name, else "size 8"
std::string UidLabelOf(int64_t uid);                 // empty where it is unknown
std::string RankLabelOf(int32_t rank, int64_t pid);  // "5", or "pid4711" where the rank is unknown

}  // namespace tacet
