// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/postmortem/postmortem.h"

namespace tacet {

// A line of a run's output or logs that the baseline never wrote.
struct DivergingLine {
  std::string file;  // below the run's folder
  uint32_t line = 0;
  std::string text;
};

// The first line of each kind of log that has no counterpart in the baseline once times, numbers, addresses and process
// ids are left out. The lines of ranks are interleaved differently in every run, so order says nothing.
std::optional<DivergingLine> FindDivergingLine(const std::string& run, const std::string& baseline);

// "epoch N step N loss N.N": what stays of a line when everything that differs from run to run is gone.
std::string NormaliseLine(std::string_view line);

// NCCL's rings as the logs give them, "Channel 00/02 : 0 1 2 3", without repetitions, at most `most`.
std::vector<std::string> FindRings(const std::string& run, size_t most);

// The stacks of the main threads of these ranks, as text, from the captures of the run: rank and stack.
std::vector<std::pair<int, std::string>> FindStacks(const std::string& run, const std::vector<int>& ranks);

// Variables in force, ours and the user's, by name.
Environment VariablesOf(const RunManifest& manifest);

}  // namespace tacet
