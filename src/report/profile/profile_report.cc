// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_report.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analysis/timing/one_by_one.h"
#include "analysis/timing/pace.h"
#include "analysis/timing/rank_pace.h"
#include "analysis/timing/statistics.h"
#include "analysis/timing/straggler_cost.h"
#include "base/parallel.h"
#include "report/profile/profile_gpus.h"
#include "report/profile/profile_series.h"
#include "report/profile/profile_table.h"
#include "report/profile/profile_verdict.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr int64_t TimeBudget::*kLosses[] = {
    &TimeBudget::compute_only_ns, &TimeBudget::hidden_ns, &TimeBudget::exposed_ns,  &TimeBudget::copies_ns,
    &TimeBudget::host_wait_ns,    &TimeBudget::launch_ns, &TimeBudget::data_wait_ns};

TimeBudget Divide(const TimeBudget& total, int64_t n) {
  TimeBudget mean;
  if (n <= 0) return mean;
  int64_t TimeBudget::*largest = kLosses[0];
  for (const auto part : kLosses) {
    mean.*part = total.*part / n;
    if (mean.*part > mean.*largest) largest = part;
  }
  mean.*largest += total.total_ns() / n - mean.total_ns();
  return mean;
}

std::string HostOf(const Incident& incident, Rank rank) {
  const auto at = incident.process_of.find(rank);
  return at == incident.process_of.end() ? std::string() : incident.processes[at->second].host;
}

RankBudget MeasureRank(const Timeline& timeline, ProfileRank& out) {
  const BudgetMeter meter(timeline);
  RankBudget budget;
  budget.rank = timeline.rank;
  for (const TrainingStep& step : StepsOf(timeline)) {
    budget.steps.push_back({step, meter.Measure({step.start_ns, step.end_ns})});
    budget.total += budget.steps.back().budget;
  }
  out.rank = timeline.rank;
  out.steps = budget.steps.size();
  out.mean = Divide(budget.total, static_cast<int64_t>(out.steps));
  out.step_ns = out.mean.total_ns();
  out.overlap = OverlapOf(budget.total);
  out.cut = timeline.cut;
  if (!timeline.gpu.empty())
    if (const DeviceProperties* device = timeline.PropertiesOf(timeline.MainDevice())) out.device = device->name;
  return budget;
}

std::vector<RankBudget> MeasureRanks(const Incident& incident, const ProfileOptions& options, ProfileReport& profile) {
  std::vector<RankBudget> budgets(incident.timelines.size());
  profile.budgets.resize(incident.timelines.size());
  ParallelFor(incident.timelines.size(), options.threads,
              [&](size_t i) { budgets[i] = MeasureRank(incident.timelines[i], profile.budgets[i]); });
  TimeBudget total;
  int64_t steps = 0;
  for (size_t i = 0; i < budgets.size(); ++i) {
    ProfileRank& rank = profile.budgets[i];
    rank.host = HostOf(incident, rank.rank);
    total += budgets[i].total;
    steps += static_cast<int64_t>(rank.steps);
    profile.steps = std::max(profile.steps, rank.steps);
  }
  profile.mean = Divide(total, steps);
  profile.overlap_ratio = OverlapOf(total).ratio();
  profile.overlap_efficiency = OverlapOf(total).efficiency();
  return budgets;
}

std::vector<CollectiveRound> MatchFlightRecords(const Incident& incident) {
  std::vector<CollectiveRound> rounds = MatchTimedCalls(incident), batches = MatchTimedBatches(incident);
  std::move(batches.begin(), batches.end(), std::back_inserter(rounds));
  return rounds;
}

// A record that goes on for longer tells better how often a rank is late: its steps are not those of the header.
void TellWhereStepsWereCounted(PaceSource shown, ProfileReport& profile) {
  for (const Straggler& one : profile.stragglers.stragglers)
    if (!one.counted_in.empty() && one.counted_in != Name(shown))
      profile.remarks.push_back("the late steps of rank " + std::to_string(one.rank.value) + " (" +
                                std::to_string(one.late_steps) + " of " + std::to_string(one.steps) +
                                ") were counted in " + std::string(one.counted_in) + "; all else is from " +
                                profile.source);
}

