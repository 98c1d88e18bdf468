// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "evidence/flight_recorder/flight_recorder_keys.h"
#include "evidence/flight_recorder/flight_recorder_tables.h"

namespace tacet {

// The JSON form: torch's own (no frames, strings for numbers in pg_status, 0 for a time that was not taken), and what
// tools write that load a pickle and store it as JSON (frames, null times, keys of their own).
class FlightJson {
 public:
  FlightJson(std::string_view text, FlightDump& dump, StringTable& strings)
      : text_(text), reader_(text), dump_(dump), strings_(strings), tables_(dump, strings) {}

  void Read();

 private:
  using Token = JsonReader::Token;

  // Each reads one value whose first token is given, and is false when the text ended or broke inside it.
  bool ReadRoot(Token token);
  bool ReadRootMember(FlightKey key);
  bool ReadGroups(Token token);
  bool ReadGroup(Token token, FlightGroup& group);
  bool ReadRanks(Token token, FlightGroup& group);
  bool ReadStatuses(Token token);
  bool ReadEntries(Token token);
  bool ReadEntry();
  bool ReadEntryMember(FlightEntry& entry, FlightKey key);
  bool ReadSizes(Token token, FlightEntry& entry, FlightKey key);
  bool ReadTensor(Token token, bool* broken);
  bool ReadWords(Token token, std::vector<StringId>* words);
  bool ReadFrames(Token token, FlightEntry& entry);
  bool ReadFrame();
  // Reads on to the end of the value that begins with `token`.
  bool SkipRest(Token token);
  // Calls `member(key)` for each member of the object just opened.
  template <typename Member>
  bool ReadMembers(Member member);
  StringId InternText();
  std::string Text() const;
  uint32_t LineOf(size_t offset);

  std::string_view text_;
  JsonReader reader_;
  FlightDump& dump_;
  StringTable& strings_;
  FlightTables tables_;
  std::vector<int64_t> shape_code_;
  std::vector<uint32_t> stack_frames_;
  std::vector<StringId> words_;
  size_t line_counted_to_ = 0;
  uint32_t line_ = 1;
};

}  // namespace tacet
