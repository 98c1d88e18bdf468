// SPDX-License-Identifier: Apache-2.0
#include "plugin/record/tick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tacet::plugin {

#if defined(__x86_64__)
bool g_use_tsc = false;

// The counter runs at one rate in all power states (CPUID 8000_0007, EDX bit 8).
static bool HasInvariantTsc() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
}
#endif

box::TickSource ChooseTicks() {
#if defined(__aarch64__)
  return box::TickSource::arm_counter;
#elif defined(__x86_64__)
  g_use_tsc = HasInvariantTsc();
  return g_use_tsc ? box::TickSource::x86_tsc : box::TickSource::monotonic_ns;
#else
  return box::TickSource::monotonic_ns;
#endif
}

box::ClockPair ReadClocks() {
  // The narrowest of a few tries, so that a preemption between the readings does not stay in the pair.
  box::ClockPair best{};
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    timespec mono{}, wall{};
    const uint64_t before = Ticks();
    clock_gettime(CLOCK_MONOTONIC, &mono);
    clock_gettime(CLOCK_REALTIME, &wall);
    const uint64_t width = Ticks() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {before + width / 2, mono.tv_sec * 1'000'000'000 + mono.tv_nsec, wall.tv_sec * 1'000'000'000 + wall.tv_nsec};
  }
  return best;
}

uint64_t MeasureTickRate(box::TickSource source) {
  if (source == box::TickSource::monotonic_ns) return 1'000'000'000;
#if defined(__aarch64__)
  uint64_t rate = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(rate));
  if (rate != 0) return rate;
#endif
  const box::ClockPair begin = ReadClocks();
  const timespec pause{0, 2'000'000};
  nanosleep(&pause, nullptr);
  const box::ClockPair end = ReadClocks();
  const int64_t ns = end.monotonic_ns - begin.monotonic_ns;
  if (ns <= 0) return 1'000'000'000;
  return static_cast<uint64_t>(static_cast<double>(end.ticks - begin.ticks) * 1e9 / static_cast<double>(ns));
}

}  // namespace tacet::plugin
