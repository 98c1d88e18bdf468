// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_options.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text_scan.h"
#include "cli/profile_paths.h"

namespace tacet {
namespace {

// "dp=8,tp=4" -> {dp, 8}, {tp, 4}
std::vector<std::pair<std::string, std::string>> SplitPairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    std::string_view entry = TakeUntil(text, ',');
    if (!text.empty()) text.remove_prefix(1);
    const size_t equals = entry.find('=');
    if (entry.empty()) continue;
    pairs.emplace_back(entry.substr(0, equals), equals == std::string_view::npos ? "" : entry.substr(equals + 1));
  }
  return pairs;
}

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = TakeUntil(rest, ',');
    if (!rest.empty()) rest.remove_prefix(1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

// --what-if a=1,b=2: a comma may also belong to a value ("algo=Ring,Tree"), then the part has no equals sign.
std::vector<std::string> SplitChanges(const std::string& text) {
  std::vector<std::string> changes;
  for (std::string& part : SplitList(text)) {
    if (!changes.empty() && part.find('=') == std::string::npos)
      changes.back() += "," + part;
    else
      changes.push_back(std::move(part));
  }
  return changes;
}

Result<bool> ReadRequest(const Options& options, PredictionRequest& request) {
  for (const std::string& name : SplitList(options.Value("--op").value_or("all_reduce,all_gather,reduce_scatter"))) {
    const OpKind op = name == "all" ? OpKind::all_reduce : ParseOpKind(name);
    if (op == OpKind::unknown)
      return Error{"'" + name + "' is not an operation",
                   "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send, or all"};
    if (name == "all") {
      request.ops = {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::broadcast, OpKind::reduce,
                     OpKind::all_to_all, OpKind::send};
      break;
    }
    request.ops.push_back(op);
  }
  for (const std::string& text : SplitList(options.Value("--size").value_or("4K,64K,1M,16M,256M,1G"))) {
    auto size = ParseSize(text);
    if (!size) return size.error();
    request.sizes.push_back(*size);
  }
  return true;
}

Result<bool> ReadHardware(const Options& options, PredictInputs& inputs) {
  if (const auto release = options.Value("--nccl")) {
    inputs.hints.release = ParseNcclRelease(*release);
    if (!inputs.hints.release->known()) return Error{"--nccl takes a release like 2.28.9, not '" + *release + "'", ""};
  }
  if (const auto cpu = options.Value("--cpu")) {
    if (*cpu != "intel" && *cpu != "amd" && *cpu != "arm")
      return Error{"--cpu takes intel, amd or arm, not '" + *cpu + "'", ""};
    inputs.hints.cpu = *cpu == "amd" ? CpuVendor::amd : CpuVendor::intel;
  }
  auto nodes = options.Number("--nodes", 0, 1, 1 << 20);
  if (options.Has("--nodes") && !nodes) return nodes.error();
  if (options.Has("--nodes")) inputs.hints.nodes = static_cast<int>(*nodes);
  inputs.settings.algo = options.Value("--algo").value_or("");
  inputs.settings.proto = options.Value("--proto").value_or("");
  const auto gpus = options.Value("--gpus");
  if (!gpus) return true;
  auto parsed = ParseGpus(*gpus);
  if (!parsed) return parsed.error();
  inputs.hints.capability = parsed->second->capability;
  ClusterHardware hardware;
  hardware.gpus_per_node = parsed->first;
  hardware.gpu = *parsed->second;
  hardware.nodes = inputs.hints.nodes.value_or(1);
  hardware.cpu = inputs.hints.cpu.value_or(CpuVendor::intel);
  hardware.gdr = options.Value("--gdr").value_or("on") != "off";
  if (const auto nics = options.Value("--nics")) {
    auto read = ParseNics(*nics);
    if (!read) return read.error();
    hardware.nics_per_node = read->first;
    hardware.nic_gbit = read->second;
  }
  inputs.hardware = hardware;
  return true;
}

Result<bool> ReadPlain(const Options& options, PredictInputs& inputs) {
  const auto alpha = options.Value("--alpha"), bandwidth = options.Value("--bandwidth"),
             loggp = options.Value("--loggp");
  if (!alpha && !bandwidth && !loggp) return true;
  inputs.plain = true;
  if (loggp) {
    const std::vector<std::string> parts = SplitList(*loggp);
    double values[4] = {};
    if (parts.size() != 4)
      return Error{"--loggp takes four numbers: L,o,g in µs and G in ns per byte", "for example 5,1,2,0.02"};
    for (size_t i = 0; i < 4; ++i) {
      std::string_view text = parts[i];
      if (!TakeDouble(text, &values[i]) || !text.empty() || values[i] < 0)
        return Error{"--loggp takes four numbers, not '" + parts[i] + "'", "for example 5,1,2,0.02"};
    }
    inputs.loggp = LogGp{values[0], values[1], values[2], values[3] / 1000};
    inputs.link = AlphaBetaOf(*inputs.loggp);
  }
  if (alpha) {
    auto us = ParseMicroseconds(*alpha);
    if (!us) return us.error();
    inputs.link.alpha_us = *us;
  }
  if (bandwidth) {
    std::string_view text = *bandwidth;
    if (!TakeDouble(text, &inputs.link.bandwidth_gbps) || inputs.link.bandwidth_gbps <= 0 ||
        (!text.empty() && text != "GB/s"))
      return Error{"--bandwidth takes GB/s, not '" + *bandwidth + "'", "for example 45"};
  }
  if (inputs.link.bandwidth_gbps <= 0) return Error{"--alpha needs --bandwidth", "GB/s of the link"};
  auto ranks = options.Number("--ranks", 8, 1, 1 << 24);
  if (!ranks) return ranks.error();
  inputs.ranks = static_cast<int>(*ranks);
  if (const auto within = options.Value("--within")) {  // alpha:GB/s of links inside a node
    Hierarchy h;
    std::string_view text = *within;
    const bool number = TakeDouble(text, &h.within.alpha_us);
    if (number && text.starts_with("us:")) text.remove_prefix(2);
    if (!number || !TakeLiteral(text, ":") || !TakeDouble(text, &h.within.bandwidth_gbps))
      return Error{"--within takes ALPHA:GB/s, not '" + *within + "'", "for example 2:370"};
    h.between = inputs.link;
    h.nodes = inputs.hints.nodes.value_or(2);
    h.gpus_per_node = std::max(1, inputs.ranks / std::max(1, h.nodes));
    h.nics_per_node = h.gpus_per_node;
    inputs.hierarchy = h;
  }
  return true;
}

Result<bool> ReadModelShape(const std::string& text, TrainingModel& model) {
  for (const auto& [key, value] : SplitPairs(text)) {
    auto number = ParseQuantity(value);
    if (!number) return Error{"--model: " + key + "=" + value + ": " + number.error().message, number.error().hint};
    double* place = key == "layers"     ? &model.layers
                    : key == "hidden"   ? &model.hidden
                    : key == "heads"    ? &model.heads
                    : key == "kv"       ? &model.kv_heads
                    : key == "head_dim" ? &model.head_dim
                    : key == "ffn"      ? &model.ffn
                    : key == "vocab"    ? &model.vocabulary
                    : key == "seq"      ? &model.sequence
                    : key == "experts"  ? &model.experts
                    : key == "active"   ? &model.active_experts
                    : key == "params"   ? &model.parameters
                                        : nullptr;
    if (!place)
      return Error{"--model: '" + key + "' is unknown",
                   "keys: layers hidden heads kv head_dim ffn vocab seq experts active params"};
    *place = *number;
  }
  if (model.sequence <= 0)
    return Error{"--model needs seq, the tokens of one sequence",
                 "layers=32,hidden=4096,heads=32,vocab=32000,seq=4096"};
  return true;
}

Result<bool> ReadLayout(const std::string& text, TrainingLayout& layout) {
  for (const auto& [key, value] : SplitPairs(text)) {
    if (key == "recompute") {
      layout.recompute = value == "selective" ? Recompute::selective
                         : value == "none"    ? Recompute::none
                                              : Recompute::full;
      std::string_view rest = value;
      double layers = 0;
      if (TakeDouble(rest, &layers)) layout.recomputed_layers = layers;
      continue;
    }
    if (key == "sp") {
      layout.sequence_parallel = value != "0" && value != "off";
      continue;
    }
    std::string_view rest = value;
    int number = 0;
    const bool fits =
        TakeNumber(rest, &number) && rest.empty() && number >= (key == "zero" ? 0 : 1) && number <= 1 << 20;
    if (!fits) return Error{"--layout: " + key + "=" + value + " is not a valid number", ""};
    int* place = key == "dp"           ? &layout.data
                 : key == "tp"         ? &layout.tensor
                 : key == "pp"         ? &layout.pipeline
                 : key == "cp"         ? &layout.context
                 : key == "ep"         ? &layout.expert
                 : key == "zero"       ? &layout.zero
                 : key == "micro"      ? &layout.micro_batches
                 : key == "interleave" ? &layout.interleave
                                       : nullptr;
    if (key == "batch") {
      layout.micro_batch = number;
    } else if (place) {
      *place = number;
    } else {
      return Error{"--layout: '" + key + "' is unknown",
                   "keys: dp tp pp cp ep zero batch micro interleave sp recompute"};
    }
  }
  if (layout.zero > 3) return Error{"--layout: zero is 0, 1, 2 or 3", ""};
  return true;
}

}  // namespace

