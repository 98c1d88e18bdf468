// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/run_settings.h"

namespace tacet {

// What a run may be told about its folder.
struct RunFolderWish {
  std::string folder;  // exactly this one; empty: `parent`/<time>-<name>
  std::string part;    // of `folder`, where several runs of a job were given the same one
  std::string parent = "tacet-runs";
  std::string name;  // empty: taken from the command
  std::string host;
};

// Makes the run's folder with what belongs in it. Two runs that start in the same second get different folders, also on
// a file system that several nodes share.
Result<RunPlaces> MakeRunFolder(const RunFolderWish& wish, const std::vector<std::string>& command, int64_t wall_ns);

// The part of a run among several that srun or mpirun has started: "node7", "node7-1" for the second on that node.
// Empty where it is the only one.
std::string PartOfJob(const Environment& variables, std::string_view host);

// "train" of "torchrun --nproc-per-node 8 train.py --lr 3", "python3 -m pkg.train", "mpirun -n 4 ./solver".
std::string NameOfCommand(const std::vector<std::string>& command);

// Writes a whole file; false where that fails.
bool WriteWholeFile(const std::string& path, std::string_view bytes);
// At most `most` bytes from the front; empty where it cannot be read. For /proc and other files without a size, too.
std::string ReadSmallFile(const std::string& path, size_t most = 1 << 20);

// Removes what stayed empty, the pipes and the Python hook, and moves black boxes from shared memory into the folder.
void TidyRunFolder(const RunPlaces& places);

// The plugin that belongs to this program: beside it, or in the library folder of its prefix.
std::string FindPlugin();
std::string OwnProgram();  // /proc/self/exe
std::string HostName();

}  // namespace tacet
