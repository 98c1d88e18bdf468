// SPDX-License-Identifier: Apache-2.0
// Only in the builds of `make dist`. The static libraries come from Debian 12 and were compiled against glibc 2.36; the
// program has to run on 2.28. These are the few functions they use that came in between.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

// What dl_iterate_phdr is asked for, and what it found.
struct Search {
  uintptr_t at;
  uintptr_t begin = 0, end = 0;
  void* unwind_table = nullptr;  // .eh_frame_hdr of the object that holds `at`
};

int LookInto(dl_phdr_info* object, size_t, void* state) {
  auto* search = static_cast<Search*>(state);
  uintptr_t begin = UINTPTR_MAX, end = 0;
  void* table = nullptr;
  bool holds = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const uintptr_t first = object->dlpi_addr + part.p_vaddr, last = first + part.p_memsz;
    if (part.p_type == PT_GNU_EH_FRAME) table = reinterpret_cast<void*>(first);
    if (part.p_type != PT_LOAD) continue;
    if (first < begin) begin = first;
    if (last > end) end = last;
    if (search->at >= first && search->at < last) holds = true;
  }
  if (!holds || table == nullptr) return 0;
  search->begin = begin;
  search->end = end;
  search->unwind_table = table;
  return 1;
}

}  // namespace

extern "C" {

// 2.30. Waits of std::condition_variable with a steady clock. Where the C library has none, the deadline is turned into
// one of the clock that pthread_cond_timedwait knows; a step of that clock then shows in one wait.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto own = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  if (own != nullptr) return own(condition, mutex, clock, until);
  timespec now_there{}, now_here{};
  clock_gettime(clock, &now_there);
  clock_gettime(CLOCK_REALTIME, &now_here);
  constexpr long kSecond = 1'000'000'000;
  timespec deadline{now_here.tv_sec + (until->tv_sec - now_there.tv_sec),
                    now_here.tv_nsec + (until->tv_nsec - now_there.tv_nsec)};
  while (deadline.tv_nsec < 0) deadline = {deadline.tv_sec - 1, deadline.tv_nsec + kSecond};
  while (deadline.tv_nsec >= kSecond) deadline = {deadline.tv_sec + 1, deadline.tv_nsec - kSecond};
  return pthread_cond_timedwait(condition, mutex, &deadline);
}

// 2.32. Zero: there may be several threads, so shared counters are always counted with atomics.
char __libc_single_threaded = 0;

// 2.35. How the unwinder of GCC 12 finds an object's tables; layout as in glibc's <dlfcn.h>.
struct dl_find_object {
  unsigned long long flags;
  void *map_start, *map_end;
  link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
int _dl_find_object(void* address, dl_find_object* out) {
  Search search{reinterpret_cast<uintptr_t>(address)};
  if (dl_iterate_phdr(LookInto, &search) == 0) return -1;
  *out = {};
  out->map_start = reinterpret_cast<void*>(search.begin);
  out->map_end = reinterpret_cast<void*>(search.end);
  out->eh_frame = search.unwind_table;
  return 0;
}

// 2.36. std::random_device and libcrypt's salts; like glibc's, it does not come back without random bytes.
void arc4random_buf(void* buffer, size_t size) {
  auto* at = static_cast<unsigned char*>(buffer);
  while (size > 0) {
    const ssize_t got = getrandom(at, size, 0);
    if (got < 0 && errno != EINTR) std::abort();
    if (got <= 0) continue;
    at += got;
    size -= static_cast<size_t>(got);
  }
}

uint32_t arc4random() {
  uint32_t value = 0;
  arc4random_buf(&value, sizeof value);
  return value;
}

}  // extern "C"