// Rounds on one clock, from the best source there is.
std::vector<CollectiveRound> MatchRounds(const Incident& incident, ProfileReport& profile) {
  std::vector<CollectiveRound> rounds;
  PaceSource shown = PaceSource::traces;
  if (!incident.timelines.empty()) {
    profile.source = "profiler traces";
    rounds = MatchCollectives(incident.timelines, incident.groups);
  } else if (rounds = MatchMeasurements(incident.measurements, incident.groups); !rounds.empty()) {
    const FileId file = incident.measurements.front().source.file;
    const bool boxes = incident.files[static_cast<uint32_t>(file)].format == "black_box";
    profile.source = boxes ? "black boxes" : "NCCL Inspector";
    shown = boxes ? PaceSource::black_boxes : PaceSource::inspector;
  } else if (rounds = MatchFlightRecords(incident); !rounds.empty()) {
    profile.source = "timed flight records";
    shown = PaceSource::flight_records;
  } else if (!incident.pipeline_traces.empty()) {
    profile.source = "pipeline timeline";
  }
  profile.clocks = AlignClocks(rounds);
  ApplyAlignment(profile.clocks, rounds);
  profile.stragglers = FindStragglers(incident, true, incident.timelines.empty() ? nullptr : &rounds);
  TellWhereStepsWereCounted(shown, profile);
  return rounds;
}

// A job has one default group: traces in which its size differs are of different jobs.
std::string MixedJobs(const Incident& incident) {
  std::map<int32_t, std::set<std::string>> files;  // by size
  for (const Timeline& timeline : incident.timelines) {
    int32_t size = -1;
    for (const TraceCollective& one : timeline.collectives) {
      const auto index = static_cast<size_t>(one.group);
      if (index < incident.groups.size() && incident.groups[index].Label() == "default_pg")
        size = std::max(size, one.group_size);
    }
    if (size > 0) files[size].insert(std::string(incident.PathOf(timeline.file)));
  }
  if (files.size() < 2) return "";
  std::string out = "These traces are not of one job: the default group has ";
  bool first = true;
  for (auto at = files.rbegin(); at != files.rend(); ++at) {
    const std::set<std::string>& names = at->second;
    if (!first) out += std::next(at) == files.rend() ? " and " : ", ";
    out.append(std::to_string(at->first)).append(first ? " ranks in " : " in ").append(*names.begin());
    if (names.size() == 2) out.append(" and ").append(*names.rbegin());
    if (names.size() > 2) out.append(" and ").append(std::to_string(names.size() - 1)).append(" others");
    first = false;
  }
  return out + "; profile each job by itself";
}

void FillUtilisation(const Incident& incident, const ProfileOptions& options, ProfileReport& profile) {
  double peak = options.peak_tflops;
  for (const ProfileRank& rank : profile.budgets)
    if (const auto found = FindDevicePeak(rank.device); found && peak <= 0) peak = found->bf16_tflops;
  const double ranks = profile.world_size > 0 ? static_cast<double>(profile.world_size)
                                              : static_cast<double>(std::max<size_t>(1, profile.ranks.size()));
  const double on_one = RanksPerGpu(profile), devices = ranks / on_one;
  const double seconds = static_cast<double>(profile.step_ns) / 1e9;
  const bool shaped = options.model.layers > 0 && options.model.hidden > 0;
  if (options.tokens_per_step > 0 && (options.model.parameters > 0 || shaped)) {
    ProfileUtilisation out;
    out.source = shaped ? "transformer shape" : "model size";
    out.peak_tflops = peak;
    const double tokens = options.tokens_per_step / devices;
    out.flops = HardwareFlopsPerToken(options.model, options.full_recompute) * tokens;
    out.mfu = MeasureUtilisation(ModelFlopsPerToken(options.model) * tokens, seconds, peak).share();
    out.hfu = MeasureUtilisation(out.flops, seconds, peak).share();
    profile.utilisation = out;
    return;
  }
  double flops = 0, time = 0, traces = 0;
  for (const Timeline& timeline : incident.timelines)
    if (const auto one = MeasureUtilisation(timeline)) {
      flops += one->flops;
      time += one->seconds;
      ++traces;
      if (options.peak_tflops <= 0) peak = one->peak_tflops;
    }
  if (traces == 0 || flops <= 0) return;
  profile.utilisation = {"matrix shapes", 0, MeasureUtilisation(flops * on_one / traces, time / traces, peak).share(),
                         flops * on_one / traces, peak};
}

