// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "evidence/torch_log/errors/torch_log_keywords.h"
#include "evidence/torch_log/torch_log_parse.h"

namespace tacet {

// A line on its way through the readers, all prefixes taken off.
struct LogLine {
  std::string_view text;
  std::string_view label;  // the launcher's, before all other prefixes
  std::string_view bar;    // a progress bar that stood before the text on the same line
  SourceRef source;
  uint32_t voice = 0;
  LogMoment time;
  bool dated = false;  // the line itself begins with a date: it goes on with no other line
  char severity = 0;   // of a log line of PyTorch; 0 for anything else
  std::string_view code_file;
  KeywordSet keywords;
  bool unfinished = false;  // the file ends inside it
  bool tagged = false;      // the line itself says "[rank3]:"
  int32_t work_rank = -1;   // "[Rank 3]" of a version that does not say so
  bool has(Keyword keyword) const { return keywords.has(keyword); }
};

// What became of a line's bytes, the least first.
enum class LineUse : uint8_t { not_understood, ignored, understood };

// Longest text kept of one message.
inline constexpr size_t kMaxRecordText = 2000;
// A file that makes more records than this is hostile, or says the same all the time.
inline constexpr size_t kMaxRecords = 100'000;

inline std::string Capped(std::string_view text, size_t limit = kMaxRecordText) {
  return std::string(text.substr(0, limit));
}
inline void AppendCapped(std::string& text, std::string_view more, size_t limit = kMaxRecordText) {
  if (text.size() < limit) text.append(more.substr(0, limit - text.size()));
}

struct HostMemoryNote {
  int64_t percent = -1;
  std::string words;  // "98.6 %"
  SourceRef source;
  LogMoment time;
};

// Collects records. References stay valid, as later lines add to what earlier ones began.
class RecordList {
 public:
  explicit RecordList(TorchLog& log) : log_(log) {}

  TorchLogRecord& Add(TorchLogKind kind, const LogLine& line) {
    if (log_.records.size() >= kMaxRecords) {
      ++log_.dropped_records;
      spare_ = TorchLogRecord();
      return Fill(spare_, kind, line);
    }
    return Fill(log_.records.emplace_back(), kind, line);
  }

  // The record and whether it is new: what the same voice says again with the same key is only counted.
  std::pair<TorchLogRecord*, bool> AddOnce(TorchLogKind kind, const LogLine& line, std::string_view key) {
    std::string name = NameOf(kind, line, key);
    if (auto known = seen_.find(name); known != seen_.end()) {
      ++known->second->repeats;
      return {known->second, false};
    }
    TorchLogRecord& record = Add(kind, line);
    if (&record != &spare_) seen_.emplace(std::move(name), &record);
    return {&record, true};
  }

  // What the same voice said before, if it did.
  TorchLogRecord* Said(TorchLogKind kind, const LogLine& line, std::string_view key) {
    const auto known = seen_.find(NameOf(kind, line, key));
    return known == seen_.end() ? nullptr : known->second;
  }

  // What the same voice said before is settled: said again, it is a record of its own.
  void Forget(TorchLogKind kind, const LogLine& line, std::string_view key) { seen_.erase(NameOf(kind, line, key)); }

  // Lists of ranks are short to write ("0-65535") and long to keep: all of a file together have a limit.
  void KeepRanks(TorchLogRecord& record, const std::vector<int32_t>& ranks) {
    if (ranks.size() > ranks_left_) return;
    ranks_left_ -= ranks.size();
    record.ranks = ranks;
  }

  // Steps that came to their end, before others began with a lower number.
  void NoteRun(EarlierRun run) {
    constexpr size_t kMostRuns = 1000;
    if (log_.earlier_runs.size() < kMostRuns) log_.earlier_runs.push_back(std::move(run));
  }

  // The highest step that any line has told so far.
  void NoteStep(int64_t step) { highest_step_ = std::max(highest_step_, step); }
  int64_t highest_step() const { return highest_step_; }

  // A node on which Ray counts crashed workers, and none that it killed for memory.
  void NoteSparingNode(std::string host) {
    constexpr size_t kMostNodes = 1000;
    if (log_.sparing_nodes.size() < kMostNodes) log_.sparing_nodes.push_back(std::move(host));
  }

  // The last line that told how full the memory of the host is.
  void NoteHostMemory(HostMemoryNote note) { host_memory_ = std::move(note); }
  const HostMemoryNote& host_memory() const { return host_memory_; }

 private:
  static std::string NameOf(TorchLogKind kind, const LogLine& line, std::string_view key) {
    std::string name(1, static_cast<char>(kind));
    name.append(reinterpret_cast<const char*>(&line.voice), sizeof line.voice);
    return name.append(reinterpret_cast<const char*>(&line.work_rank), sizeof line.work_rank)
        .append(key.substr(0, 300));
  }

  static TorchLogRecord& Fill(TorchLogRecord& record, TorchLogKind kind, const LogLine& line) {
    record.kind = kind;
    record.voice = line.voice;
    record.source = line.source;
    record.time = line.time;
    record.work_rank = line.work_rank;
    return record;
  }

  TorchLog& log_;
  TorchLogRecord spare_;  // handed out when the list is full
  int64_t highest_step_ = -1;
  HostMemoryNote host_memory_;
  size_t ranks_left_ = 1'000'000;
  std::unordered_map<std::string, TorchLogRecord*> seen_;
};

}  // namespace tacet
