// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "report/report.h"

namespace tacet {

// NODES x 8 GPUs with 8 NICs each, 16 channels; with a fault, one hop of the last node takes shared memory.
inline Report SampleTopology(int nodes, bool faulty) {
  Report report;
  TopologyReport topology;
  topology.transports = {{"P2P/CUMEM", "p2p"}, {"NET/IB/GDRDMA", "net"}, {"SHM", "shm"}};
  static constexpr const char* kBuses[] = {"1b000", "43000", "52000", "61000", "9d000", "c3000", "d1000", "df000"};
  const int ranks = nodes * 8, slow_rank = ranks - 4;
  for (int n = 0; n < nodes; ++n) {
    TopologyNode node;
    char name[32];
    std::snprintf(name, sizeof name, "gpu%03d", n);
    node.name = name;
    node.net = "IB";
    node.nvlink = node.nvswitch = true;
    node.like = faulty && n == nodes - 1 ? n : 0;
    for (int g = 0; g < 8; ++g) {
      node.ranks.push_back(n * 8 + g);
      node.gpus.push_back({n * 8 + g, g, kBuses[g], 370.8, 48, "PXB", {g}, {g}, 10 + g, g / 4});
      node.nics.push_back({g, "mlx5_" + std::to_string(g), "IB", "PXB", 50, 1, 2, 10 + g, g / 4});
    }
    topology.nodes.push_back(std::move(node));
  }
  TopologyComm comm;
  comm.label = "default_pg";
  comm.ranks = comm.seen = ranks;
  comm.nodes = nodes;
  comm.channels = comm.nvls_channels = 16;
  comm.connected = "rings, trees, NVLS";
  comm.graphs = {{"Ring", 8, 0, 48, 48, "NVL", "PXN", ""}, {"Tree", 8, 0, 48, 48, "NVL", "PXN", ""}};
  for (int c = 0; c < 16; ++c) {
    TopologyRing ring;
    ring.channel = c;
    ring.whole = true;
    ring.same_as = c < 8 ? -1 : c - 8;
    for (int n = 0; n < nodes && c < 8; ++n)
      for (int g = 0; g < 8; ++g) {
        const int rank = n * 8 + (c + g) % 8;
        const bool slow = faulty && rank == slow_rank && g < 7;
        if (slow) ring.slow.push_back(static_cast<int>(ring.order.size()));
        ring.order.push_back(rank);
        ring.ways.push_back(g == 7 ? 1 : slow ? 2 : 0);
      }
    comm.rings.push_back(std::move(ring));
    TopologyTree tree;
    tree.channel = c;
    tree.root = c % 8;
    tree.same_as = c < 8 ? -1 : c - 8;
    for (int n = 0; n < nodes && c < 8; ++n)
      for (int g = 0; g < 8; ++g)
        tree.parents.emplace_back(n * 8 + (c + g) % 8, g > 0   ? n * 8 + (c + g - 1) % 8
                                                       : n > 0 ? (n - 1) / 2 * 8 + c
                                                               : -1);
    comm.trees.push_back(std::move(tree));
  }
  comm.ways = {{0, static_cast<unsigned>(ranks) * 28, 0}, {1, 0, static_cast<unsigned>(nodes) * 32}};
  topology.comms.push_back(std::move(comm));
  report.topology = std::move(topology);
  report.jobs.emplace_back();
  report.jobs[0].world_size = ranks;
  report.verdict.status = faulty ? Status::degraded : Status::healthy;
  report.verdict.headline = "16 rings close and hold every rank once";
  if (faulty) {
    ReportFinding finding;
    finding.cause = "transport-fallback";
    finding.title = "NCCL uses a slower transport";
    finding.status = Status::degraded;
    finding.severity = Severity::warning;
    finding.ranks = {slow_rank, slow_rank + 1};
    finding.headline = "ranks " + std::to_string(slow_rank) + " and " + std::to_string(slow_rank + 1) +
                       " use shared memory although NVLink connects their GPUs";
    finding.evidence.push_back({"nccl_12.log", 212, 0, "via SHM/direct/direct", "a connection that should be P2P"});
    finding.fix = {"Check peer access."};
    report.verdict.cause = finding.cause;
    report.verdict.ranks = finding.ranks;
    report.verdict.headline = finding.headline;
    report.findings.push_back(std::move(finding));
  }
  return report;
}

inline Report SampleHostileTopology() {
  Report report = SampleTopology(2, true);
  report.topology->nodes[0].name = "<script>alert(1)</script>\x1b[31m";
  report.topology->nodes[0].nics[0].name = "\"><img src=x onerror=alert(2)>";
  report.topology->nodes[0].net = "</script>";
  report.topology->comms[0].label = "]]></style><b>";
  report.topology->transports[0] = {"P2P/<i>", "p2p onload=alert(3)"};
  report.topology->comms[0].rings[1].ways.assign(16, 77);
  report.topology->comms[0].rings[2].order.clear();
  report.topology->comms[0].trees[0].parents = {{0, 1}, {1, 0}, {500, -7}};
  return report;
}

}  // namespace tacet
