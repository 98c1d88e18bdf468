// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_verdict.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

#include "report/profile/profile_gpus.h"

namespace tacet {
namespace {

// A step that computes this much of its time has little else to give.
constexpr double kComputeBound = 0.75;
// A loss must be this much of the step, and this much more than the next one, to give the job its name.
constexpr double kMinLoss = 0.15, kClearLead = 1.25;
// Less than this is within the noise of two runs.
constexpr double kMinGain = 0.01;
// What a well-tuned network reaches of its nominal rate.
constexpr double kReachablePeak = 0.8;
constexpr int64_t kReachesPeak = 64 << 20;  // smaller operations spend much of their time on latency
constexpr size_t kMostAdvice = 3;
// From this share of the slowdown on, the slowest workers are nearly all of it.
constexpr double kMostlyOne = 0.8;
// Less of the step than this is printed as 0.0 %.
constexpr double kWorthSaying = 0.0005;

// As in the table of the budget, so that both sums are 100 %.
std::string TablePercent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

std::string SmallPercent(double share) { return share < kWorthSaying ? "< 0.1 %" : StepPercent(share); }

std::string Times(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f times", factor);
  return text;
}

double ShareOf(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string RankList(const std::vector<Straggler>& stragglers) {
  std::vector<int> ranks;
  for (const Straggler& one : stragglers) ranks.push_back(one.rank.value);
  std::sort(ranks.begin(), ranks.end());
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < 8; ++i) out += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > 8 ? out + ", ..." : out;
}

std::string_view OriginWords(StragglerOrigin origin) {
  switch (origin) {
    case StragglerOrigin::unknown:
      return "these records do not show why it is late; torch.profiler traces of a few steps on all ranks do";
    case StragglerOrigin::gpu_work: return "its GPU works longer: clocks, throttling, another process, or more work";
    case StragglerOrigin::host: return "its host issues work late: CPU contention, garbage collection, .item()";
    case StragglerOrigin::data_loading: return "its host waits for the next batch";
    case StragglerOrigin::uneven_input: return "the rank with the largest input is late: balance the batches";
    case StragglerOrigin::stage: return "its pipeline stage has more work than the others: move layers";
  }
  return "";
}

std::string OriginOf(const ProfileReport& profile, const Straggler& one) {
  if (one.origin == StragglerOrigin::host && one.place.HoldsMostOf(static_cast<double>(one.late_ns)))
    return "its host loses time in one place, " + one.place.Words();
  if (one.among_stages && one.origin == StragglerOrigin::unknown)
    return "its pipeline stage takes longest: it has more work than the others, or its GPU or host is slow";
  // Clocks and temperature are those of everybody who uses the GPU.
  if (one.origin == StragglerOrigin::gpu_work && !profile.shared_gpus.empty())
    return "its kernels take longer, while ranks share a GPU: more work, or a smaller share of the GPU";
  return std::string(OriginWords(one.origin));
}

bool IsIntermittentAlone(const StragglerReport& found) {
  return found.stragglers.size() == 1 && found.stragglers.front().pattern == StragglerPattern::intermittent;
}

// "9 of 55 steps"
std::string StepsOf(const Straggler& one) {
  return std::to_string(one.late_steps) + " of " + std::to_string(one.steps) + " steps";
}

void AddStragglers(const ProfileReport& profile, std::vector<Advice>& out) {
  const StragglerReport& found = profile.stragglers;
  if (found.stragglers.empty()) return;
  const Straggler& worst = found.stragglers.front();
  if (worst.origin == StragglerOrigin::stage) return;  // said with the pipeline
  const std::string stalls = IsIntermittentAlone(found) ? ", which stalls in " + StepsOf(worst) + "," : std::string();
  const CostInterval interval = IntervalOfCost(found);
  out.push_back({"Bring " + RankList(found.stragglers) + stalls + " to the pace of the others",
                 OriginOf(profile, worst), found.cost_share, false, interval.low, interval.high});
}

void AddPipeline(const PipelineReport& pipeline, std::vector<Advice>& out) {
  if (!pipeline.found) return;
  if (pipeline.heaviest >= 0)
    out.push_back({"Move layers away from stage " + std::to_string(pipeline.heaviest),
                   "it computes " + Times(pipeline.imbalance) + " as long as the median of the other stages",
                   pipeline.balance_gain, false});
  const double p = pipeline.stages, m = pipeline.microbatches, v = std::max(1, pipeline.chunks);
  if (p < 2 || m < 1) return;
  const auto time = [&](double microbatches) { return (v * microbatches + p - 1) / (v * microbatches); };
  const std::string twice = std::to_string(2 * pipeline.microbatches);
  out.push_back(
      {"Split the batch into " + twice + " microbatches instead of " + std::to_string(pipeline.microbatches),
       "the bubble of p equal stages and m microbatches is (p-1)/(m+p-1); smaller microbatches must still fill the GPU",
       1 - time(2 * m) / time(m), true});
}

// "data-parallel rank 0 of stage 3 and 2 more workers".
std::string WorkerList(const WhatIfReport& report) {
  const WhatIfReport::Worker& worst = report.workers.front();
  std::string out = "data-parallel rank " + std::to_string(worst.dp_rank) + " of stage " + std::to_string(worst.stage);
  if (report.worst_workers > 1)
    out += " and " + std::to_string(report.worst_workers - 1) + " more worker" + (report.worst_workers > 2 ? "s" : "");
  return out;
}

void AddReplay(const std::vector<WhatIfReport>& reports, std::vector<Advice>& out) {
  for (const WhatIfReport& report : reports) {
    if (!report.valid || report.slowdown <= 1) continue;
    const double lost = 1 - 1 / report.slowdown;
    const std::string where = reports.size() > 1 && !report.file.empty() ? " (" + report.file + ")" : std::string();
    const auto gained = [&](double share) { return std::min(1.0, lost * share); };
    // A worker that is named explains its stage, and a stage that is named explains its workers.
    const StragglerReport named = FindStragglersInReplay(report);
    const bool one_stage = !named.stragglers.empty() && named.stragglers.front().origin == StragglerOrigin::stage;
    if (one_stage)
      out.push_back({"Move layers away from stage " + std::to_string(report.worst_stage) + where,
                     "with typical times there the step would be this much shorter", std::min(lost, named.cost_share),
                     true});
    if (report.worst_workers_share > 0 && !one_stage)
      out.push_back({"Bring " + WorkerList(report) + " to the pace of the others" + where,
                     std::string(report.worst_workers > 1 ? "they take longer than is typical: their GPUs or hosts are "
                                                            "slow, or they have more work"
                                                          : "it takes longer than is typical: its GPU or host is slow, "
                                                            "or it has more work"),
                     gained(report.worst_workers_share), false});
    if (report.last_stage_share > 0 && named.stragglers.empty())
      out.push_back({"Move layers from the last stage to the others" + where,
                     "with typical times there the step would be this much shorter; the output layer and the loss add "
                     "to its layers",
                     gained(report.last_stage_share), false});
    if (!report.by_operation.empty() && report.by_operation.front().second > 1)
      out.push_back(
          {"Even out " + report.by_operation.front().first + where,
           std::string("its times differ between workers, microbatches or steps, which makes the step longer. Possible "
                       "reasons: uneven sequence lengths, uneven stages, slow workers") +
               (report.worst_workers_share > kMostlyOne
                    ? "; most of it comes from the slowest workers, and the two gains do not add up"
                    : ""),
           1 - 1 / report.by_operation.front().second, true});
  }
}

double LargestBucket(const DdpReport& ddp) {
  int64_t most = 0;
  for (const DdpBucket& bucket : ddp.buckets) most = std::max(most, bucket.bytes);
  return static_cast<double>(most);
}

// Where no operation is large enough to be compared with the link's peak.
void AddSmallOperations(const ProfileReport& profile, double transfer, std::vector<Advice>& out) {
  double calls = 0, ns = 0, socket_ns = 0;
  for (const ProfileTableRow& line : profile.table) {
    if (line.row.bytes <= 0 || !line.row.plausible || line.row.whole < line.row.calls) continue;
    calls += static_cast<double>(line.row.calls);
    ns += static_cast<double>(line.row.transfer_ns);
    if (line.over_sockets) socket_ns += static_cast<double>(line.row.transfer_ns);
  }
  if (calls == 0) return;
  char each[32];
  std::snprintf(each, sizeof each, "%.3g ms", ns / calls / 1e6);
  out.push_back({socket_ns > ns / 2 ? TransportAdvice(profile)
                                    : std::string("Send fewer and larger messages (combine small tensors)"),
                 "no operation is larger than 1 MiB; one takes " + std::string(each) +
                     " on average: at these sizes latency counts, not bandwidth",
                 transfer, true});
}

constexpr int64_t kLargeOperation = 1 << 20;

// How far large operations are from what their link could carry: over TCP sockets the link that the GPU has beside
// them, else the one that is used.
struct TransferReach {
  double reach = 0, ns = 0;  // reach / ns: of what a well-tuned link gives
  double socket_ns = 0, gbs = 0;
  double peak_gbs = 0;  // of the first row; 0 where rows have different ones
  bool some_large = false;
  int64_t largest = 0;  // size class of the largest operation
};

TransferReach MeasureReach(const ProfileReport& profile) {
  TransferReach out;
  for (const ProfileTableRow& line : profile.table) {
    // Where a member is not recorded, what is waiting and what is transfer is not known.
    if (line.row.size_class > kLargeOperation) out.some_large = true;
    out.largest = std::max(out.largest, line.row.size_class);
    const double peak = line.peak_gbs > 0 ? line.peak_gbs : line.faster_gbs;
    if (peak <= 0 || line.row.bus_gbs <= 0 || line.row.size_class < kLargeOperation || line.row.whole < line.row.calls)
      continue;
    const auto ns = static_cast<double>(line.row.transfer_ns);
    out.peak_gbs = out.ns == 0 || out.peak_gbs == peak ? peak : 0;
    out.reach += ns * std::min(1.0, line.row.bus_gbs / peak / kReachablePeak);
    out.ns += ns;
    out.gbs += ns * line.row.bus_gbs;
    if (line.over_sockets) out.socket_ns += ns;
  }
  return out;
}

std::string Gbs(double gbs) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g GB/s", gbs);
  return text;
}

void AddSlowTransfers(const ProfileReport& profile, const TransferReach& large, double transfer,
                      std::vector<Advice>& out) {
  if (large.ns == 0 || large.reach / large.ns >= 0.5) return;
  const double gain = transfer * (1 - large.reach / large.ns);
  if (large.socket_ns > large.ns / 2) {
    out.push_back({TransportAdvice(profile),
                   "NCCL uses TCP sockets; large operations reach a mean bus bandwidth of " + Gbs(large.gbs / large.ns),
                   gain, true});
    return;
  }
  out.push_back({"Find out why the transfers are slow (NCCL_DEBUG=INFO; tacet diagnose)",
                 "operations of 1 MiB and more reach " + SmallPercent(kReachablePeak * large.reach / large.ns) +
                     " of the link's peak" + (large.peak_gbs > 0 ? " (" + Gbs(large.peak_gbs) + ")" : std::string()) +
                     (large.largest >= kReachesPeak
                          ? "; large ones normally reach about " + StepPercent(kReachablePeak)
                          : std::string("; the largest are too small to reach it, and normally come closer")),
                 gain, true});
}

void AddCommunication(const ProfileReport& profile, std::vector<Advice>& out) {
  if (profile.ddp.found && profile.ddp.gain > 0) {
    char cap[32];
    std::snprintf(cap, sizeof cap, "%g", profile.ddp.recommended_cap_mb);
    out.push_back({"Set bucket_cap_mb=" + std::string(cap) + " in DistributedDataParallel",
                   profile.ddp.buckets.size() == 1
                       ? "one bucket now: it waits for the last gradient, so nothing overlaps with the backward pass"
                       : std::to_string(profile.ddp.buckets.size()) + " buckets now; " +
                             (profile.ddp.recommended_cap_mb * (1 << 20) > LargestBucket(profile.ddp)
                                  ? "larger ones pay the latency less often"
                                  : "smaller ones can start earlier, while gradients are still computed"),
                   profile.ddp.gain, false});
  }
  const bool received = std::any_of(profile.experts.members.begin(), profile.experts.members.end(),
                                    [](const ExpertMember& member) { return member.received_bytes >= 0; });
  if (profile.experts.found)
    out.push_back({"Even out what the ranks of " + profile.expert_group +
                       " exchange (auxiliary loss, capacity factor, different placement of experts)",
                   "in an all-to-all the busiest rank " + std::string(received ? "receives " : "sends ") +
                       Times(profile.experts.imbalance) + " the mean",
                   profile.experts.balance_gain, true});
  if (profile.pipeline.found) return;  // exposed communication there is the bubble
  const double exposed = ShareOf(profile.mean.exposed_ns, profile.mean.total_ns());
  const double transfer = exposed * (1 - profile.wait_share);
  const TransferReach large = MeasureReach(profile);
  AddSlowTransfers(profile, large, transfer, out);
  if (large.ns == 0 && !large.some_large && profile.verdict == ProfileVerdict::communication_bound)
    AddSmallOperations(profile, transfer, out);
  const double compute = ShareOf(profile.mean.compute_only_ns, profile.mean.total_ns());
  const double hideable = std::min(transfer, compute);
  out.push_back(
      {profile.fsdp.found ? "Hide gathers and scatters with larger units or earlier prefetch (fully_shard: "
                            "set_modules_to_forward_prefetch; FullyShardedDataParallel: forward_prefetch)"
                          : "Hide communication behind compute",
       StepPercent(exposed) + " of the step is exposed communication" +
           (compute < transfer ? ", but the compute that could hide it takes only " + SmallPercent(compute)
                               : std::string()) +
           (profile.wait_known ? "; " + StepPercent(profile.wait_share) + " of communication is waiting for peers"
            : profile.budgets.size() > 1
                ? std::string("; how much of it is waiting for peers is unknown: no operation was recorded by two "
                              "ranks")
                : std::string("; one rank's trace does not show how much of it is waiting for peers")),
       hideable, true});
}

void JudgeBudget(ProfileReport& profile) {
  const TimeBudget& mean = profile.mean;
  const int64_t step = mean.total_ns();
  const double compute = ShareOf(mean.compute_ns(), step), exposed = ShareOf(mean.exposed_ns, step);
  // While copies run, neither the host nor the network holds the step up.
  const double idle = ShareOf(mean.idle_ns(), step), copies = ShareOf(mean.copies_ns, step);
  double losses[] = {exposed, idle, copies};
  std::sort(std::begin(losses), std::end(losses), std::greater<>());
  const double first = losses[0], second = losses[1];
  using enum ProfileVerdict;
  if (compute >= kComputeBound) {
    profile.verdict = compute_bound;
  } else if (first < kMinLoss || first < kClearLead * second) {
    profile.verdict = balanced;
  } else {
    profile.verdict = first == copies          ? copy_bound
                      : first == idle          ? host_bound
                      : profile.pipeline.found ? pipeline_bubble
                                               : communication_bound;
  }
  // The budget tells compute alone and compute beside communication apart: both parts are named here too.
  const double beside = ShareOf(mean.hidden_ns, step);
  profile.headline =
      "Compute takes " + (compute > 0 && compute < kWorthSaying ? "< 0.1 %" : TablePercent(compute)) + " of the step" +
      (beside >= kWorthSaying ? " (" + TablePercent(beside) + " of the step overlaps communication)" : "") + ", " +
      (profile.pipeline.found ? "waiting for other stages " : "exposed communication ") + TablePercent(exposed) +
      "; no kernel runs for " + TablePercent(idle + copies) +
      (copies >= kMinGain ? " (only copies for " + TablePercent(copies) + ")" : "");
  if (profile.verdict == communication_bound && profile.wait_share > kMostlyWaiting)
    profile.headline += "; most of the communication time is waiting for late peers";
}

void JudgeReplay(ProfileReport& profile) {
  const double compute = profile.replay_compute_share;
  profile.verdict = compute >= kComputeBound ? ProfileVerdict::compute_bound : ProfileVerdict::pipeline_bubble;
  char text[96];
  std::snprintf(text, sizeof text, "; uneven times make the step %.2f times as long as the ideal",
                profile.what_if.front().slowdown);
  profile.headline =
      StepPercent(compute) + " of the workers' time is compute, the rest is waiting or communication" + text;
}

}  // namespace

