// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/stack_errand.h"

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

TEST(StackErrand, ALockBelowTheDriverStopsALaunch) {
  const StackErrand errand = ErrandOf({{"pthread_rwlock_wrlock", "libpthread.so.0"},
                                       {"??", "/usr/lib/libcuda.so.1"},
                                       {"??", "/usr/lib/libnccl.so.2"},
                                       {"ncclGroupEnd", "/usr/lib/libnccl.so.2"},
                                       {"finish", "libengine.so"}});
  EXPECT_EQ(errand.kind, ErrandKind::driver_lock);
  EXPECT_EQ(errand.call, "ncclGroupEnd");
  // NCCL's own lock, and the driver's below a copy, are another matter.
  EXPECT_EQ(ErrandOf({{"pthread_mutex_lock", "libpthread.so.0"}, {"ncclGroupEnd", "libnccl.so.2"}}).kind,
            ErrandKind::none);
  EXPECT_EQ(ErrandOf({{"pthread_mutex_lock", "x"}, {"??", "libcuda.so.1"}, {"copy", "libengine.so"}}).kind,
            ErrandKind::none);
}

TEST(StackErrand, AQueueOfProcessesAloneIsNoBatchYet) {
  EXPECT_EQ(ErrandOf({{"poll", "libc.so.6"}, {"get", "/usr/lib/python3.9/multiprocessing/queues.py"}}).kind,
            ErrandKind::queue);
  EXPECT_EQ(ErrandOf({{"get", "/usr/lib/python3.9/multiprocessing/queues.py"},
                      {"_pin_memory_loop", "/x/site-packages/torch/utils/data/_utils/pin_memory.py"}})
                .kind,
            ErrandKind::next_batch);
  EXPECT_EQ(ErrandOf({{"get", "/usr/lib/python3.9/multiprocessing/queues.py"}, {"serve", "kit/server.py"}}).kind,
            ErrandKind::none);
}

// Frames innermost first; the thread's own name.
bool IsService(const std::vector<std::pair<std::string, std::string>>& named, std::string name = "") {
  Incident incident;
  std::vector<Frame> frames;
  for (const auto& [function, file] : named)
    frames.push_back({incident.strings.Intern(function), incident.strings.Intern(file), 0});
  ThreadStack thread;
  thread.thread_name = std::move(name);
  thread.stack = incident.stacks.Intern(std::move(frames));
  return IsServiceThread(incident, thread);
}

TEST(ServiceThread, IsOneWithNothingButALibrarysOwnFrames) {
  EXPECT_TRUE(IsService({{"poll", "libc.so.6"}, {"??", "/lib64/libcuda.so.1"}, {"start_thread", "libpthread.so.0"}}));
  EXPECT_TRUE(IsService({{"poll", "libc.so.6"}, {"??", "/lib64/libcuda.so.1"}}, "cuda00001400006"));
  EXPECT_TRUE(IsService({{"epoll_wait", "libc.so.6"}, {"event_base_loop", "libevent_core-2.1.so.6"}}));
  // Whose the outer frames are is not shown; a program that waits for its GPU; a thread of the program.
  EXPECT_FALSE(IsService({{"ioctl", "libc.so.6"}, {"??", "/lib64/libcuda.so.1"}}));
  EXPECT_FALSE(
      IsService({{"poll", "libc.so.6"}, {"??", "libcuda.so.1"}, {"run", "libengine.so"}, {"clone", "libc.so.6"}}));
  EXPECT_FALSE(IsService({{"poll", "libc.so.6"}, {"start_thread", "libpthread.so.0"}}));
}

}  // namespace
}  // namespace tacet
