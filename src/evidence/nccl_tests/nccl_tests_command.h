// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// How a run was asked to go: by its command line, or by its own first line. Negative: not told.
struct NcclTestsSettings {
  int64_t max_bytes = -1;
  double factor = -1;       // each size is the last one times this
  int64_t step_bytes = -1;  // or so much more
  int64_t processes = -1;   // of the launcher
  int64_t threads = 1, gpus = 1;

  // Ranks that the command starts; -1 where the launcher does not tell.
  int64_t ranks() const { return processes > 0 ? processes * threads * gpus : -1; }
};

// "/opt/nccl-tests/build/all_reduce_perf" -> "all_reduce_perf"; nothing where the word is no program of the tests.
std::string_view NcclTestsProgramIn(std::string_view word);

// "+ mpirun -np 8 ./build/all_reduce_perf -b 8 -e 8G -f 2 -g 1", as a shell with `set -x` or a job script echoes it.
// The program's name; nothing where the line is no command.
std::string_view NcclTestsProgramOfCommand(std::string_view line, NcclTestsSettings* settings);

// "nThread 1 nGpus 1 minBytes 8 maxBytes 16777216 step: 2(factor) warmup iters: 5 iters: 20"
NcclTestsSettings NcclTestsSettingsOfHeader(std::string_view text);

// Whether a sweep whose last size is this has nothing left to do.
bool IsLastSize(const NcclTestsSettings& settings, int64_t bytes);

}  // namespace tacet
