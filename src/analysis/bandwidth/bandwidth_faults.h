// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/bandwidth/bandwidth_view.h"

namespace tacet {

// Something that benchmarks prove to be slow or wrong. Rules and `tacet bandwidth` tell the same.
struct BandwidthFault {
  std::string_view cause;  // "slow-link", "bandwidth-below-model", "algorithm-misfit", "wrong-results"
  std::string headline;
  OpKind op = OpKind::unknown;
  int64_t bytes = -1;
  SourceRef source;
  size_t incident = 0;
  std::string excerpt, says;
  std::vector<std::string> hosts;
  double severity = 0;  // share of the bandwidth that is lost, to put the worst first; above 1: wrong
};
std::vector<BandwidthFault> FindBandwidthFaults(const BandwidthView& view);

// NCCL's model is off by up to a fifth on machines it was not made for (Tree on two nodes 68.8 for 81 measured); what
// reaches less than this share of it has another reason.
inline constexpr double kBelowModel = 0.7;

// Measured far above the prediction: the prediction does not fit, and neither "yes" nor "no" rests on anything.
inline constexpr double kAboveModel = 1.2;

// The model is beaten by the check itself, or by another sweep of as many ranks on as many nodes (a run with a forced
// algorithm): what the links carry is more than the model believes, so it says nothing about the slower sweep either.
const ModelCheck* FindModelBeaten(const BandwidthView& view, const ModelCheck& check);

// "GPU 3", "GPU 2 -> GPU 3", "GPU 3 as the receiver", for each slow part of a matrix.
struct SlowPart {
  std::string name;
  double share = 0;  // of comparable cells
  double value = 0, expected = 0;
  std::vector<std::string> members;
};
std::vector<SlowPart> SlowPartsOf(const PairMatrixView& view);

// The sweep's benchmark checked its results and found wrong ones: a bandwidth of it means nothing.
bool HasWrongResults(const Sweep& sweep);

// "64 MiB", "1000 B".
std::string BenchmarkSizeWords(int64_t bytes);

}  // namespace tacet
