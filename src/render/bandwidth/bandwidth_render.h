// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/bandwidth/bandwidth_faults.h"
#include "report/report.h"

namespace tacet {

// All that one call of `tacet bandwidth` answers, with what it takes to cite places.
struct BandwidthAnswer {
  BandwidthView view;
  std::vector<BandwidthFault> faults;
  std::vector<const Incident*> jobs;  // in the order of BandwidthFault::incident and Sweep::incident
  std::vector<ReportDiagnostic> remarks;
  bool redacted = true;                                           // names of files, too
  std::string PathOf(size_t job, const SourceRef& source) const;  // "file:line"; empty where nothing is cited
};

struct BandwidthTextOptions {
  size_t width = 100;
  bool colour = false;
  bool verbose = false;  // every size, both layouts, percentiles
};

std::string RenderBandwidthText(const BandwidthAnswer& answer, const BandwidthTextOptions& options);
std::string RenderBandwidthJson(const BandwidthAnswer& answer);
// One page that needs nothing else: tables and drawings, no script.
std::string RenderBandwidthHtml(const BandwidthAnswer& answer);

// One sentence on "is this normal?", with the number it rests on or what is missing for one.
std::string NormalWords(const BandwidthView& view, size_t sweep, bool* is_normal);
// NCCL's model could judge this sweep, and no NCCL log is here at all.
bool LacksLog(const BandwidthView& view, size_t sweep);
// "146 GB/s at 1 GiB is about 31 % of the 464 GB/s that NCCL's model expects for 8 x H100 on one node"; empty where the
// benchmark's header does not describe such a machine.
std::string GuessWords(const Sweep& sweep);
// The sentence above all tables where no fault was found: what was judged, what could not be.
std::string NoFaultWords(const BandwidthView& view);

// A drawing of bus bandwidth over size for a terminal: measured *, fitted -, NCCL's model o.
std::vector<std::string> PlotSweep(const Sweep& sweep, const ModelCheck* check, size_t width, size_t height);

}  // namespace tacet
