// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

#include "wire/black_box_layout.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

// Time on the event path is the CPU's own counter: one instruction (about 7 ns) against some 30 ns for clock_gettime
// even through the vDSO. Readers turn ticks into nanoseconds with the clock pairs in the box. Where x86 has no
// invariant counter, clock_gettime(CLOCK_MONOTONIC) stands in for it.
namespace tacet::plugin {

inline int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

#if defined(__x86_64__)
extern bool g_use_tsc;  // set before the first event
#endif

inline uint64_t Ticks() {
#if defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#elif defined(__x86_64__)
  return g_use_tsc ? __rdtsc() : static_cast<uint64_t>(MonotonicNs());
#else
  return static_cast<uint64_t>(MonotonicNs());
#endif
}

// Chooses the counter; not on the event path.
box::TickSource ChooseTicks();
box::ClockPair ReadClocks();
// Ticks a second. Takes about two milliseconds where the CPU does not tell.
uint64_t MeasureTickRate(box::TickSource source);

}  // namespace tacet::plugin