Result<int64_t> ParseSize(std::string_view text) {
  const std::string given(text);
  double number = 0;
  text = Trim(text);
  if (!TakeDouble(text, &number) || number < 0)
    return Error{"'" + given + "' is not a size", "for example 64MiB, 1G or 4096"};
  text = Trim(text);
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},         {"B", 1},           {"K", 1024.0},         {"M", 1048576.0}, {"G", 1073741824.0},
      {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"kB", 1e3},      {"KB", 1e3},
      {"MB", 1e6},     {"GB", 1e9},        {"k", 1024.0},         {"m", 1048576.0}, {"g", 1073741824.0}};
  for (const auto& [unit, factor] : kUnits)
    if (text == unit) {
      if (number * factor > 1e15) return Error{"'" + given + "' is too large", "up to 1 PB"};
      return static_cast<int64_t>(std::llround(number * factor));
    }
  return Error{"'" + given + "' has no known unit", "for example 64MiB, 1G or 4096"};
}

Result<double> ParseMicroseconds(std::string_view text) {
  const std::string given(text);
  double number = 0;
  if (!TakeDouble(text, &number) || number < 0) return Error{"'" + given + "' is not a time", "for example 5us, 4.2s"};
  if (text.empty() || text == "us" || text == "µs") return number;
  if (text == "ms") return number * 1e3;
  if (text == "s") return number * 1e6;
  if (text == "ns") return number / 1e3;
  return Error{"'" + given + "' has no known unit", "ns, us, ms or s"};
}

