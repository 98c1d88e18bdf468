// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "evidence/flight_recorder/flight_recorder_parse.h"

namespace tacet {

// Every word with a meaning in a dump. Those of an entry come first, so that one 32-bit set tells which an entry has.
enum class FlightKey : uint8_t {
  record_id,
  pg_id,
  seq_id,
  collective_seq_id,
  p2p_seq_id,
  op_id,
  process_group,
  profiling_name,
  time_created_us,
  time_created_ns,
  time_started_ns,
  time_completed_ns,
  duration_ms,
  input_sizes,
  output_sizes,
  input_dtypes,
  output_dtypes,
  state,
  retired,
  timeout_ms,
  is_p2p,
  frames,
  thread_id,
  thread_name,
  name,
  filename,
  line,
  desc,
  ranks,  // of a frame or a group
  last_enqueued,
  last_started,
  last_completed,  // of a status row
  version,
  pg_config,
  pg_status,
  entries,
  nccl_version,
  comm_lib_version,  // of the top level
  scheduled,
  started,
  completed,  // values of state
  none = 255,
};

FlightKey FlightKeyOf(std::string_view word);

// Times, counters and flags of an entry: the keys whose value is a number or a boolean.
void SetEntryNumber(FlightEntry& entry, FlightKey key, int64_t value);
void SetEntryReal(FlightEntry& entry, FlightKey key, double value);
inline void SetEntryState(FlightEntry& entry, FlightKey word) {
  if (word == FlightKey::scheduled) entry.state = FlightState::scheduled;
  if (word == FlightKey::started) entry.state = FlightState::started;
  if (word == FlightKey::completed) entry.state = FlightState::completed;
}
inline bool IsEntryKey(FlightKey key) { return key <= FlightKey::thread_name; }
inline void MarkField(FlightEntry& entry, FlightKey key) { entry.fields |= 1u << static_cast<unsigned>(key); }
inline bool HasField(const FlightEntry& entry, FlightKey key) {
  return (entry.fields >> static_cast<unsigned>(key) & 1) != 0;
}

void SetStatusNumber(FlightStatus& status, FlightKey key, int64_t value);

// A dict counts as an entry when it names an operation and has some of an entry's other keys: {} is none.
bool IsFlightEntry(const FlightEntry& entry);

// "[0, 1, 2]" -> 0, 1, 2.
std::vector<int32_t> ParseRankList(std::string_view text);

// A rank out of a number of the dump; -1 where it is none.
inline int32_t RankNumber(int64_t value) { return value >= 0 && value <= INT32_MAX ? static_cast<int32_t>(value) : -1; }

}  // namespace tacet
