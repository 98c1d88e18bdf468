// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/operation.h"

namespace tacet {

// Hockney's model of a link: a message of m bytes takes alpha + m / bandwidth.
struct AlphaBeta {
  double alpha_us = 0, bandwidth_gbps = 0;
};

// LogGP: latency, overhead at each end, gap between messages (us) and gap per byte (us).
struct LogGp {
  double latency_us = 0, overhead_us = 0, gap_us = 0, gap_per_byte_us = 0;
};

// One algorithm of a collective, as both models see it.
struct PlainCost {
  std::string_view algorithm;  // "ring", "double tree", ...
  double steps = 0;            // messages one after the other
  double bytes = 0;            // that pass one link, one after the other
  std::string_view formula;
};

// n ranks move a buffer of m bytes: the whole one, as nccl-tests counts it. Send and receive ignore n.
std::vector<PlainCost> PlainCosts(OpKind op, int ranks, double bytes);

double TimeOf(const PlainCost& cost, const AlphaBeta& link);
double TimeOf(const PlainCost& cost, const LogGp& link);
AlphaBeta AlphaBetaOf(const LogGp& link);

// Within nodes first, then between them: each GPU has its share of the node's NICs.
struct Hierarchy {
  AlphaBeta within, between;  // `between` is of one NIC
  int gpus_per_node = 8, nodes = 2, nics_per_node = 8;
};
// Time in us; 0 for operations without such a form.
double HierarchicalTime(OpKind op, double bytes, const Hierarchy& hierarchy);
std::string_view HierarchicalFormula(OpKind op);

// The size whose transfer reaches half of the bandwidth: alpha * bandwidth.
double HalfBandwidthBytes(const AlphaBeta& link);

}  // namespace tacet
