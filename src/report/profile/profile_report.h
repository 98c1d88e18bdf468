// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/timing/clock_alignment.h"
#include "analysis/timing/communication_table.h"
#include "analysis/timing/ddp_buckets.h"
#include "analysis/timing/expert_balance.h"
#include "analysis/timing/fsdp_volume.h"
#include "analysis/timing/memory_use.h"
#include "analysis/timing/mfu.h"
#include "analysis/timing/overlap.h"
#include "analysis/timing/pipeline.h"
#include "analysis/timing/straggler.h"
#include "analysis/timing/time_budget.h"
#include "analysis/timing/whatif_replay.h"

namespace tacet {

// What the user knows and the traces do not tell. 0: not given.
struct ProfileOptions {
  TransformerShape model;
  double tokens_per_step = 0;  // of the whole job
  bool full_recompute = false;
  double peak_tflops = 0;  // of one device; else by its name
  double peak_gbs = 0;     // of one device's link; else by its name
  unsigned threads = 0;    // 0: one per core
};

struct ProfileRank {
  Rank rank;
  std::string host, device;  // empty where unknown
  size_t steps = 0;
  // Mean of a step. total_ns() is step_ns, exactly: what integer division leaves over goes to the largest part.
  TimeBudget mean;
  int64_t step_ns = 0;
  Overlap overlap;  // over the whole trace
  std::optional<MemoryUse> memory;
  bool cut = false;  // the file ended early
};

struct ProfileTableRow {
  CommunicationRow row;
  std::string group;           // for people; groups of one role share it ("mesh_tp")
  std::string members;         // "ranks 0-1"
  size_t groups = 1;           // how many groups a line sums up
  bool several_hosts = false;  // its members are on different hosts: the network card is the limit, else the link
  bool over_sockets = false;   // NCCL's log shows TCP sockets between its members
  double peak_gbs = 0;         // of the link that is used; 0 where unknown, as for TCP sockets
  double faster_gbs = 0;       // over TCP sockets: the peak of the link that the GPU has beside them; 0: none is known
  double share_of_peak = 0;    // bus bandwidth over peak_gbs
  double wait_share = 0;       // waiting / (waiting + transfer), of all members
};

// How much of the step the kernels of the groups of one role take on their members, on average: the price of a
// strategy.
struct GroupShare {
  std::string group;
  size_t groups = 1;
  int32_t size = -1;
  size_t calls = 0;
  double share = 0;
};

struct ProfileUtilisation {
  std::string_view source;  // "model", "transformer shape", "matrix shapes"
  double mfu = 0, hfu = 0;  // 0 where not computable
  double flops = 0;         // of the hardware, per device and step
  double peak_tflops = 0;
};

// One value per step, for comparisons between runs.
struct ProfileSeries {
  std::string name;
  std::vector<double> values;  // ns
  double bytes = 0;            // moved in a usual step; 0 where that does not matter
};

enum class ProfileVerdict : uint8_t {
  undetermined,
  compute_bound,
  communication_bound,
  host_bound,
  copy_bound,  // only copies run
  pipeline_bubble,
  balanced
};
// Communication that waits for late ranks for more than this share is their doing.
inline constexpr double kMostlyWaiting = 0.5;
std::string_view Name(ProfileVerdict verdict);  // "compute-bound"

struct Advice {
  std::string what, why;
  double gain = 0;           // share of the step time
  bool at_most = false;      // an upper bound, not a prediction
  double low = 0, high = 0;  // interval of the gain, at 95 %; equal where none is known
};

struct ProfileReport {
  std::string job;  // tells jobs apart; empty for one
  std::string
      source;  // "profiler traces", "NCCL Inspector", "black boxes", "timed flight records", "pipeline timeline"
  std::string network;  // what NCCL's log says it uses between hosts ("Socket", "IB"); empty without a log
  int64_t world_size = -1;
  std::vector<int> ranks;
  std::vector<std::vector<Rank>> shared_gpus;  // the ranks of each GPU that several ranks use
  std::string split_host;                      // the only host, where NCCL_HOSTID makes NCCL count it as `split_into`
  size_t split_into = 0;
  size_t steps = 0;
  int64_t step_ns = 0;  // mean over steps of the median rank; 0 where no steps are known

  ProfileVerdict verdict = ProfileVerdict::undetermined;
  std::string headline;
  std::string setup;  // what is unusual about the hardware below: ranks that share a GPU; empty where nothing is known
  std::vector<Advice> advice;  // most gain first, three at most

  std::vector<ProfileRank> budgets;            // by rank
  TimeBudget mean;                             // over ranks; total_ns() is the mean step exactly
  std::vector<ProfileTableRow> table;          // a line for each group, operation and size class
  std::vector<ProfileTableRow> table_by_role;  // the same with groups of one role joined
  std::vector<GroupShare> groups;
  double wait_share = 0;    // waiting for peers over the time of the operations of which it is known
  bool times_wrong = false;  // of operations that NCCL reported to its profiler: nobody is judged by them
  bool wait_known = false;  // some operation was recorded by two members or more
  std::string mixed;        // the traces are not of one job: how that is known; empty where they may be
  double communication_efficiency =
      0;                           // time the transfers need at the link's peak over the time they took; 0: unknown
  double communication_share = 0;  // from records without a trace: kernels of the busiest group over the step
  ClockAlignment clocks;
  StragglerReport stragglers;
  std::vector<WhatIfReport> what_if;
  double replay_compute_share = 0;  // of a pipeline timeline: workers' time in computes over all their time
  PipelineReport pipeline;
  DdpReport ddp;
  FsdpReport fsdp;
  ExpertReport experts;
  std::string ddp_group, fsdp_group, expert_group;
  std::optional<ProfileUtilisation> utilisation;
  double overlap_ratio = 0, overlap_efficiency = 0;  // of `mean`
  std::vector<ProfileSeries> series;
  std::vector<std::string> remarks;  // what could not be told, and why
};

ProfileReport BuildProfile(const Incident& incident, const ProfileOptions& options);

// What each printed number means.
struct Definition {
  std::string_view name, definition;
};
std::span<const Definition> ProfileDefinitions();

}  // namespace tacet
