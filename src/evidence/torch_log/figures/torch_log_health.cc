// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_health.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr std::string_view kScores = "straggler";

// "{37}", "[3, 5]", "{StragglerId(rank=37, node='h100-29')}"
std::vector<int32_t> SlowRanksIn(std::string_view list) {
  constexpr size_t kMost = 4096;
  std::vector<int32_t> ranks;
  const bool named = Contains(list, "rank=");
  while (ranks.size() < kMost) {
    if (named) {
      const auto next = After(list, "rank=");
      if (!next) break;
      list = *next;
    } else {
      list = list.substr(std::min(list.find_first_of("0123456789"), list.size()));
    }
    int32_t rank = -1;
    if (list.empty() || !IsDigit(list[0]) || !TakeNumber(list, &rank)) break;
    ranks.push_back(rank);
  }
  return ranks;
}

// nvidia-resiliency-ext, and NeMo with it:
//   Rank=37 Node=h100-29 Score=0.58
LineUse ReadScore(const LogLine& line, RecordList& out) {
  const auto rank = IntAfter<int32_t>(line.text, "Rank=");
  auto node = After(line.text, " Node="), score = After(line.text, " Score=");
  if (!rank || !node || !score) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::straggler_report, line, kScores);
  if (!is_new) return LineUse::understood;  // the worst is listed first
  record->value2 = *rank;
  record->host = Capped(TakeWord(*node), 200);
  record->subject = Capped(TakeWord(*score), 20);
  return LineUse::understood;
}

// STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected ranks: {37}
LineUse ReadSlowRanks(const LogLine& line, RecordList& out) {
  const auto list = After(line.text, "Affected ranks: ");
  const std::vector<int32_t> ranks = list ? SlowRanksIn(*list) : std::vector<int32_t>();
  if (ranks.empty() || !Contains(line.text, "GPUs")) return LineUse::not_understood;
  TorchLogRecord* record = out.AddOnce(TorchLogKind::straggler_report, line, kScores).first;
  if (std::find(ranks.begin(), ranks.end(), static_cast<int32_t>(record->value2)) == ranks.end())
    record->host.clear(), record->subject.clear();
  record->source = line.source;
  record->repeats = 1;  // the scores above it are no warnings
  record->time = line.time;
  record->value = static_cast<int64_t>(ranks.size());
  record->text = Capped(line.text, 600);
  out.KeepRanks(*record, ranks);
  return LineUse::understood;
}

// DeepSpeed: CPU Virtual Memory:  used = 247.9 GB, percent = 98.6%
LineUse ReadHostMemory(const LogLine& line, RecordList& out) {
  auto share = After(line.text, "percent = ");
  if (!share) return LineUse::not_understood;
  const std::string_view number = share->substr(0, share->find('%'));
  std::string_view whole = number;
  int64_t percent = -1;
  if (number.size() > 6 || !TakeNumber(whole, &percent) || percent < 0 || percent > 100) return LineUse::not_understood;
  out.NoteHostMemory({percent, std::string(number) + " %", line.source, line.time});
  return LineUse::understood;
}

}  // namespace

LineUse ReadHealthLine(const LogLine& line, RecordList& out) {
  if (Contains(line.text, "STRAGGLER DETECTION WARNING")) return ReadSlowRanks(line, out);
  if (Contains(line.text, " Score=")) return ReadScore(line, out);
  return Contains(line.text, "CPU Virtual Memory:") ? ReadHostMemory(line, out) : LineUse::not_understood;
}

void DropUntoldScores(TorchLog& log) {
  std::erase_if(log.records, [](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::straggler_report && record.ranks.empty();
  });
}

void JoinMemoryWithKills(TorchLog& log, const HostMemoryNote& note) {
  constexpr int64_t kNearlyFull = 90;
  constexpr int32_t kSoon = 300;  // seconds
  if (note.percent < kNearlyFull) return;
  const bool killed = std::any_of(log.records.begin(), log.records.end(), [&](const TorchLogRecord& record) {
    if (record.kind != TorchLogKind::process_exited || record.value != -9 || record.source.line < note.source.line)
      return false;
    const bool timed = note.time.wall_ns != LogMoment::kNone && record.time.wall_ns != LogMoment::kNone;
    return !timed || record.time.wall_ns - note.time.wall_ns <= int64_t{kSoon} * 1'000'000'000;
  });
  if (!killed || log.records.size() >= kMaxRecords) return;
  TorchLogRecord& record = log.records.emplace_back();
  record.kind = TorchLogKind::memory_use;
  record.source = note.source;
  record.time = note.time;
  record.subject = note.words;
  record.text = note.words + " of the host's memory is in use";
}