Result<PredictInputs> ReadPredictInputs(const Options& options) {
  PredictInputs inputs;
  if (auto ok = ReadRequest(options, inputs.request); !ok) return ok.error();
  if (auto ok = ReadHardware(options, inputs); !ok) return ok.error();
  if (auto ok = ReadPlain(options, inputs); !ok) return ok.error();
  for (const std::string& text : options.Values("--what-if"))
    for (std::string& change : SplitChanges(text)) inputs.changes.push_back(std::move(change));
  const auto model = options.Value("--model"), layout = options.Value("--layout");
  if (layout && !model)
    return Error{"--layout needs --model", "--model layers=32,hidden=4096,heads=32,vocab=32000,seq=4096"};
  for (const std::string_view name : {"--step-time", "--peak-tflops"})
    if (!model && options.Value(name))
      return Error{std::string(name) + " needs --model", "--model layers=32,hidden=4096,heads=32,vocab=32000,seq=4096"};
  if (!model) return inputs;
  inputs.train = true;
  if (auto ok = ReadModelShape(*model, inputs.model); !ok) return ok.error();
  if (layout)
    if (auto ok = ReadLayout(*layout, inputs.layout); !ok) return ok.error();
  if (const auto step = options.Value("--step-time")) {
    auto us = ParseMicroseconds(*step);
    if (!us) return us.error();
    inputs.step_ms = *us / 1e3;
  }
  if (const auto peak = options.Value("--peak-tflops")) {
    auto number = ParseQuantity(*peak);
    if (!number) return number.error();
    inputs.peak_tflops = *number;
  }
  return inputs;
}

}  // namespace tacet
