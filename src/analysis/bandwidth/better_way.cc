// SPDX-License-Identifier: Apache-2.0
#include "analysis/bandwidth/better_way.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "analysis/timing/statistics.h"

namespace tacet {
namespace {

// Faster by less is not worth a file that outlives the machine it was measured on.
constexpr double kLeastGain = 0.05, kDeviations = 3;
// Where nothing was measured twice: what repeated runs of nccl-tests differ by on a quiet machine.
constexpr double kUsualNoise = 0.02;
// Fewer sizes that were measured twice say nothing of the rest.
constexpr size_t kLeastTwins = 3;

using Family = std::tuple<std::string, std::string, int32_t, std::vector<std::string>, DataType, std::string>;

Family FamilyOf(const Sweep& sweep) {
  return {sweep.tool, sweep.operation, sweep.ranks, sweep.hosts, sweep.type, sweep.library};
}

// Mean over layouts and runs of one size, and the standard error of it as a share.
struct Timing {
  double us = 0, error = kUsualNoise;
  bool known = false;
};

Timing TimingOf(const Sweep& sweep, int64_t bytes) {
  Timing timing;
  double sum = 0, spread = -1;
  size_t layouts = 0, samples = 0;
  for (const SweepPoint& point : sweep.points) {
    if (point.bytes != bytes || point.time_us <= 0) continue;
    sum += point.time_us;
    ++layouts;
    samples += std::max(point.times_us.size(), point.iterations_us.size());
    spread = std::max(spread, point.spread);
  }
  if (layouts == 0) return timing;
  timing.us = sum / static_cast<double>(layouts);
  timing.known = true;
  if (spread >= 0 && samples >= 2) timing.error = spread / std::sqrt(static_cast<double>(samples));
  timing.error = std::max(timing.error, std::min(kUsualNoise, std::max(sweep.fit.noise, 0.005)));
  return timing;
}

std::string WayOf(const std::string& algorithm, const std::string& protocol) {
  return algorithm + (algorithm.empty() || protocol.empty() ? "" : " ") + protocol;
}

std::string Squeezed(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_' && c != ' ') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// What NCCL took by itself: its log, else its model.
void NameChosen(const ModelCheck* check, OpKind op, BetterCell& cell) {
  if (!check) return;
  if (check->model && check->model->told_by)
    for (const NcclLoggedChoice& choice : check->model->told_by->choices) {
      if (choice.algorithm == NcclAlgorithm::unknown) continue;
      if (choice.op != OpKind::unknown && choice.op != op) continue;
      if (ChosenBytes(choice, check->model->communicator) != cell.bytes) continue;
      cell.chosen = WayOf(std::string(Name(choice.algorithm)), std::string(Name(choice.protocol)));
      cell.calls += choice.times;
    }
  if (!cell.chosen.empty()) return;
  for (const ModelPoint& point : check->points)
    if (point.bytes == cell.bytes)
      cell.chosen = WayOf(std::string(Name(point.algorithm)), std::string(Name(point.protocol)));
}

const ModelCheck* CheckOf(const std::vector<ModelCheck>& checks, size_t sweep) {
  for (const ModelCheck& check : checks)
    if (check.sweep == sweep) return &check;
  return nullptr;
}

// With NCCL_ALGO alone NCCL chose the protocol, which the file must name: its model tells.
std::string ProtocolAt(const ModelCheck* check, int64_t bytes) {
  if (!check) return "";
  for (const ModelPoint& point : check->points)
    if (point.bytes == bytes) return std::string(Name(point.protocol));
  return "";
}
std::string AlgorithmAt(const ModelCheck* check, int64_t bytes) {
  if (!check) return "";
  for (const ModelPoint& point : check->points)
    if (point.bytes == bytes) return std::string(Name(point.algorithm));
  return "";
}

bool IsOneWay(const Sweep& sweep) {
  const bool algorithm = sweep.algorithm.empty() || ParseNcclAlgorithm(sweep.algorithm) != NcclAlgorithm::unknown;
  const bool protocol = sweep.protocol.empty() || ParseNcclProtocol(sweep.protocol) != NcclProtocol::unknown;
  return algorithm && protocol;
}

// The sweep in which what NCCL takes by itself was forced; its time where it is known.
Timing TwinOf(const std::vector<Sweep>& sweeps, const std::vector<size_t>& members, const std::string& chosen,
              int64_t bytes) {
  for (const size_t i : members)
    if (!chosen.empty() && !sweeps[i].algorithm.empty() && !sweeps[i].protocol.empty() &&
        WayOf(sweeps[i].algorithm, sweeps[i].protocol) == chosen)
      return TimingOf(sweeps[i], bytes);
  return {};
}

// How far two runs of one way are apart on this machine: a run that something else slowed must not look like a bad
// choice.
void MeasureRunNoise(const std::vector<Sweep>& sweeps, const std::vector<size_t>& members, const ModelCheck* base_check,
                     BetterWay& way) {
  const Sweep& base = sweeps[way.sweep];
  std::vector<double> apart;
  int64_t last = -1;
  for (const SweepPoint& point : base.points) {
    if (point.bytes == last) continue;
    last = point.bytes;
    BetterCell cell;
    cell.bytes = point.bytes;
    NameChosen(base_check, base.kind, cell);
    const Timing chosen = TimingOf(base, point.bytes), forced = TwinOf(sweeps, members, cell.chosen, point.bytes);
    if (!chosen.known || !forced.known) continue;
    const TwinRuns twin{point.bytes, cell.chosen, chosen.us, forced.us};
    if (apart.empty() || twin.Apart() > way.worst_twin.Apart()) way.worst_twin = twin;
    apart.push_back(twin.Apart());
  }
  way.twin_sizes = apart.size();
  if (apart.size() >= kLeastTwins) way.run_noise = Median(apart);
}

// One size: the fastest forced way, if it beats what NCCL chooses by more than the noise. Of two runs of what NCCL
// chooses, by itself and forced, the faster one counts.
void CompareAt(const std::vector<Sweep>& sweeps, const std::vector<size_t>& members,
               const std::vector<ModelCheck>& checks, const ModelCheck* base_check, int64_t bytes, BetterWay& way) {
  const Sweep& base = sweeps[way.sweep];
  Timing chosen = TimingOf(base, bytes);
  if (!chosen.known) return;
  BetterCell best;
  best.bytes = bytes;
  NameChosen(base_check, base.kind, best);
  if (const Timing twin = TwinOf(sweeps, members, best.chosen, bytes); twin.known && twin.us < chosen.us) chosen = twin;
  for (const size_t i : members) {
    if (i == way.sweep || !IsOneWay(sweeps[i])) continue;
    const Timing other = TimingOf(sweeps[i], bytes);
    if (!other.known) continue;
    const double noise = std::hypot(chosen.error, other.error, way.run_noise);
    if (1 - other.us / chosen.us <= std::max(kLeastGain, kDeviations * noise)) continue;
    if (best.better_us > 0 && other.us >= best.better_us) continue;
    best.chosen_us = chosen.us, best.better_us = other.us, best.noise = noise;
    const ModelCheck* check = CheckOf(checks, i);
    best.algorithm = sweeps[i].algorithm.empty() ? AlgorithmAt(check, bytes) : sweeps[i].algorithm;
    best.protocol = sweeps[i].protocol.empty() ? ProtocolAt(check, bytes) : sweeps[i].protocol;
  }
  // The same way measured again is noise that the limits let pass.
  const bool same = !best.chosen.empty() && best.chosen == WayOf(best.algorithm, best.protocol);
  if (best.better_us > 0 && !same) way.cells.push_back(std::move(best));
}

}  // namespace

std::vector<BetterWay> FindBetterWays(const std::vector<Sweep>& sweeps, const std::vector<ModelCheck>& checks) {
  std::map<Family, std::vector<size_t>> families;
  for (size_t i = 0; i < sweeps.size(); ++i)
    if (sweeps[i].tool == "nccl-tests" && sweeps[i].ranks > 1 && NcclTunedIndex(sweeps[i].kind) >= 0)
      families[FamilyOf(sweeps[i])].push_back(i);
  std::vector<BetterWay> ways;
  for (const auto& [family, members] : families) {
    const auto plain = std::find_if(members.begin(), members.end(), [&](size_t i) {
      return sweeps[i].algorithm.empty() && sweeps[i].protocol.empty();
    });
    if (plain == members.end() || members.size() < 2) continue;
    const Sweep& base = sweeps[*plain];
    BetterWay way;
    way.sweep = *plain;
    way.operation = base.operation;
    way.ranks = base.ranks;
    const ModelCheck* base_check = CheckOf(checks, *plain);
    way.nodes = base_check ? base_check->forced.nodes : base.Nodes();  // as NCCL counts them, which its tuner sees
    MeasureRunNoise(sweeps, members, base_check, way);
    int64_t last = -1;
    for (const SweepPoint& point : base.points) {
      if (point.bytes == last) continue;
      last = point.bytes;
      CompareAt(sweeps, members, checks, base_check, point.bytes, way);
    }
    way.ways = members.size() - 1;
    ways.push_back(std::move(way));
  }
  return ways;
}

std::string TunerFile(const std::vector<BetterWay>& ways) {
  std::string rows;
  size_t unnamed = 0;
  for (const BetterWay& way : ways) {
    for (size_t i = 0; i < way.cells.size();) {
      const BetterCell& first = way.cells[i];
      size_t end = i + 1;
      double gain = first.Gain(), least = first.Gain();
      while (end < way.cells.size() && way.cells[end].algorithm == first.algorithm &&
             way.cells[end].protocol == first.protocol && way.cells[end].bytes <= 4 * way.cells[end - 1].bytes) {
        gain = std::max(gain, way.cells[end].Gain()), least = std::min(least, way.cells[end].Gain());
        ++end;
      }
      const int64_t last = way.cells[end - 1].bytes;
      i = end;
      if (ParseNcclAlgorithm(first.algorithm) == NcclAlgorithm::unknown ||
          ParseNcclProtocol(first.protocol) == NcclProtocol::unknown) {
        ++unnamed;
        continue;
      }
      std::string algorithm = Squeezed(first.algorithm);
      for (const auto& [from, to] : {std::pair{"collnetdirect", "collnet_direct"},
                                     std::pair{"collnetchain", "collnet_chain"}, std::pair{"nvlstree", "nvls_tree"}})
        if (algorithm == from) algorithm = to;
      char text[256];
      std::snprintf(text, sizeof text, "# measured: %.0f to %.0f %% less time than %s\n", 100 * least, 100 * gain,
                    first.chosen.empty() ? "what NCCL chooses" : first.chosen.c_str());
      rows += text;
      rows += Squeezed(way.operation) + "," + std::to_string(first.bytes) + "," + std::to_string(last) + "," +
              algorithm + "," + Squeezed(first.protocol) + ",-1," + std::to_string(way.nodes) + "," +
              std::to_string(way.ranks) + ",-1,-1\n";
    }
  }
  std::string out =
      "# Cells in which another algorithm or protocol was measured to be faster than NCCL's choice.\n"
      "# Use: NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=<this file> (NCCL's "
      "plugins/tuner/example)\n"
      "# Undo it: unset both variables. Measure again after any change of NCCL, driver, NICs or number of nodes.\n"
      "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  if (unnamed > 0)
    out += "# " + std::to_string(unnamed) +
           " more omitted: only the algorithm or only the protocol of the faster run is known\n";
  return out + rows;
}

}  // namespace tacet
