// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"

namespace tacet {

enum class FlightState : uint8_t { unknown, scheduled, started, completed };

// One entry of the recorder's ring, in the dump's own words. Times are wall clock; 0 where the dump has none.
struct FlightEntry {
  uint64_t offset = 0;  // of the first byte of its dict
  uint32_t line = 0;    // JSON only
  uint32_t fields = 0;  // bit per FlightKey that the dict has
  int64_t record_id = -1;
  int64_t pg_id = -1;
  int64_t collective_seq = -1;  // before version 2.0 the one seq_id
  int64_t p2p_seq = -1;
  int64_t created_ns = 0;
  int64_t started_ns = 0;
  int64_t completed_ns = 0;
  int64_t timeout_ms = 0;
  int64_t in_elements = -1;
  int64_t out_elements = -1;
  float duration_ms = -1;
  uint32_t stack = 0;  // index into FlightDump::stacks
  StringId name{};
  StringId group_name{};
  StringId group_description{};
  StringId shape{};      // of the input, as text
  StringId data_type{};  // of the first tensor
  FlightState state = FlightState::unknown;
  bool retired = false;
  bool is_p2p = false;
  bool has_no_tensors = true;  // both size lists are empty or absent
};

struct FlightFrame {
  StringId function{};
  StringId file{};
  uint32_t line = 0;
  friend bool operator==(const FlightFrame&, const FlightFrame&) = default;
};

struct FlightStack {
  uint32_t begin = 0, count = 0;  // into FlightDump::stack_frames, innermost frame first
};

struct FlightGroup {
  static constexpr uint32_t kNoRanks = 0xffffffffu;
  StringId name{};
  StringId description{};
  uint32_t ranks = kNoRanks;  // index into FlightDump::rank_lists; equal lists are often one string in the dump
};

struct FlightStatus {
  int64_t pg_id = -1;
  int64_t last_enqueued = -1, last_started = -1, last_completed = -1;
};

enum class FlightEnding : uint8_t {
  whole,
  truncated,  // the bytes ended in the middle
  malformed,  // something that no Flight Recorder writes; what came before it is kept
  malicious,  // the pickle asks to import or call something; nothing of it is kept
  foreign,    // readable, but not a Flight Recorder dump
};

struct FlightDump {
  bool is_json = false;
  std::string version;           // empty for the bare list of PyTorch 2.2
  std::string library_version;   // NCCL's or that of another backend
  bool library_is_nccl = false;  // the key itself says so (nccl_version)
  std::vector<FlightGroup> groups;
  std::vector<FlightStatus> statuses;
  std::vector<FlightEntry> entries;
  std::vector<FlightFrame> frames;
  std::vector<uint32_t> stack_frames;  // indices into frames
  std::vector<FlightStack> stacks;     // stacks[0] is the empty one
  std::vector<std::vector<int32_t>> rank_lists;
  uint64_t skipped_entries = 0;  // members of the list that are no entries
  bool has_known_key = false;    // some key of the top level is the recorder's
  FlightEnding ending = FlightEnding::whole;
  std::string problem;  // a sentence, for every ending but whole
  uint64_t problem_offset = 0;
  uint64_t understood = 0;  // bytes up to the end of what was read
};

// Reads a dump: a pickle written by torch's C++ pickler or by Python, or the JSON form. Strings go into `strings`.
//   80 02 7d 28 58 07 00 00 00 "version" 71 00 58 04 00 00 00 "2.10" ...
//   {"entries":[{"collective_seq_id":1,"is_p2p":false,"op_id":1,"p2p_seq_id":0,"pg_id":0,...}],"pg_config":{...},...}
FlightDump ParseFlightDump(std::string_view bytes, StringTable& strings);

// Dump versions are "major.minor" and compare as two numbers: "2.10" is newer than "2.9".
struct FlightVersion {
  int major = 0, minor = 0;
  friend bool operator==(const FlightVersion&, const FlightVersion&) = default;
  friend bool operator<(const FlightVersion& a, const FlightVersion& b) {
    return a.major != b.major ? a.major < b.major : a.minor < b.minor;
  }
};
FlightVersion ParseFlightVersion(std::string_view text);

}  // namespace tacet