// Share of the steps in which the workers of a pipeline timeline compute.
double ComputeShare(const PipelineTrace& trace) {
  std::map<int32_t, Interval> steps;
  std::set<std::pair<int32_t, int32_t>> workers;
  double compute = 0, all = 0;
  for (const PipelineOperation& one : trace.operations) {
    Interval& step = steps.try_emplace(one.step, Interval{one.start_ns, one.end_ns}).first->second;
    step = {std::min(step.begin, one.start_ns), std::max(step.end, one.end_ns)};
    workers.emplace(one.dp_rank, one.stage);
    if (!IsPipelineCommunication(one.op)) compute += static_cast<double>(one.end_ns - one.start_ns);
  }
  for (const auto& [number, step] : steps) all += static_cast<double>(step.length());
  all *= static_cast<double>(workers.size());
  return all > 0 ? std::min(1.0, compute / all) : 0;
}

void FillStrategies(const Incident& incident, const GroupNames& names, const std::vector<CollectiveRound>& rounds,
                    ProfileReport& profile) {
  for (const PipelineTrace& trace : incident.pipeline_traces) {
    profile.what_if.push_back(ReplayWhatIf(trace));
    profile.what_if.back().file = std::string(incident.PathOf(trace.file));
  }
  if (!incident.pipeline_traces.empty()) profile.replay_compute_share = ComputeShare(incident.pipeline_traces.front());
  if (incident.timelines.empty()) return;
  profile.pipeline = AnalysePipeline(rounds, incident.timelines);
  profile.ddp = AnalyseDdp(rounds, incident.timelines);
  profile.fsdp = AnalyseFsdp(rounds, incident.timelines);
  profile.experts = AnalyseExperts(rounds, incident.timelines);
  if (profile.ddp.found) profile.ddp_group = names.Role(profile.ddp.group);
  if (profile.fsdp.found) profile.fsdp_group = names.Role(profile.fsdp.group);
  if (profile.experts.found) profile.expert_group = names.Role(profile.experts.group);
}

void FillMemory(const Incident& incident, ProfileReport& profile) {
  const int32_t shards = profile.fsdp.found ? profile.fsdp.ranks : 1;
  for (size_t i = 0; i < profile.budgets.size(); ++i)
    profile.budgets[i].memory = MeasureMemory(incident.timelines[i], shards);
}

// From this length on a step is a pause of the job, and none of its steps. Pauses are rare; hosts that wait for their
// GPU now and then take long there, and that is a part of the steps.
double LengthOfPauses(const std::vector<std::pair<int64_t, double>>& lengths) {
  constexpr size_t kRare = 15;
  std::vector<double> values;
  values.reserve(lengths.size());
  for (const auto& [step, length] : lengths) values.push_back(length);
  const double longest = kPauseOfJob * FindTypicalStep(values).ns;
  const auto pauses = static_cast<size_t>(
      std::count_if(values.begin(), values.end(), [&](double length) { return length >= longest; }));
  return pauses * kRare <= values.size() ? longest : std::numeric_limits<double>::infinity();
}

