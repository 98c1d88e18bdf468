// SPDX-License-Identifier: Apache-2.0
#include "plugin/bus_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "plugin/record/box_words.h"
#include "wire/black_box_layout.h"

namespace tacet::plugin {
namespace {

// Written once, before the handler is there to read them.
uintptr_t g_begin = 0, g_end = 0;
struct sigaction g_before {};
box::Header g_header;  // as it was at first: its clock and identity are needed further on
uint32_t g_cut = 0;

// Two threads may come here at once, and both do the same: what one of them stored in between is lost with the rest.
bool PutMemoryThere() {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  const bool done =
      mmap(reinterpret_cast<void*>(g_begin), g_end - g_begin, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
  if (!done) return false;
  memcpy(reinterpret_cast<void*>(g_begin), &g_header, sizeof g_header);
  StoreRelease(g_cut, 1u);
  return true;
}

void PassOn(int signal, siginfo_t* info, void* context) {
  if ((g_before.sa_flags & SA_SIGINFO) != 0 && g_before.sa_sigaction != nullptr)
    return g_before.sa_sigaction(signal, info, context);
  if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) return g_before.sa_handler(signal);
  // What was there before decides, once the faulting instruction runs again; a signal that was sent has to be sent
  // again.
  if (g_before.sa_handler == SIG_IGN && info->si_code <= 0) return;
  sigaction(signal, &g_before, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool ours = info->si_code > 0 && at >= g_begin && at < g_end;  // above 0: the kernel's word, not a kill()
  if (!ours || !PutMemoryThere()) PassOn(signal, info, context);
  errno = error;
}

}  // namespace

void GuardBox(void* memory, uint64_t bytes) {
  // A forked child that makes a box of its own has the handler already.
  const bool first = g_end == 0;
  memcpy(&g_header, memory, sizeof g_header);
  g_begin = reinterpret_cast<uintptr_t>(memory);
  g_end = g_begin + bytes;
  StoreRelease(g_cut, 0u);
  if (!first) return;
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, nullptr, &g_before) == 0) sigaction(SIGBUS, &action, nullptr);
}

bool IsBoxCut() { return LoadAcquire(g_cut) != 0; }

}  // namespace tacet::plugin
