// SPDX-License-Identifier: Apache-2.0
// The model against what NCCL printed and chose.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "predict/nccl_job_model.h"

namespace tacet {
namespace {

// As printf("%.1f") prints it; a digit more or less would be another figure.
double OneDecimal(double value) { return std::nearbyint(value * 10) / 10; }

// Halves are rounded by the exact binary value, which `value * 10` may lose.
bool PrintsAs(double predicted, double printed) {
  if (std::abs(OneDecimal(predicted) - printed) < 1e-6) return true;
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", predicted);
  return std::abs(std::strtod(text, nullptr) - printed) < 1e-6;
}

bool RowWasPrinted(const NcclTuningTable& table, int op, int first, int last) {
  for (int a = first; a < last; ++a)
    if (table.has[op][a]) return true;
  return false;
}

}  // namespace

NcclTableCheck CheckTable(const NcclGroupModel& model, const NcclTuningTable& table) {
  NcclTableCheck check;
  const int per_row = model.communicator.release.AtLeast(18) ? 3 : kNcclAlgorithms;
  for (int f = 0; f < kNcclTuned; ++f)
    for (int first = 0; first < kNcclAlgorithms; first += per_row) {
      const int last = std::min(first + per_row, kNcclAlgorithms);
      if (!RowWasPrinted(table, f, first, last)) continue;
      const size_t before = check.differences.size();
      for (int a = first; a < last; ++a)
        for (int p = 0; p < kNcclProtocols; ++p) {
          if (!table.has[f][a]) continue;
          const NcclTuningCell& printed = table.cells[f][a][p];
          const NcclCell& cell = model.costs.cells[f][a][p];
          check.forbidden_cells +=
              cell.obstacle == NcclObstacle::algorithm_setting || cell.obstacle == NcclObstacle::protocol_setting;
          const bool latency = PrintsAs(cell.latency_us, printed.latency_us);
          if (latency && PrintsAs(cell.bandwidth, printed.bandwidth_gbps)) continue;
          check.differences.push_back({kNcclTunedOps[f],
                                       static_cast<NcclAlgorithm>(a),
                                       static_cast<NcclProtocol>(p),
                                       printed,
                                       {cell.latency_us, cell.bandwidth},
                                       latency && printed.bandwidth_gbps == 0});
        }
      ++check.rows;
      check.rows_equal += check.differences.size() == before;
    }
  return check;
}

int64_t ChosenBytes(const NcclLoggedChoice& choice, const NcclCommunicator& c) {
  const bool gathers = choice.op == OpKind::all_gather || choice.op == OpKind::reduce_scatter;
  const bool per_rank = c.release.AtLeast(24) && c.release.Before(31);
  return gathers && per_rank ? choice.bytes * c.ranks : choice.bytes;
}

NcclChoiceCheck CheckChoices(const NcclGroupModel& model) {
  NcclChoiceCheck check;
  if (!model.told_by) return check;
  for (const NcclLoggedChoice& logged : model.told_by->choices) {
    NcclRequest request;
    request.op = logged.op == OpKind::unknown ? OpKind::all_reduce : logged.op;
    request.bytes = ChosenBytes(logged, model.communicator);
    request.type = logged.type;
    request.reduction = logged.reduction;
    if (NcclTunedIndex(request.op) < 0 || logged.algorithm == NcclAlgorithm::unknown || logged.bytes < 0) {
      check.not_modelled += logged.times;
      continue;
    }
    check.choices += logged.times;
    NcclDecision decision = DecideNccl(model.communicator, model.costs, request);
    const NcclCandidate* best = decision.best();
    if (best && best->algorithm == logged.algorithm && best->protocol == logged.protocol) {
      check.equal += logged.times;
      continue;
    }
    check.differences.push_back({&logged, std::move(decision)});
  }
  return check;
}

}  // namespace tacet
