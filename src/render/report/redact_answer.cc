// SPDX-License-Identifier: Apache-2.0
#include "render/report/redact_answer.h"

#include <string>
#include <utility>
#include <vector>

#include "base/redact.h"

namespace tacet {
namespace {

// Walks over texts, one overload a type.
class AnswerRedaction {
 public:
  void operator()(std::string& text) {
    RedactedText redacted = RedactSecrets(text);
    if (!redacted.kinds.empty()) text = std::move(redacted.text);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    for (T& one : list) (*this)(one);
  }
  void operator()(Sweep& sweep) {
    All(sweep.tool, sweep.operation, sweep.library, sweep.hosts, sweep.algorithm, sweep.protocol, sweep.network_device,
        sweep.link, sweep.from, sweep.to);
  }
  void operator()(BenchmarkDevice& device) { All(device.host, device.name); }
  void operator()(BenchmarkMatrix& matrix) {
    All(matrix.title, matrix.row_kind, matrix.column_kind, matrix.rows, matrix.columns);
  }
  void operator()(BenchmarkRun& run) {
    All(run.tool, run.version, run.library, run.operation, run.devices, run.failure, run.algorithm, run.protocol,
        run.from, run.to, run.network_device, run.link, run.matrices);
  }
  void operator()(PairMatrixView& view) { All(view.tool, view.operation, view.matrix); }
  void operator()(WaterfallLoss& loss) { All(loss.who); }
  void operator()(NcclCommunicator& one) { All(one.settings.algo, one.settings.proto); }
  void operator()(ModelCheck& check) {
    All(check.communicator, check.forced, check.waterfall.top, check.waterfall.missing, check.waterfall.losses,
        check.assumptions);
  }
  void operator()(BetterCell& cell) { All(cell.chosen, cell.algorithm, cell.protocol); }
  void operator()(BetterWay& way) { All(way.operation, way.cells); }
  void operator()(BandwidthFault& fault) { All(fault.headline, fault.excerpt, fault.says, fault.hosts); }
  void operator()(ReportDiagnostic& one) { All(one.message, one.file, one.hint, one.files); }
  void operator()(ToldTime& told) { All(told.how); }
  void operator()(CommunicatorPrediction& one) { All(one.label, one.communicator, one.assumptions, one.told); }

  template <typename... T>
  void All(T&... values) {
    ((*this)(values), ...);
  }
};

}  // namespace

void RedactBenchmarks(std::vector<BenchmarkRun>& runs) { AnswerRedaction()(runs); }

void RedactAnswer(BandwidthAnswer& answer) {
  AnswerRedaction redact;
  redact.All(answer.view.sweeps, answer.view.matrices, answer.view.checks, answer.view.better, answer.faults,
             answer.remarks);
}

void RedactPrediction(Prediction& prediction) {
  AnswerRedaction redact;
  redact.All(prediction.before, prediction.after, prediction.changes, prediction.step_assumptions);
}

}  // namespace tacet
