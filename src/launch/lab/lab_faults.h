// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// One fault of the lab: what the job does, how it is started, and what a right verdict says.
struct LabFault {
  // Who must be named.
  enum class Who : uint8_t {
    chosen,   // the rank of the plan, and nobody else
    anybody,  // the fault is in the whole job: any ranks or none
    nobody,   // healthy: nothing may be reported
  };
  // What the machine must have or allow.
  enum class Needs : uint8_t { nothing, nccl, gloo, network_namespaces, memory_cgroup };

  std::string_view name, what;
  std::vector<std::string_view> causes;  // any of them is right; empty for healthy jobs
  Who who = Who::chosen;
  Needs needs = Needs::nothing;
  std::string_view function;  // a right verdict names it with its line; empty: none is asked for
  bool full = false;          // `tacet run --full`: without it nothing of the calls is on record with gloo
  int timeout_s = 300;        // of PyTorch: long for what the watch must see first
  int pause_s = 0;
  int first_rank = 0;  // the chosen rank is at least this
  int spared = 0;      // so many of the last ranks are not chosen
};

std::span<const LabFault> LabFaults();
const LabFault* FindLabFault(std::string_view name);

// lab/train.py and lab/two_nodes.sh, as they were when this program was built.
std::string_view LabTrainingProgram();
std::string_view LabTwoNodesScript();

// What of the verdict is wrong, in words; empty where it is right. `headline` is searched for the function.
struct LabVerdict {
  bool given = false;  // false: nothing was reported
  std::string status, cause, headline, where;
  std::vector<int> ranks;
};
std::string WhatIsWrong(const LabFault& fault, int chosen_rank, const LabVerdict& verdict);

}  // namespace tacet
