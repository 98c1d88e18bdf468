// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/job_process.h"
#include "launch/run_folder.h"
#include "launch/run_manifest.h"
#include "launch/still_judge.h"

namespace tacet {

struct JobRunOptions {
  std::vector<std::string> command;
  RunLevel level = RunLevel::normal;
  RunFolderWish folder;
  Patience patience;
  std::string on_hang = "wait";  // "kill", or a command for sh
  std::string webhook;
  std::string profile_steps;
  bool per_rank_output = false, packets = false, watch = true, quiet = false, native_stacks = true;
  std::string version;  // of tacet
  // Renders a verdict for the terminal; the caller knows whether there is one, and how wide it is.
  std::function<std::string(const Report& report)> show;
};

// Runs the job in a folder of its own: sets what it needs, passes its output on, watches it, captures and diagnoses a
// hang or a crash. An Error where it could not be started; `exit_code` says with which code to end then.
Result<RunEnd> RunJob(const JobRunOptions& options, int* exit_code);

}  // namespace tacet
