// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/benchmark_run.h"
#include "predict/prediction.h"
#include "render/bandwidth/bandwidth_render.h"

namespace tacet {

// Takes secrets out of every text of an answer before it is rendered, as RedactReport does for reports: names of hosts,
// devices and files come from the evidence, and anything can stand there. Answers point into the runs of benchmarks, so
// these are cleaned before they are measured.
void RedactBenchmarks(std::vector<BenchmarkRun>& runs);
void RedactAnswer(BandwidthAnswer& answer);
void RedactPrediction(Prediction& prediction);

}  // namespace tacet
