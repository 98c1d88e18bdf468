// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacet {

struct WatchedProcess {
  int64_t rank = -1, pid = -1, start_jiffies = 0;
  std::string state;
  int64_t running_until_wall_ns = -1;
  bool has_box = false;
  size_t offset = 0;
};

// One watch.json.
struct WatchRecord {
  std::string host;
  int64_t looked_wall_ns = -1, still_ms = -1, limit_ms = -1, world_size = -1;  // still_ms -1: nobody decided on a hang
  std::vector<WatchedProcess> processes;
  bool cut = false;
};

// How a run ended, from its manifest.json.
struct EndRecord {
  bool ended = false;
  std::string ended_at;             // 2026-11-17T17:03:51.655911415Z
  int64_t exit_code = -1;           // 128 and more: 128 + the signal
  int64_t signal = 0;               // 0: it exited by itself
  bool stopped_on_request = false;  // no failure of its own: a signal to tacet run, or its --on-hang kill
  bool hung = false;                // the watch saw a hang before that
  int64_t stop_signal = 0;          // by which it was asked; 0 where that is not recorded
  std::string stop_requested_at;    // as ended_at
};

// False where the text is no manifest of a run.
bool ParseRunEnd(std::string_view text, EndRecord* record);

// False where the text is no such record at all.
bool ParseWatchRecord(std::string_view text, WatchRecord* record);

// "tacet.watch.v1" of {"schema":"tacet.watch.v1",...}; empty where the text does not begin so.
std::string_view SchemaOf(std::string_view text);

}  // namespace tacet