// Step time and communication share of records without a trace. Their steps are guessed from the order of operations
// and from when the host issued them; a host that runs ahead issues many steps at once, and then the kernels of a step
// take longer than the step: no steps are told.
void FillMeasuredSteps(const std::vector<CollectiveRound>& rounds, ProfileReport& profile) {
  struct Sum {
    double busy = 0;
    std::set<Rank> ranks;
    double mean() const { return busy / static_cast<double>(ranks.size()); }
  };
  std::map<int64_t, std::map<GroupIndex, Sum>> steps;
  std::vector<CollectiveRound> fitting;
  if (!FitOneByOne(rounds)) fitting = RunOneByOne(rounds);
  for (const CollectiveRound& round : fitting.empty() ? rounds : fitting) {
    if (round.step < 0) continue;
    Sum& sum = steps[round.step][round.group];
    for (const RoundMember& member : round.members) {
      sum.busy += static_cast<double>(std::max<int64_t>(0, member.duration_ns));
      sum.ranks.insert(member.rank);
    }
  }
  std::map<int64_t, int64_t> begins;
  for (const CollectiveRound& round : rounds)
    for (const RoundMember& member : round.members) {
      if (round.step < 0 || member.enter_ns == kNoTime) continue;
      const auto at = begins.try_emplace(round.step, member.enter_ns).first;
      at->second = std::min(at->second, member.enter_ns);
    }
  ProfileSeries times{"step time", {}};
  double all_busy = 0, all = 0;
  size_t impossible = 0;
  constexpr double kMeasured = 1.1;
  std::vector<std::pair<int64_t, double>> lengths;
  for (auto at = begins.begin(); at != begins.end() && std::next(at) != begins.end(); ++at)
    if (std::next(at)->first == at->first + 1)
      lengths.emplace_back(at->first, static_cast<double>(std::next(at)->second - at->second));
  const double pause = LengthOfPauses(lengths);
  const size_t pauses = std::erase_if(lengths, [&](const auto& one) { return one.second >= pause; });
  if (pauses > 0)
    profile.remarks.push_back((pauses == 1 ? "1 step" : std::to_string(pauses) + " steps") +
                              std::string(" took more than 5 times as long as the typical step and ") +
                              (pauses == 1 ? "is" : "are") + " not counted: probably " +
                              (pauses == 1 ? "a pause" : "pauses") +
                              " of the job, such as a checkpoint or an evaluation");
  for (const auto& [step, length] : lengths) {
    double busy = 0;
    for (const auto& [group, sum] : steps[step]) busy = std::max(busy, sum.mean());
    impossible += busy > kMeasured * length;
    all_busy += busy;
    all += length;
    times.values.push_back(length);
  }
  if (const StragglerReport& found = profile.stragglers; times.values.empty() && found.steps > 1 && found.step_ns > 0) {
    // Steps of a pipeline that sends and receives alone: those in which its stages were compared.
    profile.step_ns = found.step_ns;
    profile.steps = found.steps;
    return;
  }
  if (impossible * 2 > times.values.size() || times.values.empty() || profile.stragglers.steps < 2) {
    profile.remarks.push_back("steps could not be separated; times are given by operation only");
    return;
  }
  const double share = all > 0 ? all_busy / all : 0;
  profile.communication_share = std::min(1.0, share);
  // The same steps that a comparison of two runs tests: from the begin of one to the begin of the next.
  profile.step_ns = static_cast<int64_t>(Mean(times.values));
  profile.steps = times.values.size();
  // Lateness is told as a share of the step that is told.
  StateShares(profile.step_ns, profile.stragglers);
  if (const auto& late = profile.stragglers.stragglers;
      !late.empty() && late.front().steps == profile.stragglers.steps && late.front().steps != profile.steps)
    profile.remarks.push_back("the step time is the mean of " + std::to_string(profile.steps) +
                              " intervals from one step to the next; late steps were counted in " +
                              std::to_string(late.front().steps) + " steps");
  profile.series.insert(profile.series.begin(), std::move(times));
}

std::string WhyNoTimes(const Incident& incident) {
  size_t calls = 0, timed = 0;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != CallSource::flight_recorder) continue;
    calls += stream.calls.size();
    timed += static_cast<size_t>(std::count_if(stream.calls.begin(), stream.calls.end(),
                                               [](const Call& call) { return call.duration_ms >= 0; }));
  }
  if (timed > 0)
    return "the timed operations of the flight records have no partner in another rank's record: dumps of all ranks of "
           "one run are needed";
  if (calls > 0)
    return "the flight records have no times: set TORCH_NCCL_ENABLE_TIMING=1, or take torch.profiler traces of all "
           "ranks over a few steps";
  return "no timing data was found; torch.profiler traces of all ranks over a few steps work best";
}

