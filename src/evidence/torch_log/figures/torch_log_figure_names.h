// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "evidence/torch_log/figures/torch_log_named_numbers.h"

namespace tacet {

enum class FigureKind : uint8_t {
  other,
  setting,  // or a sum of a run, a best value, an estimate: it says nothing of a step
  rank,     // whose figures they are
  stage,    // of a pipeline
  step,     // the number of a step
  epoch,
  whole,   // time of the whole step
  work,    // time in which the rank itself computes
  shared,  // of its work in which it may wait for others as well: the backward pass, the rest of a step
  data,    // time until its input is there
  wait,    // time in which it communicates or waits for others
  loss,
  gradient,    // norm of the gradients
  parameters,  // norm or checksum of the parameters
};

// What the words of a name mean: "fwd_bwd", "data_wait_ms", "sync", "grad norm", "debug/param_checksum".
struct FigureName {
  FigureKind kind = FigureKind::other;
  bool timed = false;     // the name itself says that it is a time
  double seconds = 1;     // of one unit, where the name tells it
  bool has_unit = false;  // ... it does
  bool plain = false;     // of times: all its words speak of a part of a step, so that a bare decimal is one
  bool held_out = false;  // of validation
  bool inner = false;     // "bwd_inner": the same without what it waits for
  bool counted = false;   // it speaks of steps: with a whole number it may be the number of one
  bool sums = false;      // "total", "elapsed": of the step only beside the step's parts
};
FigureName MeaningOf(std::string_view name);

// The same for whoever asks again and again: a log repeats few names on many lines.
class FigureNames {
 public:
  FigureName Of(std::string_view name);

 private:
  std::map<std::string, FigureName, std::less<>> known_;
};

// The value in seconds, where it is a time; else -1. `beside`: another figure of the line is surely a time of a step.
double SecondsOf(const NamedNumber& number, const FigureName& name, double usual_unit, bool beside);

}  // namespace tacet
