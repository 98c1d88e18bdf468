// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_json.h"

#include <algorithm>
#include <charconv>

namespace tacet {
namespace {

constexpr size_t kMaxJsonVersionText = 64;
constexpr size_t kMaxFrames = 1024;
constexpr size_t kMaxWords = 2;

// torch writes "14" in pg_status where Python tools write 14.
int64_t NumberIn(const JsonReader& reader, JsonReader::Token token) {
  if (token == JsonReader::Token::number) return reader.Int();
  int64_t value = -1;
  const std::string_view text = reader.raw();
  if (token == JsonReader::Token::string) std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

// {"entries":[{"collective_seq_id":1,"duration_ms":0.2,"input_dtypes":["Float"],"input_sizes":[[8]],"is_p2p":false,
//   "op_id":1,"output_dtypes":["Float"],"output_sizes":[[8]],"p2p_seq_id":0,"pg_id":0,"process_group":["0","default_pg"],
//   "profiling_name":"nccl:all_reduce","record_id":0,"retired":true,"state":"completed","thread_id":"139",
//   "time_created_ns":1794702486870833920,"time_discovered_completed_ns":1794702487309936423,
//   "time_discovered_started_ns":0,"timeout_ms":600000}],"nccl_comm_state":{},"nccl_version":"2.27.5",
//   "pg_config":{"0":{"desc":"default_pg","name":"0","ranks":"[0, 1]"}},
//   "pg_status":{"0":{"last_completed_collective":"1","last_enqueued_collective":"1","last_started_collective":"-1"}},
//   "version":"2.9"}
void FlightJson::Read() {
  dump_.is_json = true;
  if (ReadRoot(reader_.Next())) {
    dump_.understood = reader_.end_offset();
    return;
  }
  const bool cut = reader_.truncated() || reader_.end_offset() >= text_.size();
  dump_.ending = cut ? FlightEnding::truncated : FlightEnding::malformed;
  dump_.problem = cut ? "the JSON ends before its last bracket" : "this is not JSON";
  dump_.problem_offset = reader_.end_offset();
}

bool FlightJson::ReadRoot(Token token) {
  if (token == Token::array_begin) return ReadEntries(token);
  if (token != Token::object_begin) return false;
  return ReadMembers([this](FlightKey key) { return ReadRootMember(key); });
}

bool FlightJson::ReadRootMember(FlightKey key) {
  if (key >= FlightKey::version && key <= FlightKey::comm_lib_version) dump_.has_known_key = true;
  const Token token = reader_.Next();
  switch (key) {
    case FlightKey::pg_config: return ReadGroups(token);
    case FlightKey::pg_status: return ReadStatuses(token);
    case FlightKey::entries: return ReadEntries(token);
    case FlightKey::version:
      if (token == Token::string) dump_.version = Text().substr(0, kMaxJsonVersionText);
      break;
    case FlightKey::nccl_version:
    case FlightKey::comm_lib_version:
      if (token == Token::string) dump_.library_version = Text().substr(0, kMaxJsonVersionText);
      dump_.library_is_nccl = key == FlightKey::nccl_version;
      break;
    default: break;
  }
  return SkipRest(token);
}

// {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, or {"0": [0, 1]} of version 1.2
bool FlightJson::ReadGroups(Token token) {
  if (token != Token::object_begin) return SkipRest(token);
  while (true) {
    token = reader_.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key) return false;
    FlightGroup group{.name = InternText()};
    token = reader_.Next();
    const bool read = token == Token::object_begin ? ReadGroup(token, group) : ReadRanks(token, group);
    if (!read) return false;
    dump_.groups.push_back(group);
    dump_.understood = reader_.end_offset();
  }
}

bool FlightJson::ReadGroup(Token, FlightGroup& group) {
  return ReadMembers([&](FlightKey key) {
    const Token token = reader_.Next();
    if (key == FlightKey::ranks) return ReadRanks(token, group);
    if (token == Token::string && key == FlightKey::name) group.name = InternText();
    if (token == Token::string && key == FlightKey::desc) group.description = InternText();
    return SkipRest(token);
  });
}

bool FlightJson::ReadRanks(Token token, FlightGroup& group) {
  std::vector<int32_t> ranks;
  if (token == Token::string) {
    ranks = ParseRankList(reader_.raw());
  } else if (token == Token::array_begin) {
    for (token = reader_.Next(); token != Token::array_end; token = reader_.Next()) {
      ranks.push_back(token == Token::number ? RankNumber(reader_.Int()) : -1);
      if (!SkipRest(token)) return false;
    }
  } else {
    return SkipRest(token);
  }
  group.ranks = static_cast<uint32_t>(dump_.rank_lists.size());
  dump_.rank_lists.push_back(std::move(ranks));
  return true;
}

// {"0": {"last_enqueued_collective": "14", "last_started_collective": "-1", "last_completed_collective": "13"}}
bool FlightJson::ReadStatuses(Token token) {
  if (token != Token::object_begin) return SkipRest(token);
  while (true) {
    token = reader_.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key) return false;
    FlightStatus status{.pg_id = NumberIn(reader_, Token::string)};
    token = reader_.Next();
    if (token != Token::object_begin) {
      if (!SkipRest(token)) return false;
      continue;
    }
    const bool read = ReadMembers([&](FlightKey key) {
      const Token value = reader_.Next();
      SetStatusNumber(status, key, NumberIn(reader_, value));
      return SkipRest(value);
    });
    if (!read) return false;
    dump_.statuses.push_back(status);
    dump_.understood = reader_.end_offset();
  }
}

bool FlightJson::ReadEntries(Token token) {
  if (token != Token::array_begin) return SkipRest(token);
  while (true) {
    token = reader_.Next();
    if (token == Token::array_end) return true;
    if (token != Token::object_begin) {
      if (!SkipRest(token)) return false;
      ++dump_.skipped_entries;
      continue;
    }
    dump_.entries.emplace_back();
    if (!ReadEntry()) {
      dump_.entries.pop_back();
      return false;
    }
    dump_.understood = reader_.end_offset();
    if (IsFlightEntry(dump_.entries.back())) continue;
    dump_.entries.pop_back();
    ++dump_.skipped_entries;
  }
}

bool FlightJson::ReadEntry() {
  FlightEntry& entry = dump_.entries.back();
  entry.offset = reader_.offset();
  entry.line = LineOf(entry.offset);
  return ReadMembers([&](FlightKey key) { return ReadEntryMember(entry, key); });
}

bool FlightJson::ReadEntryMember(FlightEntry& entry, FlightKey key) {
  const Token token = reader_.Next();
  if (!IsEntryKey(key)) return SkipRest(token);
  MarkField(entry, key);
  switch (key) {
    case FlightKey::input_sizes:
    case FlightKey::output_sizes: return ReadSizes(token, entry, key);
    case FlightKey::frames: return ReadFrames(token, entry);
    case FlightKey::input_dtypes:
    case FlightKey::output_dtypes:
      if (!ReadWords(token, &words_)) return false;
      if (!words_.empty() && (key == FlightKey::input_dtypes || entry.data_type == StringId{}))
        entry.data_type = words_[0];
      return true;
    case FlightKey::process_group:
      if (!ReadWords(token, &words_)) return false;
      if (!words_.empty()) entry.group_name = words_[0];
      if (words_.size() > 1) entry.group_description = words_[1];
      return true;
    case FlightKey::profiling_name:
      if (token == Token::string) entry.name = InternText();
      break;
    case FlightKey::state: SetEntryState(entry, FlightKeyOf(reader_.raw())); break;
    case FlightKey::duration_ms:
      if (token == Token::number) SetEntryReal(entry, key, reader_.Double());
      break;
    default:
      if (token == Token::number) SetEntryNumber(entry, key, reader_.Int());
      if (token == Token::boolean) SetEntryNumber(entry, key, reader_.Bool());
  }
  return SkipRest(token);
}

// [[8192, 1, 5120], []]
bool FlightJson::ReadSizes(Token token, FlightEntry& entry, FlightKey key) {
  if (token != Token::array_begin) return SkipRest(token);
  shape_code_.clear();
  bool broken = false;
  for (token = reader_.Next(); token != Token::array_end; token = reader_.Next())
    if (!ReadTensor(token, &broken)) return false;
  if (!shape_code_.empty()) entry.has_no_tensors = false;
  if (broken) return true;
  const FlightTables::Shape shape = tables_.ShapeOf(shape_code_);
  (key == FlightKey::input_sizes ? entry.in_elements : entry.out_elements) = shape.elements;
  if (key == FlightKey::input_sizes) entry.shape = shape.text;
  return true;
}

bool FlightJson::ReadTensor(Token token, bool* broken) {
  if (token != Token::array_begin) {
    *broken = true;
    return SkipRest(token);
  }
  const size_t head = shape_code_.size();
  shape_code_.push_back(0);
  for (token = reader_.Next(); token != Token::array_end; token = reader_.Next()) {
    if (token != Token::number || shape_code_.size() - head > FlightTables::kMaxDimensions) {
      *broken = true;
      if (!SkipRest(token)) return false;
      continue;
    }
    shape_code_.push_back(reader_.Int());
  }
  shape_code_[head] = static_cast<int64_t>(shape_code_.size() - head - 1);
  return true;
}

bool FlightJson::ReadWords(Token token, std::vector<StringId>* words) {
  words->clear();
  if (token != Token::array_begin) return SkipRest(token);
  for (token = reader_.Next(); token != Token::array_end; token = reader_.Next()) {
    if (token == Token::string && words->size() < kMaxWords) words->push_back(InternText());
    if (!SkipRest(token)) return false;
  }
  return true;
}

// [{"name": "all_reduce", "filename": "torch/distributed/distributed_c10d.py", "line": 3068}]
bool FlightJson::ReadFrames(Token token, FlightEntry& entry) {
  if (token != Token::array_begin) return SkipRest(token);
  stack_frames_.clear();
  for (token = reader_.Next(); token != Token::array_end; token = reader_.Next())
    if (!(token == Token::object_begin ? ReadFrame() : SkipRest(token))) return false;
  entry.stack = tables_.IndexOfStack(stack_frames_);
  return true;
}

bool FlightJson::ReadFrame() {
  FlightFrame frame;
  const bool read = ReadMembers([&](FlightKey key) {
    const Token token = reader_.Next();
    if (key == FlightKey::name && token == Token::string) frame.function = InternText();
    if (key == FlightKey::filename && token == Token::string) frame.file = InternText();
    if (key == FlightKey::line && token == Token::number)
      frame.line = static_cast<uint32_t>(std::clamp<int64_t>(reader_.Int(), 0, UINT32_MAX));
    return SkipRest(token);
  });
  if (read && stack_frames_.size() < kMaxFrames) stack_frames_.push_back(tables_.IndexOfFrame(frame));
  return read;
}

bool FlightJson::SkipRest(Token token) {
  if (token == Token::end || token == Token::error || token == Token::object_end || token == Token::array_end)
    return false;
  if (token != Token::object_begin && token != Token::array_begin) return true;
  const size_t inside = reader_.depth();
  while (reader_.depth() >= inside) {
    token = reader_.Next();
    if (token == Token::end || token == Token::error) return false;
  }
  return true;
}

template <typename Member>
bool FlightJson::ReadMembers(Member member) {
  while (true) {
    const Token token = reader_.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key || !member(FlightKeyOf(reader_.raw()))) return false;
  }
}

std::string FlightJson::Text() const { return reader_.String(); }

StringId FlightJson::InternText() {
  const std::string_view raw = reader_.raw();
  if (raw.find('\\') == std::string_view::npos) return strings_.Intern(raw);
  return strings_.Intern(JsonReader::Unescape(raw));
}

uint32_t FlightJson::LineOf(size_t offset) {
  line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(line_counted_to_),
                                            text_.begin() + static_cast<ptrdiff_t>(offset), '\n'));
  line_counted_to_ = offset;
  return line_;
}

}  // namespace tacet