void AddRemarks(const Incident& incident, ProfileReport& profile) {
  if (profile.source.empty()) {
    profile.remarks.push_back(WhyNoTimes(incident));
    return;
  }
  size_t cut = 0, unmarked = 0, assumed = 0;
  for (const ProfileRank& rank : profile.budgets) cut += rank.cut;
  for (const Timeline& timeline : incident.timelines) unmarked += timeline.steps.empty();
  for (const Timeline& timeline : incident.timelines) {
    const auto at = incident.process_of.find(timeline.rank);
    if (at != incident.process_of.end()) assumed += incident.processes[at->second].rank_certainty == Certainty::assumed;
  }
  const auto remark = [&](size_t n, const std::string& text) {
    if (n > 0) profile.remarks.push_back(std::to_string(n) + (n == 1 ? " trace " : " traces ") + text);
  };
  for (const Diagnostic& diagnostic : incident.diagnostics)
    if (diagnostic.code == "trace-left-out" || diagnostic.code == "traces-joined")
      profile.remarks.push_back(std::string(incident.PathOf(diagnostic.source.file)) + ": " + diagnostic.message);
  size_t waiting = 0;  // ranks
  for (const CallStream& stream : incident.streams)
    waiting += stream.source == CallSource::flight_recorder && !stream.calls.empty() &&
               (stream.calls.back().state == CallState::started || stream.calls.back().state == CallState::enqueued);
  if (waiting > 0)
    profile.remarks.push_back(std::to_string(waiting) + (waiting == 1 ? " rank was" : " ranks were") +
                              " still in an operation when the flight records were written: if the job hung, `tacet "
                              "diagnose` names the rank");
  remark(cut, cut == 1 ? "ends early; its complete part is used" : "end early; their complete parts are used");
  remark(unmarked, unmarked == 1 ? "has no step marks (prof.step()): the whole recording counts as one step"
                                 : "have no step marks (prof.step()): each whole recording counts as one step");
  remark(assumed, assumed == 1 ? "does not state its rank, which was taken from the file name or assumed"
                               : "do not state their ranks, which were taken from the file names or assumed");
  std::vector<Rank> pressed;
  for (const ProfileRank& rank : profile.budgets)
    if (rank.memory && rank.memory->pressure) pressed.push_back(rank.rank);
  if (!pressed.empty())
    profile.remarks.push_back("memory is nearly exhausted on " + RankWords(pressed) +
                              ": the allocator frees and reallocates, which stalls the GPU; use smaller microbatches, "
                              "activation checkpointing or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  if (profile.world_size > 0 && !incident.timelines.empty() &&
      static_cast<int64_t>(incident.timelines.size()) < profile.world_size)
    profile.remarks.push_back("traces of " + std::to_string(incident.timelines.size()) + " of " +
                              std::to_string(profile.world_size) +
                              " ranks: waiting for ranks without a trace counts as transfer");
}

}  // namespace

std::string_view Name(ProfileVerdict verdict) {
  switch (verdict) {
    case ProfileVerdict::undetermined: return "undetermined";
    case ProfileVerdict::compute_bound: return "compute-bound";
    case ProfileVerdict::communication_bound: return "communication-bound";
    case ProfileVerdict::host_bound: return "host-bound";
    case ProfileVerdict::copy_bound: return "copy-bound";
    case ProfileVerdict::pipeline_bubble: return "pipeline bubble";
    case ProfileVerdict::balanced: return "balanced";
  }
  return "undetermined";
}

ProfileReport BuildProfile(const Incident& incident, const ProfileOptions& options) {
  ProfileReport profile;
  profile.job = incident.label;
  profile.world_size = incident.world_size;
  for (const Rank rank : incident.RanksSeen()) profile.ranks.push_back(rank.value);
  for (const Event& event : incident.events)
    if (event.kind == EventKind::network && profile.network.empty()) profile.network = event.As<NetworkName>().name;
  FillGpus(incident, profile);
  const std::vector<RankBudget> budgets = MeasureRanks(incident, options, profile);
  const std::vector<CollectiveRound> rounds = MatchRounds(incident, profile);
  const GroupNames names(incident, rounds);
  FillTable(incident, names, rounds, options, profile);
  if (profile.times_wrong && profile.stragglers.stragglers.empty())  // how late each rank was is not known either
    profile.stragglers.ranks.clear(), profile.stragglers.rounds = 0;
  FillGroupShares(names, rounds, profile);
  FillStrategies(incident, names, rounds, profile);
  FillMemory(incident, profile);
  profile.series = CollectSeries(incident, names, budgets, rounds);
  if (!profile.series.empty() && profile.series[0].name == "step time") {
    const int64_t mean = profile.mean.total_ns();
    profile.step_ns = mean > 0 ? mean : static_cast<int64_t>(Mean(profile.series[0].values));
    profile.steps = profile.series[0].values.size();
  } else if (!rounds.empty()) {
    FillMeasuredSteps(rounds, profile);
  }
  // Shares of the step that the report names, the mean of all ranks.
  if (ExpertReport& experts = profile.experts; experts.found && profile.step_ns > 0) {
    experts.transfer_share = static_cast<double>(experts.transfer_ns) / static_cast<double>(profile.step_ns);
    experts.balance_gain = experts.transfer_share * (1 - 1 / experts.imbalance);
  }
  FillUtilisation(incident, options, profile);
  AddRemarks(incident, profile);
  profile.mixed = MixedJobs(incident);
  JudgeProfile(profile);
  return profile;
}

}  // namespace tacet
