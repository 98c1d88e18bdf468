// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/training_record.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// The figures in one line of progress: "iteration 10/600 | elapsed time per iteration (ms): 81220.4 | lm loss: nan".
struct LineValues {
  std::optional<double> loss, gradient;
  std::string_view loss_word, gradient_word;  // as written
  double seconds = 0;                         // that one of `unit` took; 0: not told
  std::string_view unit;
  bool per_gpu = false;     // counted on one GPU, not in the whole job
  bool whole_loss = false;  // the loss, not a part of it: "loss", not "aux_loss"
  bool exact = false;       // told as a time, not as a rate
  bool skipped = false;     // the line itself says that the step was skipped: its gradients are not used
};
LineValues FindValues(std::string_view text);

// One more line that tells a value: its word and the step it is of.
void AddTrainingValue(TrainingValue& value, double number, std::string_view word, int64_t step,
                      const SourceRef& source);

// "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 64, reducing to 32"
// At its minimum it is reduced to what it is.
struct ScaleChange {
  double from = 0, to = 0;
  int32_t rank = -1;
  bool from_told = true;  // else twice what it falls to
};
std::optional<ScaleChange> FindScaleDrop(std::string_view text);

// "WARN: grad_norm is not finite: nan": a line that tells nothing else.
struct NotFinite {
  bool of_loss = false;  // else of the gradients
  std::string_view word;
};
std::optional<NotFinite> FindNotFinite(std::string_view text);

// A line that somebody wrote around a log, though it names a step and a figure.
bool IsSomebodysSentence(std::string_view text);

// "Epoch(val) [3]", "| epoch 027 | valid on 'valid' subset | loss 8.30": figures of data that is held out.
bool IsOfEvaluation(std::string_view text);

// Follows the figures of one voice from line to line. Of runs with many lines one in some is read, and all that are not
// finite.
class TrainingReader {
 public:
  void ReadStep(const LogLine& line, int64_t step);
  void ReadScale(const LogLine& line, const ScaleChange& change);
  void ReadNotFinite(const LogLine& line, const NotFinite& report);
  // Moves what was read to the log.
  void Finish(TorchLog& log);

 private:
  bool IsWorthALook(std::string_view text) const;
  void AddTime(const StepTime& time);
  void WatchLoss(const LineValues& values, const LogLine& line, int64_t step);
  void WatchGradient(const LineValues& values, const LogLine& line, int64_t step);

  TrainingRecord record_;
  size_t stride_ = 1, skipped_ = 0;  // of the sample of times
  StepTime last_time_;
  // Of the lines before: digits behind the point of the last loss that was not 0, and the last gradient norm.
  int loss_decimals_ = 0;
  double loss_before_ = 0;  // the loss before the last one
  int64_t finite_norms_ = 0, norms_at_drop_ = 0;  // steps with a finite gradient norm; those before the last drop
  int64_t lines_at_drop_ = -1;                    // lines of progress before the last drop of the scale
  std::string gradient_word_;
  int64_t gradient_step_ = -1;
  std::optional<double> gradient_loss_;
};

}  // namespace tacet
