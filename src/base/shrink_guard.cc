// SPDX-License-Identifier: Apache-2.0
#include "base/shrink_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

namespace tacet {
namespace {

// A signal handler has no argument to find these by, which is why they are the one thing here that belongs to the whole
// program. An `end` of 0 is a slot nobody uses, of 1 one that is being filled.
struct Slot {
  std::atomic<uintptr_t> end{0}, begin{0};
  std::atomic<bool> hit{false};
};
Slot slots[ShrinkGuard::kMostMappings];
struct sigaction action_before {};

uintptr_t page_bytes = 4096;  // set before the handler is installed

// Puts zeros under the rest of the mapping, so that the read that failed goes on. Only what may be called in a handler.
bool PutZeros(uintptr_t at) {
  for (Slot& slot : slots) {
    const uintptr_t end = slot.end.load(), begin = slot.begin.load();
    if (end < 2 || at < begin || at >= end) continue;
    const uintptr_t page = at / page_bytes * page_bytes;
    void* zeros =
        ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    slot.hit.store(true);
    return zeros != MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal, siginfo_t* about, void*) {
  const int error = errno;
  // BUS_ADRERR: no page behind this address. Broken memory (BUS_MCEERR_*) is not covered up.
  const bool mended = about->si_code == BUS_ADRERR && PutZeros(reinterpret_cast<uintptr_t>(about->si_addr));
  // Not one of ours: the same access fails again, under whoever was in charge before.
  if (!mended) ::sigaction(signal, &action_before, nullptr);
  errno = error;
}

void InstallOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &action_before);
  });
}

}  // namespace

ShrinkGuard::ShrinkGuard(ShrinkGuard&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

ShrinkGuard& ShrinkGuard::operator=(ShrinkGuard&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

bool ShrinkGuard::Watch(const void* mapping, size_t size) {
  Release();
  InstallOnce();
  for (size_t i = 0; i < kMostMappings; ++i) {
    uintptr_t unused = 0;
    if (!slots[i].end.compare_exchange_strong(unused, 1)) continue;
    const auto begin = reinterpret_cast<uintptr_t>(mapping);
    slots[i].hit = false;
    slots[i].begin = begin;
    slots[i].end = (begin + size + page_bytes - 1) / page_bytes * page_bytes;
    slot_ = static_cast<int>(i);
    return true;
  }
  return false;
}

bool ShrinkGuard::Hit() const { return slot_ >= 0 && slots[slot_].hit.load(); }

void ShrinkGuard::Release() {
  if (slot_ >= 0) slots[std::exchange(slot_, -1)].end = 0;
}

}  // namespace tacet
