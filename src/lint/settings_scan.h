// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "lint/environment_lint.h"

namespace tacet {

// Variables that a text sets. What it is comes from what stands in it: the output of `env`, nccl.conf (by its name),
// the manifest of a run, or anything with assignments: shell, Dockerfile, YAML, JSON, Python, a command line. Nothing
// where it holds no assignment at all.
std::optional<GivenEnvironment> ScanSettings(std::string_view file_name, std::string_view text);

// NAME=value pairs with a NUL behind each: /proc/PID/environ.
GivenEnvironment ReadEnvironBlock(std::string_view block);

// "rank 3" from RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK; empty: none of them.
std::string RankWordsOf(const GivenEnvironment& environment);

}  // namespace tacet
