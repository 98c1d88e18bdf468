// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/source_ref.h"

namespace tacet {

// One value that a job prints with its steps, over all lines that tell it.
struct TrainingValue {
  int64_t lines = 0;         // that tell it
  int64_t run = 0;           // of those the last ones on end that are NaN or infinite
  int64_t finite_since = 0;  // lines with a number behind the last NaN or infinity; 0: there was none, or none follows
  int64_t run_step = -1;     // the step of the first of the run; -1: not told
  int64_t finite_step = -1;  // the last step with a number before the run
  double first = 0, last = 0;  // the first and the last number, where lines > run
  double least = 0, most = 0;  // of all numbers
  int64_t far = 0;             // lines on end, up to the last, that are ten times the least and more
  int64_t far_step = -1;       // the step of the first of them
  SourceRef far_source;
  SourceRef run_source;        // the first line of the run
  std::string word;            // of the run, as written: "nan", "-inf"
  int64_t reports = 0;         // of the run: lines that say no more than this ("grad_norm is not finite: nan")
};

// A value that a job which learns hardly ever prints, up to the last line that tells it.
struct OddValue {
  int64_t lines = 0;  // on end; 0: none
  int64_t step = -1;  // of the first of them
  std::string word;   // as written
  double before = 0;  // the last other value
  SourceRef source;   // the first of them
};

// How long the work of one line of progress took: a step, or what the line counts.
struct StepTime {
  int64_t step = -1;
  double seconds = 0;
  SourceRef source;
};

// A scaler of gradients that lowers the scale time after time, since no step gives finite gradients.
struct LossScaleDrop {
  int64_t drops = 0;          // on end, up to the last line of the text
  int64_t values_before = 0;  // lines with a finite loss before them
  int64_t first_step = -1;    // the step before the first
  double from = 0, to = 0;
  int64_t at_floor = 0;  // steps that were skipped at the end although the scale cannot fall any more
  int64_t floor_step = -1, last_step = -1;  // the steps before the first and the last of these
  int32_t floor_rank = -1;                  // who tells it; others that tell the same are not counted
  SourceRef first, last;
};

// What one process prints of its training: the figures of all its lines of progress. Of long ones an even sample of the
// times is kept.
struct TrainingRecord {
  int64_t lines = 0;  // of progress
  int64_t first_step = -1, last_step = -1;
  TrainingValue loss, gradient;
  OddValue zero_loss;      // exactly 0, reached at once and not by rounding
  OddValue same_gradient;  // a norm that repeats the one before it in all of its many digits
  LossScaleDrop scale;
  std::vector<StepTime> times;
  bool exact_times = false;  // told by the job for a step; else a rate
  std::string unit;          // of what is counted in `times`: "step", "sample", "token"
  bool per_gpu = false;      // counted on one GPU, not in the whole job
  SourceRef source;          // the last line of progress
};

}  // namespace tacet
