// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/incident.h"
#include "predict/nccl_choice.h"

namespace tacet {

// What the caller knows and the log may not say.
struct NcclModelHints {
  std::optional<NcclRelease> release;
  std::optional<int> capability;  // 90 for sm_90
  std::optional<int> nodes;
  std::optional<CpuVendor> cpu;
};

// A communicator of a job, as its log describes it.
struct NcclGroupModel {
  std::string label;
  NcclCommunicator communicator;
  NcclCostTable costs;
  bool has_graphs = false;   // false: `costs` is the printed table, with one decimal
  bool is_modelled = false;  // the release's cost model is known and its inputs are there
  size_t ranks_seen = 0;     // whose logs tell of the search
  std::vector<std::string> assumptions;
  const NcclSetup* told_by = nullptr;  // the rank that printed the table or the choices, else any
};

// One model for each communicator of more than one rank, in the order of the log. The incident must outlive them.
std::vector<NcclGroupModel> ModelCommunicators(const Incident& incident, const NcclModelHints& hints);

// All ranks take the worst of all searches; ring and tree then share their number of channels.
NcclModelGraph AgreeOnGraph(const std::vector<const NcclSetup*>& setups, NcclAlgorithm algorithm);

struct NcclCellDifference {
  OpKind op = OpKind::unknown;
  NcclAlgorithm algorithm = NcclAlgorithm::unknown;
  NcclProtocol protocol = NcclProtocol::unknown;
  NcclTuningCell printed, predicted;
  bool switched_off = false;  // printed without bandwidth, with the latency predicted: a setting forbids it
};
struct NcclTableCheck {
  int rows = 0, rows_equal = 0;  // printed lines
  int forbidden_cells = 0;       // without bandwidth because of NCCL_ALGO or NCCL_PROTO
  std::vector<NcclCellDifference> differences;
};
NcclTableCheck CheckTable(const NcclGroupModel& model, const NcclTuningTable& table);

struct NcclChoiceDifference {
  const NcclLoggedChoice* logged = nullptr;
  NcclDecision predicted;
};
struct NcclChoiceCheck {
  uint64_t choices = 0, equal = 0;  // operations
  uint64_t not_modelled = 0;        // symmetric kernels, copy engines, operations NCCL does not tune
  std::vector<NcclChoiceDifference> differences;
};
NcclChoiceCheck CheckChoices(const NcclGroupModel& model);

// The size that NCCL chose by: printed choices of AllGather and ReduceScatter count one rank's part since 2.24.
int64_t ChosenBytes(const NcclLoggedChoice& choice, const NcclCommunicator& communicator);

}  // namespace tacet