// "49:58", "1:02:11": -1 where it is none.
static int64_t ClockSeconds(std::string_view text) {
  int64_t seconds = 0, part = -1;
  for (int parts = 0; parts < 3 && TakeNumber(text, &part) && part >= 0 && part < 1'000'000; ++parts) {
    seconds = seconds * 60 + part;
    if (!TakeLiteral(text, ":")) return parts > 0 ? seconds : -1;
  }
  return -1;
}

// What a bar counts that is no training: samples of a dataset, its batches, files, bytes that are downloaded.
static bool CountsOtherWork(std::string_view bar) {
  const size_t open = bar.rfind('[');
  if (open == std::string_view::npos) return false;
  return ContainsAny(bar.substr(open), {" examples/s", "ba/s", "ex/s", "docs/s", "doc/s", "files/s", "file/s", "rows/s",
                                        "shards/s", "MB/s", "kB/s", "GB/s", "MiB/s", "s/ba", "s/ex", "s/file"});
}

// Running tokenizer on dataset (num_proc=16):  31%|###       | 2830000/9120331 [22:41<49:58, 2097.88 examples/s]
// The training's own bar counts steps, and this one examples.
bool WorkBarReader::Read(const LogLine& line) {
  const size_t share = line.text.substr(0, 120).find("%|");
  if (share == std::string_view::npos || !CountsOtherWork(line.text)) return false;
  const size_t colon = line.text.substr(0, share).rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view number = Trim(line.text.substr(colon + 1, share - colon - 1));
  int percent = -1;
  if (!TakeNumber(number, &percent)) return false;
  const std::string name = Capped(Trim(line.text.substr(0, colon)), 80);
  auto known = std::find_if(bars_.begin(), bars_.end(), [&](const Bar& bar) { return bar.voice == line.voice; });
  constexpr size_t kMostBars = 64;
  if (known == bars_.end()) {
    if (bars_.size() >= kMostBars) return true;
    known = bars_.insert(bars_.end(), Bar{line.voice});
  }
  // Another process of the same voice draws its own for the first time: the one that is further goes on.
  const bool not_begun = percent == 0 && Contains(line.text, "[00:00<?");
  if (not_begun && name == known->name && known->percent > 0 && known->percent < 100) return true;
  if (name != known->name) known->first_line = line.source.line;
  known->name = name;
  known->percent = percent;
  known->last_line = line.source.line;
  const size_t left = line.text.rfind('<');
  known->left_s = left == std::string_view::npos ? -1 : ClockSeconds(line.text.substr(left + 1));
  return true;
}

void WorkBarReader::Finish(TorchLog& log) const {
  // Whoever trains after its bar has left that work.
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // line and voice
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::progress) steps.emplace_back(record.source.line, record.voice);
  constexpr size_t kMostOwners = 8;  // where all ranks do that work, their number tells nobody anything
  for (const Bar& bar : bars_) {
    if (bar.percent >= 100) continue;
    bool awaited = false;
    uint32_t first_step = UINT32_MAX;
    for (const auto& [at, voice] : steps)
      if (at > bar.last_line) first_step = std::min(first_step, at);
    for (TorchLogRecord& record : log.records) {
      const bool of_store = record.kind == TorchLogKind::store_wait_timeout;
      if ((record.kind != TorchLogKind::watchdog_timeout && !of_store) || record.source.line < bar.first_line ||
          record.source.line >= first_step)
        continue;
      awaited |= !of_store;
      if (!record.object.empty()) continue;
      record.object = bar.name + ": " + std::to_string(bar.percent) + "%";
      record.reason_line = bar.last_line;
      record.left_s = bar.left_s;
    }
    if (awaited && log.bar_voices.size() < kMostOwners) log.bar_voices.push_back(bar.voice);
  }
}

}  // namespace tacet
