// SPDX-License-Identifier: Apache-2.0
#include "live/state_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "live/agent/operation_metrics.h"
#include "live/server/fetch_window.h"

namespace tacet {
namespace {

// Nobody has more GPUs than that in one node; what is beyond is in the state, not in the metrics.
constexpr size_t kMostRanksOfUser = 128;

constexpr std::string_view kCauseNames[] = {"own_gpu", "peer_credit", "network", "data"};

// The longest that a network step of an operation in flight has waited so far, by cause. The sums of the box grow only
// when a step is done, which in a hang it never is.
std::array<double, box::kCauses> LongestWaits(const BoxState& box) {
  static_assert(static_cast<int>(FlowWait::data) == box::kCauses);
  std::array<double, box::kCauses> longest{};
  for (const OperationState& op : box.operations)
    for (const FlowState& flow : op.flows) {
      if (flow.waiting == FlowWait::nothing || flow.waiting_ns < 0) continue;
      double& seconds = longest[static_cast<size_t>(flow.waiting) - 1];
      seconds = std::max(seconds, static_cast<double>(flow.waiting_ns) / 1e9);
    }
  return longest;
}

void AppendRanks(const AgentState& state, const Viewer& viewer, std::vector<MetricFamily>& families) {
  MetricFamily in_flight{
      "tacet_operations_in_flight", MetricType::gauge, "Operations issued and not yet finished", {}, {}};
  MetricFamily oldest{"tacet_oldest_operation_age_seconds",
                      MetricType::gauge,
                      "Age of the oldest operation in flight, 0 without any",
                      {},
                      {}};
  MetricFamily beat{
      "tacet_heartbeat_age_seconds", MetricType::gauge, "Time since the plugin's thread last ran", {}, {}};
  MetricFamily waits{"tacet_network_wait_seconds_total",
                     MetricType::counter,
                     "Time network steps waited, by cause, summed over steps",
                     {},
                     {}};
  MetricFamily issued{"tacet_operations_issued_total",
                      MetricType::counter,
                      "Operations issued, all communicators: a rank behind its peers makes them wait",
                      {},
                      {}};
  MetricFamily flows{"tacet_flow_wait_seconds",
                     MetricType::gauge,
                     "Longest wait of a network step of an operation in flight, by cause",
                     {},
                     {}};
  MetricFamily drops{
      "tacet_events_dropped_total", MetricType::counter, "What could not be recorded, by reason", {}, {}};
  MetricFamily lapped{"tacet_ring_lapped_total",
                      MetricType::counter,
                      "Finished operations overwritten before the agent read them",
                      {},
                      {}};
  MetricFamily process{"tacet_process_info", MetricType::gauge, "Names of a process in launcher and scheduler", {}, {}};
  std::set<std::tuple<JobKey, int32_t, int64_t>> told;
  std::map<int64_t, size_t> told_of;  // by user
  for (const BoxState& box : state.host.boxes) {
    // A process that ended says nothing new; and an agent outlives many that had the same pid. Pods have the same pids.
    if (!box.IsLive() || !viewer.Sees(box.uid) || !told.insert({JobOf(box), box.rank, box.pid}).second) continue;
    if (++told_of[box.uid] > kMostRanksOfUser) continue;
    const MetricLabels labels = {{"job_id", box.job},
                                 {"uid", UidLabelOf(box.uid)},
                                 {"rank", RankLabelOf(box.rank, box.pid)},
                                 {"pid", std::to_string(box.pid)}};
    const auto with = [&](std::string name, std::string_view value) {
      MetricLabels more = labels;
      more.emplace_back(std::move(name), value);
      return more;
    };
    MetricLabels names = labels;
    names.insert(names.end(), {{"node", box.host},
                               {"slurm_job_id", box.ids.slurm_job},
                               {"slurm_step_id", box.ids.slurm_step},
                               {"pod", box.ids.kubernetes_pod},
                               {"namespace", box.ids.kubernetes_namespace},
                               {"run_id", box.ids.torchelastic_run}});
    process.samples.push_back({std::move(names), 1});
    const double age = box.operations.empty() ? 0 : static_cast<double>(box.operations.front().age_ns) / 1e9;
    in_flight.samples.push_back({labels, static_cast<double>(box.operations_total)});
    oldest.samples.push_back({labels, age});
    if (box.heartbeat_age_ns >= 0) beat.samples.push_back({labels, static_cast<double>(box.heartbeat_age_ns) / 1e9});
    for (size_t cause = 0; cause < box.wait_seconds.size(); ++cause)
      waits.samples.push_back({with("cause", kCauseNames[cause]), box.wait_seconds[cause]});
    const auto longest = LongestWaits(box);
    for (size_t cause = 0; cause < longest.size(); ++cause)
      flows.samples.push_back({with("cause", kCauseNames[cause]), longest[cause]});
    issued.samples.push_back({labels, static_cast<double>(IssuedBy(box))});
    for (size_t i = 0; i < box.drops.size() && !DropName(i).empty(); ++i)
      drops.samples.push_back({with("reason", DropName(i)), static_cast<double>(box.drops[i])});
    lapped.samples.push_back({labels, static_cast<double>(box.lapped)});
  }
  for (MetricFamily* family : {&process, &issued, &in_flight, &oldest, &beat, &waits, &flows, &drops, &lapped})
    families.push_back(std::move(*family));
}

void AppendCounts(const AgentState& state, const Viewer& viewer, std::vector<MetricFamily>& families) {
  MetricFamily boxes{
      "tacet_boxes", MetricType::gauge, "Black boxes below the box folder, by whether they are readable", {}, {}};
  MetricFamily processes{
      "tacet_processes", MetricType::gauge, "Processes with a black box, by their state in the kernel", {}, {}};
  std::map<std::string, int> troubles = {{"none", 0}};
  std::array<int, 6> sights{};
  for (const BoxState& box : state.host.boxes) {
    if (!viewer.Sees(box.uid)) continue;
    ++troubles[box.trouble.empty() ? "none" : box.trouble];
    if (box.trouble.empty()) ++sights[static_cast<size_t>(box.sight)];
  }
  for (const auto& [trouble, count] : troubles)
    boxes.samples.push_back({{{"trouble", trouble}}, static_cast<double>(count)});
  for (size_t i = 0; i < sights.size(); ++i)
    processes.samples.push_back(
        {{{"state", std::string(Name(static_cast<ProcessSight>(i)))}}, static_cast<double>(sights[i])});
  families.push_back(std::move(boxes));
  families.push_back(std::move(processes));
}

void AppendHangs(const AgentState& state, const Viewer& viewer, std::vector<MetricFamily>& families) {
  MetricFamily hang{"tacet_hang_suspected",
                    MetricType::gauge,
                    "1 while a job has an operation that makes no progress, else 0",
                    {},
                    {}};
  MetricFamily still{
      "tacet_hang_still_seconds", MetricType::gauge, "Time without progress in the hanging group", {}, {}};
  std::map<JobKey, int64_t> jobs;
  std::map<int64_t, size_t> told_of;  // by user
  for (const HangSuspicion& suspicion : state.suspicions) {
    int64_t& still_ns = jobs[{suspicion.uid, suspicion.job}];
    still_ns = std::max({still_ns, suspicion.still_ns, int64_t{1}});
  }
  for (const BoxState& box : state.host.boxes)
    if (box.trouble.empty() && told_of[box.uid] < kMostRanksOfUser && jobs.emplace(JobOf(box), 0).second)
      ++told_of[box.uid];
  for (const auto& [job, still_ns] : jobs) {
    if (!viewer.Sees(job.uid)) continue;
    const MetricLabels labels = {{"job_id", job.name}, {"uid", UidLabelOf(job.uid)}};
    hang.samples.push_back({labels, still_ns > 0 ? 1.0 : 0.0});
    still.samples.push_back({labels, static_cast<double>(still_ns) / 1e9});
  }
  families.push_back(std::move(hang));
  families.push_back(std::move(still));
}

}  // namespace

void AppendStateMetrics(const AgentState& state, const Viewer& viewer, std::vector<MetricFamily>& families) {
  AppendCounts(state, viewer, families);
  AppendRanks(state, viewer, families);
  AppendHangs(state, viewer, families);
}

}  // namespace tacet
