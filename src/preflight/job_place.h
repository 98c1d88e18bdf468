// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacet {

// Which process of how many this is, and where rank 0 is found.
struct JobPlace {
  int rank = 0, size = 1;
  std::string meet_host;  // empty: rank 0 alone
  int meet_port = 29517;
  std::string launcher;  // "torchrun", "Slurm", "Open MPI", "PMI"; empty: none
  std::string token;     // tells this job's processes from others on the same port
};

using VariableMap = std::map<std::string, std::string, std::less<>>;
VariableMap OwnVariables();

// RANK and WORLD_SIZE (torchrun), SLURM_*, OMPI_*, PMI_*; MASTER_ADDR and MASTER_PORT where they are set. `meet`
// ("host" or "host:port"), `rank` and `size` (-1: not given) come before all of them.
Result<JobPlace> FindJobPlace(const VariableMap& variables, const std::string& meet, int rank, int size);

// "gpu[007-012,20],login" -> "gpu007".
std::string FirstHostOf(std::string_view node_list);

}  // namespace tacet
