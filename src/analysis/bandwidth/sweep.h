// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/bandwidth/piecewise_fit.h"
#include "model/incident.h"

namespace tacet {

// All measurements of one size and one layout of buffers.
struct SweepPoint {
  int64_t bytes = 0;
  bool in_place = false;
  std::vector<double> times_us;       // one for each run
  std::vector<double> iterations_us;  // of all runs, where told
  double time_us = -1;                // mean of the runs
  bool time_derived = false;          // from the bandwidth: the benchmark tells no time
  double algorithm_gbs = -1, bus_gbs = -1;
  double spread = -1;  // standard deviation over mean, of the iterations or else of the runs
  double min_us = -1, median_us = -1, p95_us = -1, p99_us = -1, max_us = -1;
  SourceRef source;
};

enum class OutlierKind : uint8_t {
  passing,  // some of the measurements of this size are slow, others are not
  lasting,  // all are, or all from one moment on
  once,     // measured once: nothing tells
};
struct SweepOutlier {
  int64_t bytes = 0;
  OutlierKind kind = OutlierKind::once;
  double factor = 1;           // time over what the rest of the sweep leads one to expect
  int64_t iteration = -1;      // the first slow one, where iterations tell
  size_t slow = 0, of = 0;     // measurements
  bool by_neighbours = false;  // expected from the sizes on both sides, not from the fit
  bool at_change = false;      // where one line of the fit ends and the next begins
};

// One operation among the same ranks, by the same way, over sizes. Runs that are alike in all this are one sweep.
struct Sweep {
  std::string tool, operation, library;
  OpKind kind = OpKind::unknown;
  int32_t ranks = -1;
  std::vector<std::string> hosts;  // sorted
  DataType type = DataType::unknown;
  std::string algorithm, protocol;  // forced; empty where NCCL chose
  bool way_assumed = false;
  std::string network_device, link, from, to;
  std::vector<const BenchmarkRun*> runs;
  size_t incident = 0;             // of its first run
  std::vector<SweepPoint> points;  // by size, then out of place first
  PiecewiseFit fit;
  bool fit_joins_layouts = false;
  std::vector<SweepOutlier> outliers;
  double in_place_ratio = -1;  // median of time out of place over time in place

  int Nodes() const { return hosts.empty() ? -1 : static_cast<int>(hosts.size()); }
  // Many messages are in flight at once: the time of one is not a latency. ib_write_bw, osu_bw.
  bool IsPipelined() const;
  // One message at a time, and its time is the result: ib_send_lat, osu_latency.
  bool IsLatencyTest() const;
  // The fit knows a latency or a bandwidth of at least one piece.
  bool FitTells() const;
  const SweepPoint* Quickest() const;  // with the shortest time
  const SweepPoint* Peak() const;      // with the highest bus bandwidth, else algorithm bandwidth
};

// Of the sweeps that share everything but the way they took, the default first. Runs with different numbers of ranks,
// on different hosts or of different types are never one sweep.
std::vector<Sweep> CollectSweeps(const std::vector<const Incident*>& incidents);

// "all_reduce, 16 ranks on 2 nodes, float32, Ring LL128".
std::string SweepWords(const Sweep& sweep);
// "all_gather (4 ranks, float32)", as the subject of a sentence.
std::string SweepSubject(const Sweep& sweep);
// Bus over algorithm bandwidth; 0 where the operation or the ranks are not known.
double BusFactorOf(const std::string& operation, int32_t ranks);

}  // namespace tacet