std::string StepPercent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 ? "%.1f %%" : "%.0f %%", share * 100);
  return text;
}

void JudgeProfile(ProfileReport& profile) {
  std::vector<Advice> advice;
  const TimeBudget& mean = profile.mean;
  if (mean.total_ns() > 0 && mean.compute_only_ns + mean.hidden_ns + mean.exposed_ns + mean.copies_ns == 0) {
    // Gloo on CPUs, or a profiler that was told to record the host only: nobody is bound by a device that is not there.
    profile.headline = "No GPU work was recorded, so the split of the step time is unknown";
  } else if (mean.total_ns() > 0) {
    JudgeBudget(profile);
    AddCommunication(profile, advice);
    AddIdleAdvice(profile, advice);
  } else if (!profile.what_if.empty() && profile.what_if.front().valid) {
    JudgeReplay(profile);
  } else if (!profile.table.empty()) {
    profile.headline =
        !profile.wait_known
            ? std::string("No operation was recorded by two ranks, so waiting for peers is unknown")
            : (profile.communication_share > 0 ? "Communication takes " + StepPercent(profile.communication_share) +
                                                     " of the step; " + StepPercent(profile.wait_share) + " of that"
                                               : StepPercent(profile.wait_share) + " of the communication time") +
                  " is waiting for peers. These records do not show whether compute overlaps with it";
  } else {
    profile.headline = "Nothing with times was found";
  }
  AddStragglers(profile, advice);
  AddPipeline(profile.pipeline, advice);
  AddReplay(profile.what_if, advice);
  if (const auto& late = profile.stragglers.stragglers; !late.empty()) {
    const bool sentences = profile.headline.find(". ") != std::string::npos;
    std::string who = RankList(late);
    if (sentences) who.front() = 'R';
    profile.headline += (sentences ? ". " : "; ") + who + (late.size() == 1 ? " makes" : " make") + " the others wait" +
                        (IsIntermittentAlone(profile.stragglers) ? " in " + StepsOf(late.front()) : "");
  }
  std::erase_if(advice, [](const Advice& one) { return one.gain < kMinGain; });
  std::stable_sort(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) { return a.gain > b.gain; });
  if (advice.size() > kMostAdvice) advice.resize(kMostAdvice);
  profile.advice = std::move(advice);
  if (profile.mixed.empty()) return;
  // Means and waits over different jobs say nothing of either.
  profile.verdict = ProfileVerdict::undetermined;
  profile.headline = profile.mixed;
  profile.advice.clear();
}

}  // namespace tacet
