// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/predict_options.h"
#include "cli/profile_paths.h"
#include "cli/shared_options.h"
#include "render/prediction/prediction_render.h"
#include "render/report/redact_answer.h"

namespace tacet {

extern const Command kPredictCommand;
namespace {

constexpr std::string_view kNewest = "2.30.7";

void ApplySettings(const NcclSettings& given, NcclCommunicator& c) {
  if (!given.algo.empty()) c.settings.algo = given.algo;
  if (!given.proto.empty()) c.settings.proto = given.proto;
}

// From logs and graph files. The jobs must outlive the prediction: it points into them.
Result<bool> PredictFiles(const std::vector<Incident>& jobs, const PredictInputs& inputs, Prediction& prediction) {
  for (const Incident& job : jobs) {
    std::vector<NcclGroupModel> models = ModelCommunicators(job, inputs.hints);
    for (NcclGroupModel& model : models) {
      if (inputs.settings.algo.empty() && inputs.settings.proto.empty()) continue;
      ApplySettings(inputs.settings, model.communicator);
      if (model.is_modelled) model.costs = ComputeNcclCosts(model.communicator);
    }
    for (CommunicatorPrediction& one : PredictJob(job, models, inputs.request))
      prediction.before.push_back(std::move(one));
  }
  if (!prediction.before.empty()) return true;
  return Error{"no communicator of more than one rank was found",
               "set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING, or give --gpus, --nodes and --nics"};
}

void PredictHardware(const PredictInputs& inputs, Prediction& prediction) {
  std::vector<std::string> assumptions;
  const NcclRelease release = inputs.hints.release.value_or(ParseNcclRelease(kNewest));
  if (!inputs.hints.release) assumptions.push_back("NCCL " + std::string(kNewest) + " (--nccl sets it)");
  if (!inputs.hints.cpu && inputs.hardware->nodes > 1) assumptions.push_back("Intel processors (--cpu sets them)");
  NcclCommunicator c = SearchGraphs(release, *inputs.hardware, &assumptions);
  ApplySettings(inputs.settings, c);
  const std::string label = std::to_string(inputs.hardware->nodes * inputs.hardware->gpus_per_node) + " x " +
                            std::string(inputs.hardware->gpu.name);
  CommunicatorPrediction one = PredictCommunicator(c, label, inputs.request);
  one.assumptions = std::move(assumptions);
  prediction.before.push_back(std::move(one));
}

// "send and all_to_all are not in NCCL's cost model ...": what was asked for and is in no table.
void NoteOperationsLeftOut(const PredictInputs& inputs, Prediction& prediction) {
  if (inputs.plain || prediction.before.empty() || prediction.before.front().points.empty()) return;
  std::vector<std::string> names;
  for (const OpKind op : inputs.request.ops) {
    const auto& points = prediction.before.front().points;
    if (std::none_of(points.begin(), points.end(), [op](const PredictedPoint& one) { return one.op == op; }))
      names.emplace_back(Name(op));
  }
  if (names.empty()) return;
  std::string words;
  for (size_t i = 0; i < names.size(); ++i) words += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  prediction.notes.push_back(words + (names.size() == 1 ? " is" : " are") +
                             " not in NCCL's cost model; --alpha and --bandwidth give a simple model");
}

Result<bool> PredictChanges(const PredictInputs& inputs, Prediction& prediction) {
  if (inputs.changes.empty()) return true;
  prediction.changes = inputs.changes;
  for (const CommunicatorPrediction& before : prediction.before) {
    std::vector<std::string> assumptions;
    auto changed = ApplyChange(before.communicator, inputs.changes, &assumptions);
    if (!changed) return changed.error();
    CommunicatorPrediction after = PredictCommunicator(*changed, before.label, inputs.request);
    after.assumptions = std::move(assumptions);
    prediction.after.push_back(std::move(after));
  }
  return true;
}

void PredictPlain(const PredictInputs& inputs, Prediction& prediction) {
  char text[160];
  std::snprintf(text, sizeof text, "alpha %.3g µs, %.4g GB/s, %d ranks", inputs.link.alpha_us,
                inputs.link.bandwidth_gbps, inputs.ranks);
  prediction.plain_link = inputs.loggp ? "LogGP as " + std::string(text) : text;
  for (const OpKind op : inputs.request.ops)
    for (const int64_t bytes : inputs.request.sizes) {
      const auto add = [&](const PlainCost& cost, double time) {
        prediction.plain.push_back({op, bytes, cost, time, BusBandwidth(op, inputs.ranks, bytes, time)});
      };
      for (const PlainCost& cost : PlainCosts(op, inputs.ranks, static_cast<double>(bytes)))
        add(cost, inputs.loggp ? TimeOf(cost, *inputs.loggp) : TimeOf(cost, inputs.link));
      if (!inputs.hierarchy) continue;
      const double time = HierarchicalTime(op, static_cast<double>(bytes), *inputs.hierarchy);
      if (time > 0) add({"hierarchical", 0, 0, HierarchicalFormula(op)}, time);
    }
}

void PredictStep(const PredictInputs& inputs, Prediction& prediction) {
  prediction.has_step = true;
  prediction.model = inputs.model;
  prediction.layout = inputs.layout;
  prediction.parameters = CountParameters(inputs.model);
  prediction.memory = EstimateMemory(inputs.model, inputs.layout);
  const int per_node = inputs.hardware ? inputs.hardware->gpus_per_node : 8;
  prediction.traffic = EstimateTraffic(inputs.model, inputs.layout, per_node);
  double peak = inputs.peak_tflops;
  if (inputs.hardware) {
    const NcclRelease release = inputs.hints.release.value_or(ParseNcclRelease(kNewest));
    TimeTraffic(release, *inputs.hardware, prediction.traffic);
    if (peak <= 0) peak = inputs.hardware->gpu.bf16_tflops;
    prediction.memory_limit_gb = inputs.hardware->gpu.memory_gb;
    const int gpus = inputs.hardware->gpus_per_node * inputs.hardware->nodes;
    if (gpus != inputs.layout.gpus())
      prediction.step_assumptions.push_back("the layout takes " + std::to_string(inputs.layout.gpus()) +
                                            " GPUs, the hardware has " + std::to_string(gpus));
  } else {
    prediction.step_assumptions.push_back("8 GPUs per node; --gpus, --nodes and --nics give times");
  }
  if (peak > 0) {
    char text[96];
    std::snprintf(text, sizeof text, "a peak of %.0f TFLOP/s per GPU, dense 16-bit", peak);
    prediction.step_assumptions.push_back(text);
  }
  if (inputs.layout.recompute == Recompute::none && inputs.model.heads > 0 && prediction.memory.activations > 0)
    prediction.step_assumptions.push_back(
        "attention scores are stored, as without FlashAttention; recompute=selective leaves them out of the "
        "activations");
  prediction.step = EstimateStep(inputs.model, inputs.layout, prediction.traffic, peak, inputs.step_ms);
  const StepEstimate& step = prediction.step;
  // Of a step longer than both together, this arithmetic cannot say what was hidden.
  const bool tells = step.compute_ms > 0 && step.communication_ms > 0 && inputs.step_ms > 0 &&
                     inputs.step_ms <= step.compute_ms + step.communication_ms;
  if (tells)
    prediction.overlap =
        std::clamp(OverlapEfficiency(step.compute_ms, step.communication_ms, inputs.step_ms), 0.0, 1.0);
}

int RunPredict(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kPredictCommand.help);
  if (!options) return Complain(options.error());
  const std::string format = options->Value("--format").value_or("text");
  if (format != "text" && format != "json" && format != "csv")
    return Complain({"--format takes text, json or csv, not '" + format + "'", ""});
  auto output = ReadOutputOptions(*options);
  if (!output) return Complain(output.error());
  auto load = ReadLoadOptions(*options);
  if (!load) return Complain(load.error());
  auto inputs = ReadPredictInputs(*options);
  if (!inputs) return Complain(inputs.error());
  if (options->rest().empty() && !inputs->hardware && !inputs->plain && !inputs->train)
    return Complain(
        {"predict needs logs, --gpus, --alpha or --model", "tacet predict --gpus 8xH100 --nodes 16 --nics 8x400G"});

