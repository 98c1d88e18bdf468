// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tacet {

// For programs that run for months with many threads: glibc gives threads pools of memory of their own, and each keeps
// what the largest answer took that its thread ever read. With two, a server that is fed large answers stays at 80 MB
// where it grew to 430 MB.
inline void UseFewMemoryPools() {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

}  // namespace tacet
