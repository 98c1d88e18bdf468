// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/digit_groups.h"
#include "render/prediction/prediction_parts.h"
#include "render/render_words.h"

namespace tacet {
namespace {

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string Amount(double value, const char* unit) {  // 7.2 G, 1.1 T
  static constexpr const char* kSteps[] = {"", "k", "M", "G", "T", "P", "E"};
  int step = 0;
  for (; value >= 999.5 && step < 6; ++step) value /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %s%s", value >= 100 ? 0 : value >= 10 ? 1 : 2, value, kSteps[step], unit);
  return text;
}

// "14.8 B": of parameters a billion is a B.
std::string CountWords(double count) {
  std::string words = Amount(count, "");
  if (words.ends_with('G')) words.back() = 'B';
  return words;
}

// 1,360; digits are grouped from 10,000 on.
std::string WholeNumber(double value) {
  char text[48];
  if (value < 1e15 && value != std::floor(value) && value < 100) {
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
  }
  std::snprintf(text, sizeof text, "%.0f", value);
  return GroupDigits(text);
}

void AddMemoryParts(const Prediction& prediction, TextPage& page) {
  const TrainingMemory& memory = prediction.memory;
  page.Heading("Memory of one GPU");
  std::vector<TextRow> rows = {{{"part"}, {"bytes"}, {"share"}}};
  const auto add = [&](const char* name, double bytes) {
    rows.push_back({{name}, {Amount(bytes, "B")}, {Percent(memory.total() > 0 ? bytes / memory.total() : 0)}});
  };
  add("parameters", memory.parameters);
  add("gradients", memory.gradients);
  add("optimizer", memory.optimizer);
  add("activations", memory.activations);
  add("total", memory.total());
  page.Table(rows, 2, false);
  const double limit = prediction.memory_limit_gb * 1e9;
  if (limit > 0)
    page.Paragraph("  ",
                   memory.total() > limit ? "That exceeds the " + Amount(limit, "B") + " of the GPU."
                                          : "The GPU has " + Amount(limit, "B") + "; " +
                                                Amount(limit - memory.total(), "B") + " is left for buffers.",
                   memory.total() > limit ? Ink::red : Ink::plain);
}

void AddTraffic(const Prediction& prediction, TextPage& page) {
  if (prediction.traffic.empty()) return;
  page.Heading("Communication of one GPU in one step");
  std::vector<TextRow> rows = {{{"what"}, {"operation"}, {"ranks"}, {"buffer"}, {"times"}, {"sent"}, {"time"}}};
  for (const StepTraffic& one : prediction.traffic)
    rows.push_back({{one.what},
                    {std::string(Name(one.op))},
                    {std::to_string(one.ranks)},
                    {Amount(one.bytes, "B")},
                    {WholeNumber(one.times)},
                    {Amount(one.sent_bytes, "B")},
                    {one.time_ms > 0 ? TimeWords(one.time_ms * 1e3) : ""}});
  page.Table(rows, 2, false);
}

// Once for each operation and algorithm: in the table they would be cut, or push it out of the page.
void AddPlainFormulas(const Prediction& prediction, TextPage& page) {
  page.Blank();
  const bool nodes = std::any_of(prediction.plain.begin(), prediction.plain.end(),
                                 [](const Prediction::PlainRow& row) { return row.cost.algorithm == "hierarchical"; });
  page.Paragraph("  ", std::string("n ranks, m bytes, a latency, b bandwidth") +
                           (nodes ? "; N nodes of g ranks, a1 and b1 inside a node, a2 and b2 between nodes:" : ":"));
  std::vector<TextRow> rows = {{{"operation"}, {"algorithm"}, {"time"}}};
  OpKind op = OpKind::unknown;
  std::set<std::string_view> listed;
  for (const Prediction::PlainRow& row : prediction.plain) {
    const bool begins = row.op != op;
    if (begins) listed.clear();
    op = row.op;
    if (!listed.insert(row.cost.algorithm).second) continue;
    rows.push_back(
        {{begins ? std::string(Name(op)) : ""}, {std::string(row.cost.algorithm)}, {std::string(row.cost.formula)}});
  }
  page.PartsTable(rows, 2);
}

}  // namespace

void AddPlainModel(const Prediction& prediction, const PredictionTextOptions&, TextPage& page) {
  if (prediction.plain.empty()) return;
  page.Heading("Plain model: " + CleanLine(prediction.plain_link));
  std::vector<TextRow> rows = {{{"operation"}, {"size"}, {"algorithm"}, {"time"}, {"bus GB/s"}}};
  OpKind last = OpKind::unknown;
  for (const Prediction::PlainRow& row : prediction.plain) {
    rows.push_back({{row.op == last ? "" : std::string(Name(row.op))},
                    {MessageSizeWords(row.bytes)},
                    {std::string(row.cost.algorithm)},
                    {TimeWords(row.time_us)},
                    {RateFigure(row.bus_gbps)}});
    last = row.op;
  }
  AlignFigures(rows, 4);
  page.PartsTable(rows, 2);
  AddPlainFormulas(prediction, page);
}

void AddStep(const Prediction& prediction, const PredictionTextOptions&, TextPage& page) {
  if (!prediction.has_step) return;
  const StepEstimate& step = prediction.step;
  const ParameterCount& count = prediction.parameters;
  page.Heading("Training step");
  std::vector<TextRow> rows;
  rows.push_back({{"parameters"}, {CountWords(count.total())}});
  if (count.active > 0 && count.active < count.total())
    rows.push_back({{"active per token"}, {CountWords(count.active)}});
  rows.push_back({{"GPUs"}, {std::to_string(prediction.layout.gpus())}});
  rows.push_back({{"tokens per step"}, {WholeNumber(step.tokens)}});
  rows.push_back({{"model FLOPs per step"}, {Amount(step.model_flops, "FLOP")}});
  if (step.hardware_flops > step.model_flops)
    rows.push_back({{"with recomputation"}, {Amount(step.hardware_flops, "FLOP")}});
  if (step.compute_ms > 0) rows.push_back({{"compute at peak"}, {TimeWords(step.compute_ms * 1e3)}});
  if (prediction.layout.pipeline > 1) rows.push_back({{"pipeline bubble"}, {Percent(step.bubble)}});
  if (step.communication_ms > 0)
    rows.push_back({{"communication, none hidden"}, {TimeWords(step.communication_ms * 1e3)}});
  if (step.ideal_ms > 0) rows.push_back({{"shortest step, all hidden"}, {TimeWords(step.ideal_ms * 1e3)}});
  if (step.step_ms > 0) {
    rows.push_back({{"measured step"}, {TimeWords(step.step_ms * 1e3)}});
    if (step.mfu > 0) {
      rows.push_back({{"MFU"}, {Percent(step.mfu)}});
      rows.push_back({{"HFU"}, {Percent(step.hfu)}});
      rows.push_back({{"GPU-hours lost per day"},
                      {WholeNumber(step.gpu_hours_lost_per_day) + " of " +
                       WholeNumber(24.0 * static_cast<double>(prediction.layout.gpus())) + " (against peak)"}});
    }
    if (prediction.overlap >= 0) rows.push_back({{"overlap efficiency"}, {Percent(prediction.overlap)}});
  }
  page.Table(rows, 2, false);
  AddMemoryParts(prediction, page);
  AddTraffic(prediction, page);
  for (const std::string& assumption : prediction.step_assumptions)
    page.Paragraph("  assumed: ", CleanLine(assumption) + ".", Ink::dim);
}

// A formula stands on one line: below its name where it does not fit beside it.
static void AddFormula(const std::string& name, const std::string& formula, const std::string& remark, TextPage& page) {
  const std::string head = "  " + name + ": ";
  if (DisplayWidth(head) + DisplayWidth(formula) <= page.width()) {
    page.Paragraph(head, formula);
  } else {
    page.Line("  " + name + ":");
    page.Paragraph("    ", formula);
  }
  if (!remark.empty()) page.Paragraph("    ", remark, Ink::dim);
}

void AddFormulas(const Prediction& prediction, TextPage& page) {
  page.Heading("Formulas");
  if (!prediction.before.empty()) {
    AddFormula("time", "latency x launches + bytes / algorithm bandwidth",
               "in µs; the shortest time wins, ties go to the first of Tree, Ring, CollNetDirect, CollNetChain, NVLS, "
               "NVLSTree, PAT and of LL, LL128, Simple",
               page);
    AddFormula("bytes", "the whole buffer", "for all_gather and reduce_scatter that of all ranks together", page);
    AddFormula(
        "bus bandwidth", "bytes / time x 2(n-1)/n",
        "for all_reduce; x (n-1)/n for all_gather, reduce_scatter and all_to_all, x 1 for others (as nccl-tests)",
        page);
    AddFormula("algorithm bandwidth", "channels x speed per channel",
               "reduced by protocol (LL to half, LL128 to 0.92 of ring), capped per GPU generation, x n / steps for "
               "rings; docs/predict.md has the details by release",
               page);
    AddFormula("latency", "base + steps within nodes x link latency + steps between nodes x network latency", "", page);
  }
  if (!prediction.plain.empty()) {
    AddFormula("alpha-beta", "a + m/b", "for a message of m bytes; a in µs, b in GB/s (1e9 bytes per second)", page);
    AddFormula("LogGP", "a = max(L + 2o, g), 1/b = G", "", page);
  }
  if (!prediction.has_step) return;
  AddFormula("model FLOPs",
             "tokens x (6 x active parameters without the input embedding + 12 x layers x hidden x sequence)", "",
             page);
  AddFormula("recomputation", "full: a third more; selective: the attention term once more in forward", "", page);
  AddFormula("MFU, HFU", "model FLOPs, or FLOPs with recomputation, / step time / (GPUs x peak)", "", page);
  AddFormula("bubble", "(p-1) / (v m + p-1)", "p stages, m microbatches, v chunks per stage", page);
  AddFormula("parameters, gradients, optimizer", "2, 2 and 12 bytes per parameter / tensor / pipeline",
             "ZeRO 1 divides the optimizer's by data, 2 the gradients' too, 3 the parameters' too", page);
  AddFormula("activations", "s b h (10 + 24/t + 5 a s / h t) bytes per layer and microbatch",
             "10/t with sequence parallelism; selective recomputation drops the last term, full leaves 2 s b h; "
             "x layers per stage x microbatches in flight",
             page);
  AddFormula("GPU-hours lost per day", "24 x GPUs x (1 - MFU)", "", page);
  AddFormula("overlap efficiency", "1 - (step - max(compute, communication)) / min(compute, communication)", "", page);
  for (const StepTraffic& one : prediction.traffic)
    AddFormula(one.what, one.formula, "sent: " + Amount(one.sent_bytes, "B"), page);
}

}  // namespace tacet
