// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tacet::plugin {

// The TACET_* variables, read once, when the first communicator is made.
struct Settings {
  char box_dir[512];
  char job[64];  // part of a path: letters, digits, '.', '_', '-'
  uint64_t box_bytes;
  uint32_t heartbeat_ms;  // 0: no thread for it
  uint32_t event_mask;
  bool keep_box;       // false: TACET_BOX_MB=0, no box at all
  char json_dir[512];  // empty: off
  uint64_t json_min_bytes;
  char prom_dir[512];  // empty: off
  uint32_t prom_interval_ms;
  char trouble[400];  // what was asked for and is not done, for NCCL's log; empty: all is well
};
Settings ReadSettings(int api_version);

// `value` cut to fit, always terminated.
void CopyText(char* to, uint64_t room, const char* value);
// Everything that has no business in a file name becomes '_'. A name that is cut or loses letters gets a number made
// from the whole of it, so that jobs with different names keep different names.
void CopyFileName(char* to, uint64_t room, const char* value);

}  // namespace tacet::plugin
