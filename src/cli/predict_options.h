// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "predict/prediction.h"

namespace tacet {

// What the options of `tacet predict` say, apart from files and output.
struct PredictInputs {
  NcclModelHints hints;
  PredictionRequest request;
  std::vector<std::string> changes;  // of --what-if
  std::optional<ClusterHardware> hardware;
  NcclSettings settings;  // --algo, --proto
  // Plain models.
  bool plain = false;
  std::optional<LogGp> loggp;
  AlphaBeta link;
  int ranks = 0;
  std::optional<Hierarchy> hierarchy;
  // The training step.
  bool train = false;
  TrainingModel model;
  TrainingLayout layout;
  double step_ms = 0, peak_tflops = 0;
};
Result<PredictInputs> ReadPredictInputs(const Options& options);

// "64MiB", "1G", "4096": bytes. K, M and G alone are powers of 1024, as nccl-tests has them; kB, MB, GB of 1000.
Result<int64_t> ParseSize(std::string_view text);
// "5us", "1.2ms", "4.2s", "5": microseconds where no unit is given.
Result<double> ParseMicroseconds(std::string_view text);

}  // namespace tacet