  Prediction prediction;
  std::vector<Incident> jobs;
  if (!options->rest().empty()) {
    auto loaded = LoadAllJobs(options->rest(), *load);
    if (!loaded) return Complain(loaded.error());
    jobs = std::move(*loaded);
    if (auto ok = PredictFiles(jobs, *inputs, prediction); !ok) return Complain(ok.error());
  } else if (inputs->hardware) {
    PredictHardware(*inputs, prediction);
  }
  NoteOperationsLeftOut(*inputs, prediction);
  if (auto ok = PredictChanges(*inputs, prediction); !ok) return Complain(ok.error());
  if (inputs->plain) PredictPlain(*inputs, prediction);
  if (inputs->train) PredictStep(*inputs, prediction);

  if (!options->Has("--no-redact")) RedactPrediction(prediction);
  PredictionTextOptions text;
  text.width = static_cast<size_t>(TerminalWidth());
  text.colour = output->colour;
  text.verbose = output->verbose;
  text.explain = options->Has("--explain");
  const std::string bytes = format == "json"  ? RenderPredictionJson(prediction)
                            : format == "csv" ? RenderPredictionCsv(prediction)
                                              : RenderPredictionText(prediction, text);
  return WriteOutput(output->path, bytes) ? kHealthy : kUsage;
}

}  // namespace

