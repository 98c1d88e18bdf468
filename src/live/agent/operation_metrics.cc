// SPDX-License-Identifier: Apache-2.0
#include "live/agent/operation_metrics.h"

#include <algorithm>

namespace tacet {
namespace {

const std::vector<double> kDurationBounds = {1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 60};
const std::vector<double> kBandwidthBounds = {1e8, 3e8, 1e9, 3e9, 1e10, 2e10, 5e10, 1e11, 2e11, 4e11, 8e11};
constexpr int64_t kClassBounds[kSizeClasses - 1] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20};
constexpr std::string_view kClassNames[kSizeClasses] = {"4KiB", "64KiB", "1MiB", "16MiB", "256MiB", "larger"};
const std::string kOther = "other";

void Count(std::vector<uint64_t>& counts, const std::vector<double>& bounds, double value) {
  counts.resize(bounds.size() + 1);
  ++counts[static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin())];
}

}  // namespace

int SizeClassOf(int64_t bytes) {
  return static_cast<int>(std::lower_bound(std::begin(kClassBounds), std::end(kClassBounds), bytes) - kClassBounds);
}
std::string_view SizeClassName(int size_class) { return kClassNames[static_cast<size_t>(size_class)]; }

std::string GroupNameOf(const CommState& comm) {
  if (!comm.name.empty()) return comm.name;
  return comm.size > 0 ? "size " + std::to_string(comm.size) : "unnamed";
}

std::string UidLabelOf(int64_t uid) { return uid < 0 ? "" : std::to_string(uid); }

std::string RankLabelOf(int32_t rank, int64_t pid) {
  return rank >= 0 ? std::to_string(rank) : "pid" + std::to_string(pid);
}

const std::string& OperationMetrics::GroupLabel(const JobKey& job, const FinishedOperation& finished) {
  const std::pair key(job, finished.comm == nullptr ? "unknown" : GroupNameOf(*finished.comm));
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  if (counts_[job.uid].groups >= most_groups_) return kOther;
  ++counts_[job.uid].groups;
  return groups_.insert(key).first->second;
}

// The value of a key; of another one when its user has too many already.
template <typename Map>
typename Map::mapped_type& OperationMetrics::Place(Map& map, typename Map::key_type key,
                                                   typename Map::key_type otherwise, size_t* count) {
  if (const auto found = map.find(key); found != map.end()) return found->second;
  if (*count >= most_series_) return map[std::move(otherwise)];
  ++*count;
  return map[std::move(key)];
}

void OperationMetrics::Add(const FinishedOperation& finished) {
  if (finished.duration_ns < 0) return;  // nobody saw its end
  const BoxState& box = *finished.box;
  const double seconds = static_cast<double>(finished.duration_ns) / 1e9;
  const double bytes = finished.bytes > 0 ? static_cast<double>(finished.bytes) : 0;
  const JobKey job = JobOf(box), rest{box.uid, kOther};
  const int size_class = SizeClassOf(finished.bytes);
  Counts& counts = counts_[box.uid];
  Series& series = Place(series_, {job, GroupLabel(job, finished), finished.kind, size_class},
                         {rest, kOther, finished.kind, size_class}, &counts.series);
  ++series.count;
  series.duration_sum += seconds;
  series.bytes += bytes;
  Count(series.duration, kDurationBounds, seconds);
  if (finished.bus_bytes_per_second > 0) {
    Count(series.bandwidth, kBandwidthBounds, finished.bus_bytes_per_second);
    series.bandwidth_sum += finished.bus_bytes_per_second;
  }
  RankSeries& rank = Place(ranks_, {job, box.rank, box.rank < 0 ? box.pid : 0, finished.kind},
                           {rest, -1, 0, finished.kind}, &counts.ranks);
  ++rank.count;
  rank.seconds += seconds;
  rank.bytes += bytes;
}

void OperationMetrics::ForgetJobsNotIn(const HostState& state) {
  std::set<JobKey> jobs;
  for (const BoxState& box : state.boxes) jobs.insert(JobOf(box)), jobs.insert({box.uid, kOther});
  std::erase_if(groups_, [&](const auto& entry) { return !jobs.contains(entry.first); });
  std::erase_if(series_, [&](const auto& entry) { return !jobs.contains(std::get<0>(entry.first)); });
  std::erase_if(ranks_, [&](const auto& entry) { return !jobs.contains(std::get<0>(entry.first)); });
  counts_.clear();
  for (const auto& [job, name] : groups_) ++counts_[job.uid].groups;
  for (const auto& [key, series] : series_) ++counts_[std::get<0>(key).uid].series;
  for (const auto& [key, series] : ranks_) ++counts_[std::get<0>(key).uid].ranks;
}

void OperationMetrics::AppendTo(std::vector<MetricFamily>& families, const Viewer& viewer) const {
  MetricFamily duration{"tacet_operation_duration_seconds",
                        MetricType::histogram,
                        "Time of finished operations on the GPU, or as the host saw it",
                        {},
                        {}};
  MetricFamily bandwidth{"tacet_operation_bus_bandwidth_bytes_per_second",
                         MetricType::histogram,
                         "Bus bandwidth of finished operations, as nccl-tests define it",
                         {},
                         {}};
  MetricFamily bytes{"tacet_operation_bytes_total", MetricType::counter, "Bytes of finished operations", {}, {}};
  for (const auto& [key, series] : series_) {
    const auto& [job, group, kind, size_class] = key;
    if (!viewer.Sees(job.uid)) continue;
    const MetricLabels labels = {{"job_id", job.name},
                                 {"uid", UidLabelOf(job.uid)},
                                 {"group", group},
                                 {"operation", std::string(Name(kind))},
                                 {"size", std::string(SizeClassName(size_class))}};
    duration.histograms.push_back({labels, &kDurationBounds, series.duration, series.duration_sum});
    if (!series.bandwidth.empty())
      bandwidth.histograms.push_back({labels, &kBandwidthBounds, series.bandwidth, series.bandwidth_sum});
    bytes.samples.push_back({labels, series.bytes});
  }
  MetricFamily count{"tacet_rank_operations_total", MetricType::counter, "Finished operations, by rank", {}, {}};
  MetricFamily seconds{"tacet_rank_operation_seconds_total",
                       MetricType::counter,
                       "Time in finished operations, by rank: the rank with the least makes the others wait",
                       {},
                       {}};
  MetricFamily moved{
      "tacet_rank_operation_bytes_total", MetricType::counter, "Bytes of finished operations, by rank", {}, {}};
  for (const auto& [key, series] : ranks_) {
    const auto& [job, rank, pid, kind] = key;
    if (!viewer.Sees(job.uid)) continue;
    const MetricLabels labels = {{"job_id", job.name},
                                 {"uid", UidLabelOf(job.uid)},
                                 {"rank", RankLabelOf(rank, pid)},
                                 {"operation", std::string(Name(kind))}};
    count.samples.push_back({labels, static_cast<double>(series.count)});
    seconds.samples.push_back({labels, series.seconds});
    moved.samples.push_back({labels, series.bytes});
  }
  for (MetricFamily* family : {&duration, &bandwidth, &bytes, &count, &seconds, &moved})
    families.push_back(std::move(*family));
}

}  // namespace tacet
