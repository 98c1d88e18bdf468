// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "launch/lab/lab_faults.h"

namespace tacet {

// The Python of the user that has PyTorch, and what that offers.
struct LabPython {
  std::string program, torch_version;
  int python_minor = 0, torch_major = 0;
  int gpus = 0;
  bool nccl = false;
};

// `wish` or, where it is empty, the first of python3 in PATH and /usr/bin/python3 that can import torch.
Result<LabPython> FindLabPython(const std::string& wish);

struct LabOptions {
  int ranks = 4;
  std::string backend = "auto";  // nccl, gloo; auto: nccl where there is a GPU
  uint64_t seed = 1;             // chooses rank and step
  std::string folder;            // everything of this fault goes there
  int hang_after_s = 8;
  std::function<void(std::string_view)> show;  // gets the job's output; may be empty
};

struct LabOutcome {
  std::string skipped;  // why it was not tried; empty: it was
  int rank = -1;        // that was chosen
  LabVerdict verdict;
  std::string wrong;            // empty: right
  double verdict_after_s = -1;  // from the fault to the verdict; -1 where there is none
  std::string run_folder;
};

// "nccl" or "gloo"; an error where the wish cannot be met.
Result<std::string> ChooseLabBackend(const std::string& wish, const LabPython& python);

// Starts the job through `tacet run`, lets it fail, and compares the verdict with what was planted.
Result<LabOutcome> RunLabFault(const LabFault& fault, const LabOptions& options, const LabPython& python);

}  // namespace tacet