const Command kPredictCommand = {"predict",
                                 "Predict bandwidth, the algorithm that NCCL chooses, and what a change would gain",
                                 R"(tacet predict [options] [PATH...]

Evaluates NCCL's own cost model, exact for releases 2.12 to 2.30: time and bus bandwidth by operation, size,
algorithm and protocol, which one wins where, and why the others lose. The inputs come from NCCL logs
(NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING), where the prediction is checked against the
printed tables and the logged choices, or from a description of the hardware (--gpus, --nodes, --nics). From
2.31 on the log itself states what NCCL expects, and that is shown.

      --op LIST        operations (default all_reduce,all_gather,reduce_scatter), or all
  -s, --size LIST      sizes of the whole buffer: 4K,64K,1M,16M,256M,1G (the default)
      --gpus G         GPUs of a node: 8xH100; with logs: the GPU model, if the log does not name it
      --nodes N        number of nodes; with logs: only if the log does not say
      --nics N         NICs of a node: 8x400G
      --gdr on|off     GPUDirect RDMA (default on)
      --cpu C          intel (default), amd or arm
      --nccl V         release, such as 2.28.9; with logs: only if the log does not say
      --algo L, --proto L
                       NCCL_ALGO and NCCL_PROTO
  -w, --what-if L      changes, shown before and after: nics=8x400G,gdr=on,version=2.24,nodes=32,channels=32,
                       algo=Ring,proto=^LL128,cpu=amd,gpus=8xB200,pat=1
  -v, --verbose        every algorithm and protocol of each size, with its time or why it may not be used

Simple models of a link, for all collectives and for send and receive:

      --alpha T --bandwidth B
                       latency, such as 5us, and GB/s of the link, from data sheets or from a fit
      --loggp L,o,g,G  LogGP instead: latency, overhead and gap in µs, gap per byte in ns
      --ranks N        number of ranks (default 8)
      --within A:B     alpha in µs and GB/s inside a node: adds the hierarchical form; --nodes sets the nodes

The training step of a transformer: volumes, times, memory, MFU and HFU, bubble, GPU-hours lost:

      --model L        layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256,seq=8192,experts=8,active=2
      --layout L       dp=8,tp=4,pp=2,cp=1,ep=1,zero=1,batch=1,micro=16,interleave=1,sp=on,recompute=selective
                       (micro: microbatches per step; recompute: none, selective, full, or a number of
                       layers per stage)
      --step-time T    the measured time of a step, such as 4.2s
      --peak-tflops N  peak of one GPU (default: by --gpus)

      --explain        units and formulas below the numbers
  -f, --format F       text (default), json or csv
      --json           the same as --format json
  -o, --output FILE    write to FILE instead of standard output
  -j, --threads N      files to read in parallel (default: one per core)
      --max-file-mb N  unpack at most this much of a file (default 512)
      --color WHEN     auto (default: on a terminal, unless NO_COLOR is set), always, never
      --no-redact      keep passwords, tokens and keys found in the evidence; by default they are removed

Exit code:
  0  done
  2  wrong usage or nothing to predict
  3  internal error

Examples:
  tacet predict logs/
  tacet predict --gpus 8xH100 --nodes 16 --nics 8x400G
  tacet predict logs/ --what-if nics=8x400G,gdr=on
  tacet predict logs/ --op all_reduce --size 64MiB --verbose
  tacet predict --alpha 12us --bandwidth 46 --ranks 64 --op all
  tacet predict --gpus 8xH100 --nodes 8 --nics 8x400G --step-time 4.2s --explain \
    --model layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256,seq=8192 \
    --layout dp=8,tp=8,micro=8
)",
                                 RunPredict};

}  // namespace tacet
