// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_choice.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cstddef>

namespace tacet {
namespace {

constexpr int kMaxDirectRanks = 8, kMaxNvlsRanks = 32;
constexpr int kWarpThreads = 32, kMaxThreads = 640;

// NCCL's correction of trees by the size's power of two, from 64 bytes on.
constexpr float kTreeCorrection[kNcclProtocols][24] = {
    {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0, 1.0},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

bool IsFloat8(DataType type) { return type == DataType::float8_e4m3 || type == DataType::float8_e5m2; }

// NVLink multicast adds sums of the types it knows.
bool NvlsReduces(DataType type, ReduceOp reduction) {
  const bool sums = reduction == ReduceOp::sum || reduction == ReduceOp::unknown;
  const bool orders = reduction == ReduceOp::min || reduction == ReduceOp::max;
  switch (type) {
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64:
    case DataType::float16:
    case DataType::bfloat16: return sums || orders;
    case DataType::float32:
    case DataType::float64: return sums;
    case DataType::unknown: return sums || orders;
    default: return false;
  }
}

NcclObstacle OperationObstacle(const NcclCommunicator& c, const NcclRequest& request, NcclAlgorithm a) {
  const bool all_reduce = request.op == OpKind::all_reduce;
  const bool collnet = a == NcclAlgorithm::collnet_direct || a == NcclAlgorithm::collnet_chain;
  if (collnet && !c.collnet) return NcclObstacle::no_collnet;
  const bool limited = (a == NcclAlgorithm::collnet_direct && c.release.AtLeast(23)) ||
                       (a == NcclAlgorithm::collnet_chain && c.release.AtLeast(28));
  if (limited && c.LocalRanks() > kMaxDirectRanks) return NcclObstacle::too_many_local_ranks;
  if (a == NcclAlgorithm::nvls || a == NcclAlgorithm::nvls_tree) {
    if (!c.multicast) return NcclObstacle::no_nvls;
    const bool any_type = request.op == OpKind::all_gather && c.release.AtLeast(19);
    if (!any_type && !NvlsReduces(request.type, request.reduction)) return NcclObstacle::data_type;
    if (!all_reduce && c.LocalRanks() > kMaxNvlsRanks && c.release.AtLeast(26))
      return NcclObstacle::too_many_local_ranks;
    if (a == NcclAlgorithm::nvls && c.nodes > 1) {
      if (!c.collnet) return NcclObstacle::no_collnet;
      if (!all_reduce && c.release.AtLeast(19) && c.release.Before(27)) return NcclObstacle::no_collnet;
    }
  }
  if (a == NcclAlgorithm::pat && request.op == OpKind::reduce_scatter && request.reduction == ReduceOp::avg)
    return NcclObstacle::average;
  return NcclObstacle::none;
}

int SizeClass(const NcclRelease& release, int64_t bytes) {
  const uint64_t lines = static_cast<uint64_t>(std::max<int64_t>(0, bytes)) >> 6;
  if (lines == 0) return release.AtLeast(22) ? -1 : 0;
  return static_cast<int>(std::bit_width(lines)) - 1;
}

// Time of one cell; the arithmetic is NCCL's, in float.
NcclCandidate Estimate(const NcclCommunicator& c, const NcclCell& cell, float bandwidth, const NcclRequest& request,
                       NcclAlgorithm a, NcclProtocol p) {
  NcclCandidate candidate{a, p};
  float bw = bandwidth, lat = cell.latency_us;
  const bool all_reduce = request.op == OpKind::all_reduce;
  const int size = SizeClass(c.release, request.bytes);
  if (all_reduce && a == NcclAlgorithm::tree && size >= 0 && size < 23)
    bw *= kTreeCorrection[static_cast<int>(p)][size];
  if (all_reduce && a == NcclAlgorithm::nvls_tree && size >= 0 && size < 24 && c.min_capability >= 100 &&
      c.cpu_arch == CpuArch::x86 && c.release.AtLeast(29, 2))
    bw *= kTreeCorrection[static_cast<int>(p)][size];
  const bool mnnvl = c.mnnvl && c.release.minor == 20;
  if (a == NcclAlgorithm::ring && p == NcclProtocol::simple && c.nodes > 1 && !mnnvl && all_reduce) {
    if (c.release.Before(18)) {
      const double newer = c.release.minor == 17 && c.min_capability >= 90 ? 1.5 : 1.9;
      if (static_cast<double>(request.bytes) >= c.ranks / 16.0 * 65536) lat = static_cast<float>(lat * newer);
    } else if (c.channels > 0 && request.bytes / (int64_t{c.channels} * c.ranks) >= 64) {
      lat = static_cast<float>(lat * (c.min_capability < 80 ? 1.9 : 1.4));
    }
  }
  constexpr int kBatch = 10;  // operations that one launch of the other algorithms takes
  const int launches = a == NcclAlgorithm::ring ? request.operations : (request.operations + kBatch - 1) / kBatch;
  float time = lat * static_cast<float>(launches) + static_cast<float>(request.bytes) / (1000 * bw);
  if (IsFloat8(request.type) && a == NcclAlgorithm::ring && c.ranks > 8 && c.release.AtLeast(24)) time *= 1024.0f;
  candidate.time_us = time;
  candidate.latency_us = lat;
  candidate.bandwidth = bw;
  return candidate;
}

void SetChannels(const NcclCommunicator& c, const NcclCostTable& table, int64_t bytes, NcclDecision& decision) {
  const NcclCandidate& best = decision.candidates[static_cast<size_t>(decision.winner)];
  const int a = static_cast<int>(best.algorithm), p = static_cast<int>(best.protocol);
  const bool nvls = best.algorithm == NcclAlgorithm::nvls || best.algorithm == NcclAlgorithm::nvls_tree;
  const bool direct = best.algorithm == NcclAlgorithm::collnet_direct;
  int channels = std::max(1, c.channels), threads = table.max_threads[a][p];
  int64_t threshold = table.thread_thresholds[a][p];
  const auto too_small = [&](int64_t heads) { return bytes < int64_t{channels} * threads * heads * threshold; };
  if (direct) {
    bool small = true;
    for (int limit = 16; limit >= 1 && small; limit /= 2)
      while ((small = too_small(std::max(1, c.collnet_heads))) && channels > limit) {
        if (channels == limit + limit / 2) threshold /= 2;
        --channels;
      }
  } else if (nvls) {
    channels = c.nodes > 1 && best.algorithm == NcclAlgorithm::nvls && c.release.AtLeast(27)
                   ? std::min(c.nvls_channels, c.channels)
                   : c.nvls_channels;
  } else {
    while (too_small(1) && channels >= 2) --channels;
    while (too_small(1) && threads % 128 == 0 && threads > 0) threads /= 2;
  }
  if (best.protocol == NcclProtocol::simple) {
    if (best.algorithm == NcclAlgorithm::ring) threads += kWarpThreads;
    if (best.algorithm == NcclAlgorithm::tree) threads += 4 * kWarpThreads;
  }
  threads = std::max(threads, 3 * kWarpThreads);
  const bool all_threads =
      (best.algorithm == NcclAlgorithm::tree && c.release.AtLeast(22)) || best.algorithm == NcclAlgorithm::pat;
  decision.channels = channels;
  decision.threads = all_threads ? kMaxThreads : threads;
}

}  // namespace

double BusBandwidth(OpKind op, int ranks, int64_t bytes, double time_us) {
  return time_us > 0 ? static_cast<double>(bytes) / 1000 / time_us * BusFactor(op, ranks) : 0;
}

NcclDecision DecideNccl(const NcclCommunicator& c, const NcclCostTable& table, const NcclRequest& request) {
  NcclDecision decision;
  const int f = NcclTunedIndex(request.op);
  if (f < 0) return decision;
  float least = c.release.AtLeast(30) ? FLT_MAX : 3600000000.0f;
  int backup = -1;
  float backup_least = least;
  for (int a = 0; a < NcclAlgorithmCount(c.release); ++a) {
    const auto algorithm = static_cast<NcclAlgorithm>(a);
    const NcclObstacle forbidden = OperationObstacle(c, request, algorithm);
    for (int p = 0; p < kNcclProtocols; ++p) {
      const NcclCell& cell = table.cells[f][a][p];
      if (cell.obstacle == NcclObstacle::not_made || cell.obstacle == NcclObstacle::older_release) continue;
      const auto protocol = static_cast<NcclProtocol>(p);
      const auto index = static_cast<int>(decision.candidates.size());
      if (c.ranks > 1 && cell.bandwidth > 0 && forbidden == NcclObstacle::none) {
        decision.candidates.push_back(Estimate(c, cell, cell.bandwidth, request, algorithm, protocol));
        const auto time = static_cast<float>(decision.candidates.back().time_us);
        if (time < least) {
          least = time;
          decision.winner = index;
        }
        continue;
      }
      NcclCandidate candidate{algorithm, protocol};
      candidate.obstacle = cell.obstacle != NcclObstacle::none ? cell.obstacle : forbidden;
      if (algorithm == NcclAlgorithm::ring && table.ring_backup[f][p] > 0 && c.release.AtLeast(19) &&
          c.release.Before(24)) {
        const NcclCandidate kept = Estimate(c, cell, table.ring_backup[f][p], request, algorithm, protocol);
        if (static_cast<float>(kept.time_us) < backup_least) {
          backup_least = static_cast<float>(kept.time_us);
          backup = index;
        }
      }
      decision.candidates.push_back(candidate);
    }
  }
  if (decision.winner < 0 && backup >= 0) {
    decision.winner = backup;
    decision.ring_backup = true;
    decision.candidates[static_cast<size_t>(backup)].time_us = backup_least;
  }
  if (decision.winner < 0) return decision;
  SetChannels(c, table, request.bytes, decision);
  decision.bus_bandwidth = BusBandwidth(request.op, c.ranks, request.bytes, decision.best()->time_us);
  return decision;
}

}  // namespace tacet
