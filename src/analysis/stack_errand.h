// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/incident.h"

namespace tacet {

// What a thread waits for inside the call it is in, as far as the names of its frames tell.
struct StackErrand {
  enum class Kind : uint8_t {
    none,
    kernel_launch,       // in the driver, below a kernel launch: its queue is full, or the driver is blocked
    communicator_setup,  // NCCL connects the ranks of a communicator
    mpi_call,            // in MPI's own progress loop, below `call`
    next_batch,          // in a queue, below an iterator's __next__
  };
  Kind kind = Kind::none;
  std::string call;  // "MPI_Bcast", "cudaLaunchKernel"
};

// Innermost frame first.
StackErrand FindErrand(const Incident& incident, const std::vector<Frame>& frames);

}  // namespace tacet
