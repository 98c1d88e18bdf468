// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "evidence/format.h"

namespace tacet {

extern const Format kFlightRecorderFormat;

// Writes pickles the way torch's pickler does, without a memo: each function gives the bytes that push one value.
namespace pickle {

using Item = std::pair<std::string, std::string>;

inline std::string Bytes(uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  return out;
}
inline std::string Text(std::string_view text) { return "X" + Bytes(text.size(), 4) + std::string(text); }
inline std::string Int(int64_t value) {
  if (value >= 0 && value < 256) return "K" + Bytes(static_cast<uint64_t>(value), 1);
  if (value >= 0 && value < 65536) return "M" + Bytes(static_cast<uint64_t>(value), 2);
  if (value >= INT32_MIN && value <= INT32_MAX) return "J" + Bytes(static_cast<uint64_t>(value), 4);
  return "\x8a\x08" + Bytes(static_cast<uint64_t>(value), 8);
}
inline std::string Real(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return "G" + Bytes(__builtin_bswap64(bits), 8);
}
inline std::string Bool(bool value) { return value ? "\x88" : "\x89"; }
inline std::string None() { return "N"; }
inline std::string Pair(std::string_view a, std::string_view b) { return Text(a) + Text(b) + "\x86"; }
inline std::string List(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const auto& item : items) out += item;
  return out + "e";
}
inline std::string Dict(const std::vector<Item>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += key + value;
  return out + "u";
}
inline Item Of(std::string_view key, std::string value) { return {Text(key), std::move(value)}; }
inline std::string File(const std::string& root) { return "\x80\x02" + root + "."; }

inline std::string Sizes(const std::vector<std::vector<int64_t>>& sizes) {
  std::vector<std::string> tensors;
  tensors.reserve(sizes.size());
  for (const auto& size : sizes) {
    std::vector<std::string> numbers;
    numbers.reserve(size.size());
    for (const int64_t number : size) numbers.push_back(Int(number));
    tensors.push_back(List(numbers));
  }
  return List(tensors);
}

}  // namespace pickle

inline constexpr int64_t kDumpTime = 1794702486870833920;

// One entry of version 2.10; a test changes what it is about.
struct EntryText {
  int64_t record = 0, pg_id = 0, collective_seq = 1, p2p_seq = 0;
  std::string group = "0", description = "default_pg";
  std::string name = "nccl:all_reduce", state = "scheduled";
  std::vector<std::vector<int64_t>> in = {{8}}, out = {{8}};
  std::vector<std::string> types = {"Float"};
  int64_t created = kDumpTime, started = 0, completed = 0, timeout_ms = 600000;
  bool retired = false, is_p2p = false;

  std::string Write() const {
    using namespace pickle;
    std::vector<std::string> words;
    words.reserve(types.size());
    for (const auto& type : types) words.push_back(Text(type));
    return Dict({Of("record_id", Int(record)), Of("pg_id", Int(pg_id)), Of("process_group", Pair(group, description)),
                 Of("collective_seq_id", Int(collective_seq)), Of("p2p_seq_id", Int(p2p_seq)),
                 Of("op_id", Int(collective_seq + p2p_seq)), Of("profiling_name", Text(name)),
                 Of("time_created_ns", Int(created)), Of("input_sizes", Sizes(in)), Of("input_dtypes", List(words)),
                 Of("output_sizes", Sizes(out)), Of("output_dtypes", List(words)), Of("state", Text(state)),
                 Of("time_discovered_started_ns", started > 0 ? Int(started) : None()),
                 Of("time_discovered_completed_ns", completed > 0 ? Int(completed) : None()),
                 Of("retired", Bool(retired)), Of("timeout_ms", Int(timeout_ms)), Of("is_p2p", Bool(is_p2p))});
  }
};

struct StatusText {
  std::string pg_id;
  int64_t enqueued = -1, started = -1, completed = -1;
};
struct GroupText {
  std::string name, description, ranks;
};

// A whole dump of version 2.10.
inline std::string WriteDump(const std::vector<EntryText>& entries, const std::vector<StatusText>& statuses = {},
                             const std::vector<GroupText>& groups = {{"0", "default_pg", "[0, 1, 2, 3]"}}) {
  using namespace pickle;
  std::vector<Item> config, status;
  std::vector<std::string> list;
  config.reserve(groups.size());
  status.reserve(statuses.size());
  list.reserve(entries.size());
  for (const auto& group : groups)
    config.push_back(Of(group.name, Dict({Of("name", Text(group.name)), Of("desc", Text(group.description)),
                                          Of("ranks", Text(group.ranks))})));
  for (const auto& row : statuses)
    status.push_back(Of(row.pg_id, Dict({Of("last_enqueued_collective", Int(row.enqueued)),
                                         Of("last_started_collective", Int(row.started)),
                                         Of("last_completed_collective", Int(row.completed))})));
  for (const auto& entry : entries) list.push_back(entry.Write());
  return File(Dict({Of("version", Text("2.10")), Of("pg_config", Dict(config)), Of("comm_lib_version", Text("2.28.9")),
                    Of("pg_status", Dict(status)), Of("entries", List(list))}));
}

inline Fragment ReadFlight(std::string_view bytes, std::string_view path = "nccl_trace_rank_3") {
  Fragment fragment;
  kFlightRecorderFormat.read({path, bytes}, fragment);
  return fragment;
}

inline bool AddsUp(const Fragment& fragment, size_t size) {
  const Accounting& bytes = fragment.bytes;
  return bytes.total == size && bytes.understood + bytes.ignored + bytes.not_understood == bytes.total;
}

inline const Diagnostic* FindDiagnostic(const Fragment& fragment, std::string_view code) {
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == code) return &diagnostic;
  return nullptr;
}

inline std::string SampleFolder() { return std::string(TACET_SOURCE_DIR) + "/src/evidence/flight_recorder/samples/"; }

inline std::string ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
inline std::string ReadSample(const std::string& name) { return ReadWholeFile(SampleFolder() + name); }

inline std::vector<std::string> SampleNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SampleFolder()))
    names.push_back(entry.path().filename());
  return names;
}

}  // namespace tacet
