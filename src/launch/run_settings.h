// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacet {

enum class RunLevel { light, normal, full };
std::string_view Name(RunLevel level);

using Environment = std::vector<std::pair<std::string, std::string>>;

// Where the run's files go, and what there is to use.
struct RunPlaces {
  std::string folder;         // absolute
  std::string pipe_prefix;    // of PyTorch's dump pipes; empty where no pipe can be made
  std::string plugin;         // libnccl-profiler-tacet.so; empty where there is none
  std::string box_folder;     // for the plugin
  std::string python_folder;  // holds our sitecustomize.py; empty: no stacks through Python
  bool per_rank_output = false;
  std::string profile_steps;  // "100-102" or empty
};

// A variable that the run sets, or would have set if the user had not.
struct RunSetting {
  std::string name, value;
  std::string why;          // "who calls what"
  std::string cost;         // "one line per communicator"; empty: nothing worth telling
  bool kept = false;        // the user's own value stays
  std::string users_value;  // that one
};

// What the job's environment should be at this level. Pure: the same arguments give the same settings.
std::vector<RunSetting> ChooseSettings(RunLevel level, const RunPlaces& places, const Environment& inherited);

// Values of the environment that matter to the job's communication: NCCL_*, TORCH_*, CUDA_*, SLURM_*, ...
bool IsRelevantVariable(std::string_view name);

// The lines that `tacet run` prints when it starts.
std::string DescribeSettings(const std::vector<RunSetting>& settings, bool whole);

}  // namespace tacet
