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
    next_batch,          // in a queue, below an iterator's __next__ or a data loader's thread
    queue,               // in a queue that another process fills; nothing further out is known
    driver_lock,         // launching work: waits for a lock of the driver, which another thread holds
    service_threads,     // no thread of the program is shown, only those of the libraries in `call`
  };
  Kind kind = Kind::none;
  std::string call;  // "MPI_Bcast", "cudaLaunchKernel"
};

// A thread of a library that only waits for events, in every job: CUDA's event threads, PMIx, libevent. Its bottom is
// there, or libevent's loop, and no frame is of anybody else.
bool IsServiceThread(const Incident& incident, const ThreadStack& thread);
// "libcuda.so.1 and libpmix.so.2": whose service threads they are.
std::string ServiceLibraries(const Incident& incident, const std::vector<const ThreadStack*>& threads);

// Innermost frame first.
StackErrand FindErrand(const Incident& incident, const std::vector<Frame>& frames);

}  // namespace tacet
