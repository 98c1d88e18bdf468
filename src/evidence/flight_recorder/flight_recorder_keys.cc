// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text_scan.h"

namespace tacet {
namespace {

struct Word {
  std::string_view text;
  FlightKey key;
};

constexpr Word kWords[] = {
    {"record_id", FlightKey::record_id},
    {"pg_id", FlightKey::pg_id},
    {"seq_id", FlightKey::seq_id},
    {"collective_seq_id", FlightKey::collective_seq_id},
    {"p2p_seq_id", FlightKey::p2p_seq_id},
    {"op_id", FlightKey::op_id},
    {"process_group", FlightKey::process_group},
    {"profiling_name", FlightKey::profiling_name},
    {"time_created_us", FlightKey::time_created_us},
    {"time_created_ns", FlightKey::time_created_ns},
    {"time_discovered_started_ns", FlightKey::time_started_ns},
    {"time_discovered_completed_ns", FlightKey::time_completed_ns},
    {"duration_ms", FlightKey::duration_ms},
    {"input_sizes", FlightKey::input_sizes},
    {"output_sizes", FlightKey::output_sizes},
    {"input_dtypes", FlightKey::input_dtypes},
    {"output_dtypes", FlightKey::output_dtypes},
    {"state", FlightKey::state},
    {"retired", FlightKey::retired},
    {"timeout_ms", FlightKey::timeout_ms},
    {"is_p2p", FlightKey::is_p2p},
    {"frames", FlightKey::frames},
    {"thread_id", FlightKey::thread_id},
    {"thread_name", FlightKey::thread_name},
    {"name", FlightKey::name},
    {"filename", FlightKey::filename},
    {"line", FlightKey::line},
    {"desc", FlightKey::desc},
    {"ranks", FlightKey::ranks},
    {"last_enqueued_collective", FlightKey::last_enqueued},
    {"last_started_collective", FlightKey::last_started},
    {"last_completed_collective", FlightKey::last_completed},
    {"version", FlightKey::version},
    {"pg_config", FlightKey::pg_config},
    {"pg_status", FlightKey::pg_status},
    {"entries", FlightKey::entries},
    {"nccl_version", FlightKey::nccl_version},
    {"comm_lib_version", FlightKey::comm_lib_version},
    {"scheduled", FlightKey::scheduled},
    {"started", FlightKey::started},
    {"completed", FlightKey::completed},
};

constexpr size_t kLongestWord = 28;

// The words of each length stand together, so that a lookup compares two or three of them.
struct WordIndex {
  std::array<Word, std::size(kWords)> words{};
  std::array<uint8_t, kLongestWord + 2> first{};
};

constexpr WordIndex IndexWords() {
  WordIndex index;
  size_t next = 0;
  for (size_t length = 0; length <= kLongestWord; ++length) {
    index.first[length] = static_cast<uint8_t>(next);
    for (const Word& word : kWords)
      if (word.text.size() == length) index.words[next++] = word;
  }
  index.first[kLongestWord + 1] = static_cast<uint8_t>(next);
  return index;
}

constexpr WordIndex kIndex = IndexWords();
static_assert(kIndex.first[kLongestWord + 1] == std::size(kWords), "a word is longer than kLongestWord");

int64_t ThousandTimes(int64_t value) {
  return value > std::numeric_limits<int64_t>::max() / 1000 || value < 0 ? 0 : value * 1000;
}

}  // namespace

FlightKey FlightKeyOf(std::string_view word) {
  if (word.size() > kLongestWord) return FlightKey::none;
  for (size_t i = kIndex.first[word.size()]; i < kIndex.first[word.size() + 1]; ++i)
    if (kIndex.words[i].text == word) return kIndex.words[i].key;
  return FlightKey::none;
}

void SetEntryNumber(FlightEntry& entry, FlightKey key, int64_t value) {
  switch (key) {
    case FlightKey::record_id: entry.record_id = value; break;
    case FlightKey::pg_id: entry.pg_id = value; break;
    case FlightKey::seq_id:
    case FlightKey::collective_seq_id: entry.collective_seq = value; break;
    case FlightKey::p2p_seq_id: entry.p2p_seq = value; break;
    // A time of zero or less was not taken: JSON writes 0 where the pickle has None.
    case FlightKey::time_created_us: entry.created_ns = ThousandTimes(value); break;
    case FlightKey::time_created_ns: entry.created_ns = std::max<int64_t>(value, 0); break;
    case FlightKey::time_started_ns: entry.started_ns = std::max<int64_t>(value, 0); break;
    case FlightKey::time_completed_ns: entry.completed_ns = std::max<int64_t>(value, 0); break;
    case FlightKey::timeout_ms: entry.timeout_ms = std::max<int64_t>(value, 0); break;
    case FlightKey::duration_ms: SetEntryReal(entry, key, static_cast<double>(value)); break;
    case FlightKey::retired: entry.retired = value != 0; break;
    case FlightKey::is_p2p: entry.is_p2p = value != 0; break;
    default: break;
  }
}

void SetEntryReal(FlightEntry& entry, FlightKey key, double value) {
  if (key == FlightKey::duration_ms && std::isfinite(value) && value >= 0 && value <= 1e30)
    entry.duration_ms = static_cast<float>(value);
}

void SetStatusNumber(FlightStatus& status, FlightKey key, int64_t value) {
  value = std::max<int64_t>(value, -1);
  if (key == FlightKey::last_enqueued) status.last_enqueued = value;
  if (key == FlightKey::last_started) status.last_started = value;
  if (key == FlightKey::last_completed) status.last_completed = value;
}

bool IsFlightEntry(const FlightEntry& entry) { return entry.name != StringId{} && std::popcount(entry.fields) >= 3; }

std::vector<int32_t> ParseRankList(std::string_view text) {
  std::vector<int32_t> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if (*at < '0' || *at > '9') {
      ++at;
      continue;
    }
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    ranks.push_back(error == std::errc() ? RankNumber(value) : -1);
    at = next;
  }
  return ranks;
}

FlightVersion ParseFlightVersion(std::string_view text) {
  FlightVersion version;
  if (!TakeNumber(text, &version.major)) return {};
  if (TakeLiteral(text, ".")) TakeNumber(text, &version.minor);
  return version;
}

}  // namespace tacet
