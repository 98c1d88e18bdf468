// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "predict/prediction.h"

namespace tacet {

struct PredictionTextOptions {
  size_t width = 100;
  bool colour = false;
  bool verbose = false;  // every rival of every size
  bool explain = false;  // the formulas below the numbers
};

std::string RenderPredictionText(const Prediction& prediction, const PredictionTextOptions& options);
std::string RenderPredictionJson(const Prediction& prediction);
// One line for each operation, size, algorithm and protocol.
std::string RenderPredictionCsv(const Prediction& prediction);

// "64 MiB" for powers of two, "300 MB" otherwise; "1.2 ms", "0.45 us", "46.8 GB/s".
std::string MessageSizeWords(int64_t bytes);
std::string TimeWords(double us);
std::string SpeedWords(double gbps);

}  // namespace tacet
