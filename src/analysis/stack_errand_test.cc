// SPDX-License-Identifier: Apache-2.0
#include "analysis/stack_errand.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tacet {
namespace {

using ErrandKind = StackErrand::Kind;

// Innermost first: function and file.
StackErrand ErrandOf(const std::vector<std::pair<std::string, std::string>>& named) {
  Incident incident;
  std::vector<Frame> frames;
  for (const auto& [function, file] : named)
    frames.push_back({incident.strings.Intern(function), incident.strings.Intern(file), 1});
  return FindErrand(incident, frames);
}

TEST(StackErrand, ADriverThatYieldsBelowALaunchWaitsForTheQueue) {
  EXPECT_EQ(ErrandOf({{"sched_yield", "../sysdeps/unix/syscall-template.S"},
                      {"??", "/usr/lib/libcuda.so.1"},
                      {"cudaLaunchKernel", "/opt/libcudart.so.12"}})
                .kind,
            ErrandKind::kernel_launch);
  // A launch that runs, and a yield in somebody else's loop, are none.
  EXPECT_EQ(ErrandOf({{"??", "/usr/lib/libcuda.so.1"}, {"cudaLaunchKernel", "/opt/libcudart.so.12"}}).kind,
            ErrandKind::none);
  EXPECT_EQ(ErrandOf({{"sched_yield", "x.S"}, {"spin", "loop.cc"}}).kind, ErrandKind::none);
}

TEST(StackErrand, ACallOfMpiIsNamedAsTheUserWroteIt) {
  const StackErrand errand = ErrandOf({{"MPIDI_CH3I_Progress", "/opt/libmpi.so.12"}, {"PMPI_Bcast_c", "libmpi.so.12"}});
  EXPECT_EQ(errand.kind, ErrandKind::mpi_call);
  EXPECT_EQ(errand.call, "MPI_Bcast");
  EXPECT_EQ(ErrandOf({{"memcpy", "libc.so.6"}, {"MPI_Send", "libmpi.so.12"}}).kind, ErrandKind::none);
}

TEST(StackErrand, AcceptBelowBootstrapWaitsForRanks) {
  EXPECT_EQ(ErrandOf({{"__libc_accept", "accept.c"}, {"bootstrapInit", "bootstrap.cc"}}).kind,
            ErrandKind::communicator_setup);
  EXPECT_EQ(ErrandOf({{"__libc_accept", "accept.c"}, {"serve", "server.cc"}}).kind, ErrandKind::none);
}

TEST(StackErrand, AQueueBelowAnIteratorIsABatch) {
  EXPECT_EQ(ErrandOf({{"wait", "threading.py"}, {"get", "queue.py"}, {"__next__", "kit/data/iterators.py"}}).kind,
            ErrandKind::next_batch);
  EXPECT_EQ(ErrandOf({{"wait", "threading.py"}, {"get", "queue.py"}, {"serve", "kit/server.py"}}).kind,
            ErrandKind::none);
  EXPECT_EQ(ErrandOf({{"__next__", "kit/data/iterators.py"}, {"train", "train.py"}}).kind, ErrandKind::none);
}

}  // namespace
}  // namespace tacet
