// SPDX-License-Identifier: Apache-2.0
#include "predict/alpha_beta.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace tacet {
namespace {

// 1 GB/s moves 1000 bytes in a microsecond.
constexpr double kBytesPerUs = 1000;

double LogUp(int ranks) { return ranks <= 1 ? 0 : std::ceil(std::log2(static_cast<double>(ranks))); }

}  // namespace

static std::vector<PlainCost> AllPlainCosts(OpKind op, int ranks, double m) {
  const double n = std::max(1, ranks), log = LogUp(ranks), share = (n - 1) / n;
  switch (op) {
    case OpKind::all_reduce:
      return {{"ring", 2 * (n - 1), 2 * share * m, "2(n-1)a + 2(n-1)/n m/b"},
              {"double tree", 2 * log, 2 * m, "2 ceil(log2 n) a + 2 m/b"},
              {"recursive doubling", log, log * m, "log2 n (a + m/b)"},
              {"halving and doubling", 2 * log, 2 * share * m, "2 log2 n a + 2(n-1)/n m/b"}};
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
      return {{"ring", n - 1, share * m, "(n-1)a + (n-1)/n m/b"},
              {op == OpKind::all_gather ? "recursive doubling" : "recursive halving", log, share * m,
               "log2 n a + (n-1)/n m/b"},
              {"PAT", log, share * m, "ceil(log2 n) a + (n-1)/n m/b, any n"}};
    case OpKind::broadcast:
    case OpKind::reduce:
      return {{"ring (pipelined)", n - 1, m, "(n-1)a + m/b"},
              {"double tree", log, m, "ceil(log2 n) a + m/b"},
              {"binomial tree", log, log * m, "ceil(log2 n) (a + m/b)"},
              {op == OpKind::reduce ? "reduce-scatter and gather" : "scatter and all-gather", log + n - 1,
               2 * share * m, "(ceil(log2 n) + n-1) a + 2(n-1)/n m/b"}};
    case OpKind::all_to_all:
      return {{"pairwise", n - 1, share * m, "(n-1)a + (n-1)/n m/b"},
              {"Bruck", log, log * m / 2, "ceil(log2 n) (a + m/(2b))"}};
    case OpKind::gather:
    case OpKind::scatter:
      return {{"linear", n - 1, share * m, "(n-1)a + (n-1)/n m/b"},
              {"binomial tree", log, share * m, "ceil(log2 n) a + (n-1)/n m/b"}};
    case OpKind::send:
    case OpKind::recv: return {{"direct", 1, m, "a + m/b"}};
    case OpKind::barrier: return {{"dissemination", log, 0, "ceil(log2 n) a"}};
    case OpKind::unknown:
    case OpKind::coalesced: break;
  }
  return {};
}

double TimeOf(const PlainCost& cost, const AlphaBeta& link) {
  if (link.bandwidth_gbps <= 0) return 0;
  return cost.steps * link.alpha_us + cost.bytes / (link.bandwidth_gbps * kBytesPerUs);
}

std::vector<PlainCost> PlainCosts(OpKind op, int ranks, double m) {
  std::vector<PlainCost> costs = AllPlainCosts(op, ranks, m);
  // Halving and doubling pair up ranks at distances of powers of two.
  if (ranks > 0 && (ranks & (ranks - 1)) != 0)
    std::erase_if(costs, [](const PlainCost& cost) {
      const std::string_view name = cost.algorithm;
      return name.find("doubling") != std::string_view::npos || name.find("halving") != std::string_view::npos;
    });
  return costs;
}

// A message of k bytes arrives after L + 2o + (k-1)G; the next may start after the gap.
double TimeOf(const PlainCost& cost, const LogGp& link) {
  const double step = std::max(link.latency_us + 2 * link.overhead_us, link.gap_us);
  return cost.steps * step + std::max(0.0, cost.bytes - cost.steps) * link.gap_per_byte_us;
}

AlphaBeta AlphaBetaOf(const LogGp& link) {
  const double bandwidth = link.gap_per_byte_us > 0 ? 1 / (link.gap_per_byte_us * kBytesPerUs) : 0;
  return {std::max(link.latency_us + 2 * link.overhead_us, link.gap_us), bandwidth};
}

double HierarchicalTime(OpKind op, double m, const Hierarchy& h) {
  const double g = std::max(1, h.gpus_per_node), nodes = std::max(1, h.nodes);
  const AlphaBeta per_gpu{h.between.alpha_us, h.between.bandwidth_gbps * std::max(1, h.nics_per_node) / g};
  const PlainCost within{"", g - 1, (g - 1) / g * m, ""};
  const PlainCost between{"", nodes - 1, (nodes - 1) / nodes * m / g, ""};
  switch (op) {
    case OpKind::all_reduce: return 2 * TimeOf(within, h.within) + 2 * TimeOf(between, per_gpu);
    case OpKind::all_gather:
    case OpKind::reduce_scatter: return TimeOf(within, h.within) + TimeOf(between, per_gpu);
    case OpKind::all_to_all: {
      const PlainCost across{"", nodes - 1, (nodes - 1) / nodes * m, ""};
      return TimeOf(within, h.within) + TimeOf(across, per_gpu);
    }
    default: return 0;
  }
}

std::string_view HierarchicalFormula(OpKind op) {
  switch (op) {
    case OpKind::all_reduce: return "2[(g-1)a1 + (g-1)/g m/b1] + 2[(N-1)a2 + (N-1)/N (m/g)/(b2 NICs/g)]";
    case OpKind::all_gather:
    case OpKind::reduce_scatter: return "(g-1)a1 + (g-1)/g m/b1 + (N-1)a2 + (N-1)/N (m/g)/(b2 NICs/g)";
    case OpKind::all_to_all: return "(g-1)a1 + (g-1)/g m/b1 + (N-1)a2 + (N-1)/N m/(b2 NICs/g)";
    default: return "";
  }
}

double HalfBandwidthBytes(const AlphaBeta& link) { return link.alpha_us * link.bandwidth_gbps * kBytesPerUs; }

}  // namespace tacet
