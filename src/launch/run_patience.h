// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/patience.h"

namespace tacet {

struct RunPatience : Patience {
  int64_t run_quiet_ns = 15 * kSecond;
  int64_t run_look_ns = 5 * kSecond;
  int64_t run_most_look_ns = 60 * kSecond;
  int64_t run_still_ns = 30 * kSecond;
  int64_t run_pause_times = 2;
  int64_t run_busy_percent = 5;
};

}  // namespace tacet
