// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/process/stack_errand.h"
#include "model/incident.h"

namespace tacet {

// Where one rank is, as its latest stack tells.
struct StackReading {
  enum class Place : uint8_t {
    unknown,        // no frames, or torch code that may or may not wait inside C++
    communication,  // inside a collective, its wait, or the set-up or end of a group
    device_wait,    // waits for the GPU
    host,           // neither: data, files, locks, a child process, imports, or the user's own function
  };

  Rank rank;
  const ThreadStack* thread = nullptr;  // into Incident::threads
  Place place = Place::unknown;
  // False where the innermost frame is the user's own function: C calls have no Python frame, so it may sleep or
  // compute, but a hidden `.item()` or `work.wait()` looks the same. Such a rank is `host` only as long as nothing else
  // speaks against it.
  bool certain = false;
  // Place unknown, innermost frame PyTorch's own: it computes or waits in C++. In a job that stands still it waits.
  bool in_library = false;
  Frame innermost_user;  // empty function where no frame is the user's
  Frame innermost;
  Frame decisive;     // the frame that settled the place: the call the user made, `barrier`, `synchronize`, `__next__`
  std::string where;  // innermost_user for people, else innermost: "load_next_batch (train.py:124)"
  std::string
      call;  // decisive for people: "barrier (distributed_c10d.py:5030)"; empty where the user's own frame decided
  bool whole =
      true;  // the outermost frame is one that begins a program or a thread: the dump was not cut in the middle
  StackErrand errand;  // what it waits for there
  bool holds_gil = false;
  bool waits_for_gil = false;
};

std::string_view Name(
    StackReading::Place place);  // "in communication", "waiting for the GPU", "on the host", "unknown"

// By the name of its innermost function it takes a lock between processes: "file_lock (data.py:88)", "acquire
// (filelock/_api.py:344)", "wait (torch/utils/file_baton.py:51)". In such a place nobody waits for the GPU.
bool WaitsForALock(const Incident& incident, const StackReading& reading);

// One reading for each rank that has a stack, sorted by rank. Of several dumps the latest counts, of several threads
// the main one; but autograd's threads where the main thread only waits in backward, and a thread that communicates
// where the main thread only waits for threads (Ray and other launchers train in a second thread).
std::vector<StackReading> ReadStacks(const Incident& incident);

// One for each process whose rank nothing tells.
std::vector<StackReading> ReadNamelessStacks(const Incident& incident);

// One for each dump that nobody's name stands before: where all ranks write into one file, each may have made one.
std::vector<StackReading> ReadNamelessDumps(const Incident& incident);

// Ranks whose stacks are equal: same functions of the user in the same files, and the same kind of place. Lines differ
// in a loop and do not count.
struct StackGroup {
  std::vector<Rank> ranks;  // sorted
  size_t example = 0;       // index into the readings
  bool majority = false;    // more than half of all readings
};

// Largest group first.
std::vector<StackGroup> GroupStacks(const Incident& incident, const std::vector<StackReading>& readings);

// Sorted; empty where no group is the majority.
std::vector<Rank> RanksUnlikeTheMajority(const std::vector<StackGroup>& groups);

// A function of the communication library that all ranks of a group call: "all_gather_into_tensor", no send and no
// recv.
bool IsCollectiveCall(std::string_view function);

}  // namespace tacet
