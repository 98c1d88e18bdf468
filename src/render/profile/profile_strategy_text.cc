// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_strategy_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "render/profile/profile_words.h"
#include "render/render_words.h"

namespace tacet {
namespace {

// "288 µs": a fitted value has no more digits than that.
std::string ShortTime(double ns) {
  const bool large = ns >= 1e6;
  char text[40];
  std::snprintf(text, sizeof text, "%.3g %s", ns / (large ? 1e6 : 1e3), large ? "ms" : "µs");
  return text;
}

std::string Bytes(int64_t bytes) { return DescribeSize(std::max<int64_t>(0, bytes)); }
std::string Time(int64_t ns) { return DescribeTime(static_cast<double>(ns)); }

constexpr size_t kMostParts = 8;  // buckets or units shown

void AddRest(TextPage& page, size_t rest, std::string_view noun) {
  if (rest > 0) page.Paragraph("  ", "... and " + Count(rest, "more " + std::string(noun)) + " (--verbose)");
}

std::string Cap(double megabytes) { return std::to_string(std::llround(megabytes)); }

void AddPipeline(TextPage& page, const PipelineReport& pipeline) {
  if (!pipeline.found) return;
  page.Heading("Pipeline");
  std::string text = Count(static_cast<uint64_t>(pipeline.stages), "stage") + ", " +
                     std::to_string(pipeline.microbatches) + " microbatches, schedule " +
                     std::string(Name(pipeline.schedule));
  if (pipeline.chunks > 1) text += ", " + std::to_string(pipeline.chunks) + " chunks per stage";
  if (pipeline.pipelines > 1) text += ", " + std::to_string(pipeline.pipelines) + " replicas";
  page.Paragraph("  ", text);
  page.Paragraph("  ", "bubble: " + DescribeShare(pipeline.bubble) + " measured, " +
                           DescribeShare(pipeline.ideal_bubble) + " theoretical; idle " + DescribeShare(pipeline.idle));
  std::vector<TextRow> rows = {{{"STAGE"}, {"RANKS"}, {"COMPUTE"}, {"WAITING"}, {"IDLE"}}};
  for (const PipelineStage& stage : pipeline.by_stage) {
    std::vector<int> ranks;
    for (const Rank rank : stage.ranks) ranks.push_back(rank.value);
    rows.push_back({{std::to_string(stage.stage)},
                    {FoldRanks(ranks, 30)},
                    {Time(stage.compute_ns)},
                    {Time(stage.waiting_ns)},
                    {Time(stage.idle_ns)}});
  }
  page.Table(rows, 2, true);
  if (pipeline.heaviest >= 0)
    page.Paragraph(
        "  ", "heaviest: stage " + std::to_string(pipeline.heaviest) + ", " + DescribeFactor(pipeline.imbalance) +
                  " times the median of the others; equal stages would save " + DescribeShare(pipeline.balance_gain));
}

// "3: 1.58, 0: 1.02, ...", the slowest first.
std::string SlowdownWords(const std::vector<double>& values, bool verbose) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::erase_if(order, [&](size_t i) { return !std::isfinite(values[i]); });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  const bool cut = !verbose && order.size() > 6;
  if (cut) order.resize(6);
  std::string text;
  for (const size_t i : order)
    text += (text.empty() ? "" : ", ") + std::to_string(i) + ": " + DescribeFactor(values[i]);
  return text + (cut ? ", ..." : "");
}

void AddReplay(TextPage& page, const WhatIfReport& report, const std::string& file, bool verbose) {
  page.Heading("What-if replay" + (file.empty() ? "" : " of " + CleanLine(file)));
  if (!report.valid) {
    page.Paragraph("  ", "not possible: " + CleanText(report.problem));
    return;
  }
  page.Paragraph("  ", "slowdown S = " + DescribeFactor(report.slowdown) + " (replayed / ideal): recorded " +
                           DescribeTime(report.recorded_ns) + ", replayed " + DescribeTime(report.replayed_ns) +
                           ", ideal " + DescribeTime(report.ideal_ns) + " per step; " + Count(report.steps, "step"));
  page.Paragraph("  ", Count(static_cast<uint64_t>(report.dp_size), "data-parallel rank") + " x " +
                           Count(static_cast<uint64_t>(report.stages), "stage"));
  const std::string who = report.worst_workers == 1
                              ? "the slowest worker"
                              : "the " + std::to_string(report.worst_workers) + " slowest workers";
  // A factor that is printed as 1.00 is not above 1.
  const auto [least, most] = std::minmax(report.worst_workers_share, report.last_stage_share);
  page.Paragraph("  ", "share of the slowdown that would go away with ideal times for " + who +
                           ": M_W = " + DescribeFactor(report.worst_workers_share) +
                           "; for the last stage: M_S = " + DescribeFactor(report.last_stage_share) +
                           (most >= 1.005 ? " (above 1: the step would be shorter than the ideal)" : "") +
                           (least <= -0.005 ? " (below 0: the step would be longer)" : ""));
  if (report.dropped_steps > 0)
    page.Paragraph("  ", "skipped: " + Count(report.dropped_steps, "step") +
                             (report.dropped_steps == 1 ? " that lacks operations" : " that lack operations"));
  if (report.rare_operations > 0)
    page.Paragraph("  ", "skipped: " + Count(report.rare_operations, "operation") +
                             (report.rare_operations == 1 ? " that occurs" : " that occur") + " in few steps");
  if (!report.missing.empty()) {
    std::string missing;
    for (const std::string& one : report.missing) missing += (missing.empty() ? "" : ", ") + one;
    page.Paragraph("  not recorded  ", missing + "; the rest covers the others");
  }
  std::string types;
  for (const auto& [name, slowdown] : report.by_operation)
    types += (types.empty() ? "" : ", ") + name + ": " + DescribeFactor(slowdown);
  page.Paragraph("  ", "slowdown if only this part keeps its recorded times and all others take the ideal ones:");
  std::vector<std::pair<std::string, std::string>> parts = {
      {"by operation", CleanText(types)},
      {"by data-parallel rank", SlowdownWords(report.by_dp_rank, verbose)},
      {"by stage", SlowdownWords(report.by_stage, verbose)}};
  std::erase_if(parts, [](const auto& part) { return part.second.empty(); });
  size_t widest = 0;
  for (const auto& part : parts) widest = std::max(widest, part.first.size());
  for (auto& [name, text] : parts) {
    name.resize(widest, ' ');
    page.Paragraph("    " + name + "  ", text);
  }
}

void AddDdp(TextPage& page, const ProfileReport& profile, bool verbose) {
  const DdpReport& ddp = profile.ddp;
  if (!ddp.found) return;
  page.Heading("Data parallel (DDP on " + CleanLine(profile.ddp_group) + ")");
  page.Paragraph(
      "  ", Count(ddp.buckets.size(), "bucket") + ", " + Bytes(ddp.gradient_bytes) +
                " of gradients per step; one operation takes " + ShortTime(ddp.fit.latency_ns) + " + bytes / " +
                (ddp.fit.per_byte_ns > 0 ? DescribeNumber(1 / ddp.fit.per_byte_ns) + " GB/s" : "?") +
                (ddp.fit.latency_measured ? "" : " (the latency is assumed: it cannot be fitted to these operations)"));
  std::vector<TextRow> rows = {{{"BUCKET"}, {"BYTES"}, {"READY"}, {"START"}, {"END"}, {"TRANSFER"}}};
  const size_t shown = verbose ? ddp.buckets.size() : std::min(ddp.buckets.size(), kMostParts);
  for (size_t i = 0; i < shown; ++i) {
    const DdpBucket& bucket = ddp.buckets[i];
    rows.push_back({{std::to_string(i)},
                    {Bytes(bucket.bytes)},
                    {Time(bucket.ready_ns)},
                    {Time(bucket.start_ns)},
                    {Time(bucket.end_ns)},
                    {Time(bucket.transfer_ns)}});
  }
  page.Table(rows, 2, true);
  page.Paragraph("  ", "READY, START and END are counted from the start of the step");
  AddRest(page, ddp.buckets.size() - shown, "bucket");
  if (profile.step_ns > 0 && std::any_of(ddp.buckets.begin(), ddp.buckets.end(),
                                         [&](const DdpBucket& one) { return one.end_ns > profile.step_ns; }))
    page.Paragraph("  ", "a bucket whose END is later than the step time finishes while the host is in the next step");
  std::vector<TextRow> caps = {{{"BUCKET_CAP_MB"}, {"PREDICTED STEP"}}};
  caps.reserve(ddp.predictions.size() + 1);
  for (const DdpPrediction& one : ddp.predictions) caps.push_back({{Cap(one.cap_mb)}, {DescribeTime(one.step_ns)}});
  // Where no size is clearly better, the table shows the same step again and again.
  const bool useful = ddp.gain > 0 || verbose;
  if (caps.size() > 1 && useful) page.Table(caps, 2, true);
  if (caps.size() > 1 && useful && ddp.predicted_ns > 0)
    page.Paragraph("  ", "with the current buckets the predicted step is " + DescribeTime(ddp.predicted_ns) +
                             "; no prediction includes waiting for late ranks");
  if (ddp.predicted_ns > 0 && !ddp.trusted) {
    page.Paragraph("  ", "other bucket sizes are not predicted: for the current ones the model gives " +
                             DescribeTime(ddp.predicted_ns) + ", but the step took " +
                             DescribeTime(profile.step_ns > 0 ? static_cast<double>(profile.step_ns) : ddp.step_ns));
    return;
  }
  page.Paragraph("  ", ddp.gain > 0 ? "recommended bucket_cap_mb: " + Cap(ddp.recommended_cap_mb) + ", saves " +
                                          DescribeShare(ddp.gain) + " of the step"
                                    : "no other bucket_cap_mb is predicted to be clearly better" +
                                          std::string(caps.size() > 1 && !verbose ? "; --verbose shows them" : ""));
}

void AddFsdp(TextPage& page, const ProfileReport& profile, bool verbose) {
  const FsdpReport& fsdp = profile.fsdp;
  if (!fsdp.found) return;
  page.Heading("Sharded (FSDP or ZeRO on " + CleanLine(profile.fsdp_group) + ")");
  page.Paragraph("  ", "parameters " + Bytes(fsdp.parameter_bytes) +
                           (fsdp.parameters_known ? "" : " (from reduce_scatter)") + ", " + Bytes(fsdp.kept_bytes) +
                           " kept after the forward pass");
  page.Table({{{"PER STEP"}, {"MEASURED"}, {"THEORY"}, {"RATIO"}, {"HIDDEN"}},
              {{"all_gather"},
               {Bytes(fsdp.gather_bytes)},
               {Bytes(fsdp.expected_gather_bytes)},
               {DescribeFactor(fsdp.gather_ratio)},
               {DescribeShare(fsdp.hidden_gathers)}},
              {{"reduce_scatter"},
               {Bytes(fsdp.scatter_bytes)},
               {Bytes(fsdp.expected_scatter_bytes)},
               {DescribeFactor(fsdp.scatter_ratio)},
               {DescribeShare(fsdp.hidden_scatters)}}},
             2, true);
  std::vector<TextRow> rows = {{{"UNIT"}, {"BYTES"}, {"GATHERS"}, {"ONE GATHER"}, {"HIDDEN"}}};
  const size_t shown = verbose ? fsdp.units.size() : std::min(fsdp.units.size(), kMostParts);
  for (size_t i = 0; i < shown; ++i)
    rows.push_back({{std::to_string(i)},
                    {Bytes(fsdp.units[i].bytes)},
                    {DescribeNumber(fsdp.units[i].gathers)},
                    {Time(fsdp.units[i].gather_ns)},
                    {DescribeShare(fsdp.units[i].hidden)}});
  page.Table(rows, 2, true);
  AddRest(page, fsdp.units.size() - shown, "unit");
}

bool KnowsReceived(const ExpertReport& experts) {
  return std::any_of(experts.members.begin(), experts.members.end(),
                     [](const ExpertMember& member) { return member.received_bytes >= 0; });
}

void AddExperts(TextPage& page, const ProfileReport& profile, bool verbose) {
  const ExpertReport& experts = profile.experts;
  if (!experts.found) return;
  page.Heading("All-to-all (experts, sequences or embeddings on " + CleanLine(profile.expert_group) + ")");
  page.Paragraph("  ", DescribeNumber(experts.calls) + " calls per step, " + Time(experts.transfer_ns) +
                           " of transfer per step (" + DescribeShare(experts.transfer_share) + ")");
  const std::string factors = DescribeFactor(experts.imbalance) + " times the mean in a single call and " +
                              DescribeFactor(experts.lasting_imbalance) + " times over all calls; ";
  if (experts.members.size() < 2)
    page.Paragraph("  ", "the trace of one rank does not show whether the ranks exchange the same amount");
  else
    page.Paragraph("  ", !experts.sized ? "the trace has no sizes: it is unknown whether the calls are even"
                         : KnowsReceived(experts)
                             ? "the busiest rank receives " + factors + "perfectly even calls would save " +
                                   DescribeShare(experts.balance_gain) + " of the step"
                             : "the busiest rank sends " + factors +
                                   "the traces do not state what each rank receives, so the balance is unknown");
  std::vector<const ExpertMember*> members;
  for (const ExpertMember& member : experts.members) members.push_back(&member);
  // The busiest first; by rank where the printed figures are all the same.
  if (std::any_of(members.begin(), members.end(), [&](const ExpertMember* member) {
        return Bytes(member->received_bytes) != Bytes(members.front()->received_bytes);
      }))
    std::stable_sort(members.begin(), members.end(), [](const ExpertMember* a, const ExpertMember* b) {
      return a->received_bytes > b->received_bytes;
    });
  if (!verbose && members.size() > 8) members.resize(8);
  const bool received = KnowsReceived(experts);
  std::vector<TextRow> rows = {{{"RANK"}, {"SENT"}, {"RECEIVED"}, {"IN KERNELS"}, {"WAITING"}}};
  for (const ExpertMember* member : members)
    rows.push_back({{std::to_string(member->rank.value)},
                    {member->sent_bytes < 0 ? "?" : Bytes(member->sent_bytes)},
                    {member->received_bytes >= 0 ? Bytes(member->received_bytes)
                     : received                  ? "?"
                                                 : ""},
                    {Time(member->kernel_ns)},
                    {profile.wait_known ? Time(member->wait_ns) : "?"}});
  page.Table(rows, 2, true);
  if (members.size() < experts.members.size())
    page.Paragraph("  ", "... the " + std::to_string(members.size()) + " that receive most of " +
                             std::to_string(experts.members.size()) + "; --verbose shows all");
}

void AddUtilisation(TextPage& page, const ProfileReport& profile) {
  if (!profile.utilisation) return;
  const ProfileUtilisation& one = *profile.utilisation;
  page.Heading("Utilization (from " + std::string(one.source) + ")");
  if (one.peak_tflops <= 0) {
    page.Paragraph("  ", "the device's peak is unknown; give --peak-tflops");
    return;
  }
  if (std::max(one.mfu, one.hfu) > 1) {
    char share[32];
    std::snprintf(share, sizeof share, "%.0f %%", 100 * std::max(one.mfu, one.hfu));
    const bool given = one.source != "matrix shapes";
    page.Paragraph("  ", std::string(one.mfu > 1 ? "MFU" : "HFU") + " would be " + share + " of " +
                             DescribeNumber(one.peak_tflops) + " TFLOP/s, which is impossible: " +
                             (given ? "the model or --tokens does not fit these traces"
                                    : "the peak or the recorded shapes are wrong; --peak-tflops sets the peak") +
                             (given && profile.fsdp.found && profile.fsdp.parameter_bytes > 0
                                  ? " (" + Bytes(profile.fsdp.parameter_bytes) + " of parameters were gathered)"
                                  : ""));
    return;
  }
  page.Paragraph("  ", (one.mfu > 0 ? "MFU " + DescribeSmallShare(one.mfu) + ", " : std::string()) + "HFU " +
                           DescribeSmallShare(one.hfu) + " of " + DescribeNumber(one.peak_tflops) + " TFLOP/s (" +
                           DescribeFlops(one.flops) + " per device and step)");
}

// "step 4, backward".
std::string DescribePeak(const MemoryUse& use) {
  if (use.peak_step < 0) return "";
  const std::string step = "step " + std::to_string(use.peak_step);
  switch (use.peak_phase) {
    case StepPhase::unknown: return step;
    case StepPhase::forward: return step + ", forward";
    case StepPhase::backward: return step + ", backward";
    case StepPhase::optimizer: return step + ", optimizer";
  }
  return step;
}

void AddMemory(TextPage& page, const ProfileReport& profile, bool verbose) {
  std::vector<const ProfileRank*> ranks;
  for (const ProfileRank& rank : profile.budgets)
    if (rank.memory) ranks.push_back(&rank);
  if (ranks.empty()) return;
  page.Heading("Memory");
  std::stable_sort(ranks.begin(), ranks.end(), [](const ProfileRank* a, const ProfileRank* b) {
    return a->memory->peak_reserved_bytes > b->memory->peak_reserved_bytes;
  });
  const bool cut = !verbose && ranks.size() > 4;
  if (cut) ranks.resize(4);  // the fullest
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const ProfileRank* a, const ProfileRank* b) { return a->rank.value < b->rank.value; });
  std::vector<TextRow> rows = {{{"RANK"},
                                {"ALLOCATED"},
                                {"RESERVED"},
                                {"DEVICE"},
                                {"FRAGMENTED"},
                                {"PARAMS"},
                                {"PERSISTENT"},
                                {"TRANSIENT"},
                                {"PEAK IN"},
                                {"PRESSURE"}}};
  for (const ProfileRank* rank : ranks) {
    const MemoryUse& use = *rank->memory;
    rows.push_back({{std::to_string(rank->rank.value)},
                    {Bytes(use.peak_allocated_bytes)},
                    {Bytes(use.peak_reserved_bytes)},
                    {use.device_bytes > 0 ? Bytes(use.device_bytes) : ""},
                    {DescribeShare(use.fragmentation)},
                    {use.split ? Bytes(use.split->parameter_bytes) : "?"},
                    {Bytes(use.split ? use.split->staying_bytes : use.lowest_allocated_bytes)},
                    {Bytes(use.peak_allocated_bytes - use.lowest_allocated_bytes)},
                    {DescribePeak(use)},
                    {use.out_of_memory ? "out of memory"
                     : use.pressure    ? "yes"
                                       : ""}});
  }
  page.Table(rows, 2, true);
  if (cut) page.Paragraph("  ", "... the 4 ranks with most reserved; --verbose shows all");
  page.Paragraph(
      "  ",
      "inferred from sizes and lifetimes: PERSISTENT is optimizer state, buckets and whatever else outlives a step; "
      "TRANSIENT is activations, gradients and workspace; FRAGMENTED is the share of reserved memory that no tensor "
      "used "
      "at the peak, DEVICE the memory of the GPU",
      Ink::dim);
}

}  // namespace

void AddStrategies(TextPage& page, const ProfileReport& profile, bool verbose) {
  AddPipeline(page, profile.pipeline);
  for (const WhatIfReport& report : profile.what_if)
    AddReplay(page, report, profile.what_if.size() > 1 ? report.file : std::string(), verbose);
  AddDdp(page, profile, verbose);
  AddFsdp(page, profile, verbose);
  AddExperts(page, profile, verbose);
  AddUtilisation(page, profile);
  AddMemory(page, profile, verbose);
}

}  // namespace tacet
