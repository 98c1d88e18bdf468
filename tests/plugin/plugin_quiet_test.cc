// SPDX-License-Identifier: Apache-2.0
// Proof that the event path is quiet: a million callbacks of every API version under a filter that kills at the first
// system call, with malloc and every lock of the C library counted.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/plugin/box_reading.h"
#include "tests/plugin/hand_events.h"

namespace {

thread_local bool t_watching = false;  // this thread only: the keeper may do as it likes
unsigned long g_allocations = 0, g_locks = 0;

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Found before the C library's by every object of the process, the plugin included.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);
void* malloc(size_t bytes) {
  if (t_watching) ++g_allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  if (t_watching) ++g_allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  if (t_watching) ++g_allocations;
  return __libc_realloc(memory, bytes);
}
void free(void* memory) {
  if (t_watching && memory != nullptr) ++g_allocations;
  __libc_free(memory);
}

#define TACET_COUNT_LOCK(name, type)                      \
  int name(type* lock) noexcept {                         \
    static const auto next = Next<int (*)(type*)>(#name); \
    if (t_watching) ++g_locks;                            \
    return next(lock);                                    \
  }
TACET_COUNT_LOCK(pthread_mutex_lock, pthread_mutex_t)
TACET_COUNT_LOCK(pthread_mutex_trylock, pthread_mutex_t)
TACET_COUNT_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
TACET_COUNT_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
TACET_COUNT_LOCK(sem_post, sem_t)
}

namespace tacet::fake {
namespace {

void AllowOnlyExit() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

constexpr int kNoFilterHere = 77 << 8;

class Quiet : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(EveryApi, Quiet, testing::Range(1, 8));

TEST_P(Quiet, AMillionCallbacksMakeNoSystemCallNoAllocationAndTakeNoLock) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [] {
    const LoadedPlugin plugin = LoadedPlugin::Open(PluginPath(), GetParam());
    HandComm comm;
    int mask = 0;
    comm.plugin = &plugin;
    comm.pid = getpid();
    comm.hash = 0x4242;
    plugin.Init(&comm.context, &mask, {0x4242, "quiet", 2, 4, 0});
    AllowOnlyExit();
    g_allocations = g_locks = 0;
    t_watching = true;
    while (comm.callbacks < 1'000'000) comm.RunCollective({}, 2, true);
    t_watching = false;
    _exit(g_allocations != 0 ? 2 : g_locks != 0 ? 3 : 0);
  });
  if (status == kNoFilterHere) GTEST_SKIP() << "no seccomp on this machine";
  EXPECT_EQ(status, 0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_GT(boxes[0].box.comms.at(0).comm.collectives, 20000u);  // they were recorded, not ignored
  EXPECT_EQ(boxes[0].box.header.drops[static_cast<int>(box::Drop::op_table_full)], 0u);
}

TEST(Watch, KillsAtASystemCall) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [] {
    AllowOnlyExit();
    syscall(SYS_getppid);
    _exit(0);
  });
  if (status == kNoFilterHere) GTEST_SKIP();
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(Watch, CountsAllocationsAndLocks) {
  g_allocations = g_locks = 0;
  t_watching = true;
  void* volatile memory = malloc(10);
  free(memory);
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  t_watching = false;
  EXPECT_EQ(g_allocations, 2u);
  EXPECT_EQ(g_locks, 1u);
}

}  // namespace
}  // namespace tacet::fake
