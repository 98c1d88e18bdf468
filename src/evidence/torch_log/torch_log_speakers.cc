// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_speakers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text_scan.h"
#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

using Kind = LauncherPrefix::Kind;

std::string_view FileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// "[Rank 4]" within a message of ProcessGroupNCCL tells who reports, and DDP tells whose parameters it speaks of. Where
// it is another than the number of the file, that one counts something else ("007.txt", "node1/0.log"), unless the name
// itself says that it is a rank.
bool ReportsAnotherRank(const TorchLog& log, std::string_view path, int32_t rank) {
  return DoubtfulStem(path) && std::any_of(log.records.begin(), log.records.end(), [&](const TorchLogRecord& record) {
           const bool of_ddp = record.kind == TorchLogKind::ddp_unused_parameters && record.rank >= 0;
           return (record.work_rank >= 0 && record.work_rank != rank) || (of_ddp && record.rank != rank);
         });
}

// Where processes with several numbers wait in one call, the file is not one process's, whatever its name says: each of
// them prints its own.
bool HoldsSeveralRanks(const TorchLog& log) {
  std::map<std::pair<std::string_view, int64_t>, int32_t> waiters;
  for (const TorchLogRecord& record : log.records) {
    if (record.kind != TorchLogKind::watchdog_timeout || record.work_rank < 0 || record.seq < 0) continue;
    const auto [first, is_new] = waiters.emplace(std::pair(std::string_view(record.op), record.seq), record.work_rank);
    if (!is_new && first->second != record.work_rank) return true;
  }
  return false;
}

// The rank that the file's name tells, where that can be believed. "slurm-88123.out" and "train_2024.log" name no rank.
std::optional<int32_t> RankOfFile(const TorchLog& log, std::string_view path) {
  const auto rank = RankFromPath(path);
  if (!rank || ReportsAnotherRank(log, path, rank->value) || HoldsSeveralRanks(log)) return std::nullopt;
  if (Contains(path, "rank") || Contains(path, "attempt_")) return rank->value;
  const bool like_year = rank->value >= 1990 && rank->value <= 2100;
  if (log.has_launcher || FileName(path).starts_with("slurm") || like_year || rank->value >= 20'000)
    return std::nullopt;
  return rank->value;
}

bool IsNumbered(const TorchLogLabel& label) { return label.kind == Kind::task || label.kind == Kind::local; }

}  // namespace

SpeakerTable::SpeakerTable(const TorchLog& log, std::string_view path, std::vector<Speaker>& speakers)
    : speakers_(speakers), of_voice_(log.voices.size(), kNobody) {
  // Who trains on after an error has survived it.
  std::vector<uint32_t> last_step(log.voices.size(), 0);
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::progress && record.voice < last_step.size())
      last_step[record.voice] = std::max(last_step[record.voice], record.source.line);
  for (size_t v = 0; v < log.voices.size(); ++v) {
    const TorchLogVoice& voice = log.voices[v];
    if (voice.rank < 0) continue;
    of_voice_[v] = OfRank(voice.rank, Certainty::stated);
    Speaker& speaker = speakers_[of_voice_[v]];
    const TorchLogLabel& label = log.labels[voice.label];
    if (speaker.host.empty()) speaker.host = label.host;
    if (label.kind == Kind::process) speaker.pid = label.number;
    if (voice.pid > 0) speaker.pid = voice.pid;
    speaker.world_size = std::max(speaker.world_size, voice.world_size);
  }
  SettleUnstated(log, path);
  for (size_t v = 0; v < log.voices.size(); ++v)
    if (of_voice_[v] != kNobody) speakers_[of_voice_[v]].fails |= log.voices[v].error_line > last_step[v];
}

void SpeakerTable::SettleUnstated(const TorchLog& log, std::string_view path) {
  std::vector<std::vector<int32_t>> stated(log.labels.size());
  for (const TorchLogVoice& voice : log.voices)
    if (voice.rank >= 0) stated[voice.label].push_back(voice.rank);
  // A label is a rank unless some line says otherwise: "0: [rank9]:" comes from torchrun under srun, "0:" is then a
  // node.
  bool labels_are_ranks = true;
  for (size_t l = 1; l < log.labels.size(); ++l)
    for (const int32_t rank : stated[l])
      if (IsNumbered(log.labels[l]) && rank != log.labels[l].number) labels_are_ranks = false;
  const bool labelled = log.labels.size() > 1;
  for (size_t v = 0; v < log.voices.size(); ++v) {
    const TorchLogVoice& voice = log.voices[v];
    if (voice.rank >= 0) continue;
    const TorchLogLabel& label = log.labels[voice.label];
    // One pod's log, saved under its rank's name: the label in front of every line says no more than the name does.
    const bool only_label = log.labels.size() == 2 && (label.kind == Kind::pod || label.kind == Kind::process);
    const auto file_rank = only_label && stated[voice.label].empty() ? RankOfFile(log, path) : std::nullopt;
    if (voice.label == 0)
      of_voice_[v] = OfWholeFile(log, path, stated[0], labelled);
    else if (file_rank)
      of_voice_[v] = OfLabelOfRank(label, *file_rank);
    else if (only_label && log.has_launcher && stated[voice.label].size() != 1)
      of_voice_[v] = kNobody;  // a launcher and all its ranks speak under the pod's name
    else
      of_voice_[v] = OfLabel(label, stated[voice.label], labels_are_ranks);
    if (of_voice_[v] != kNobody && voice.pid > 0 && speakers_[of_voice_[v]].pid < 0)
      speakers_[of_voice_[v]].pid = voice.pid;
  }
}

uint32_t SpeakerTable::OfLabel(const TorchLogLabel& label, const std::vector<int32_t>& stated, bool labels_are_ranks) {
  if (stated.size() == 1) return OfRank(stated[0], Certainty::stated);
  if (stated.size() > 1) return kNobody;
  if (IsNumbered(label))
    return labels_are_ranks && label.number < INT32_MAX
               ? OfRank(static_cast<int32_t>(label.number), Certainty::assumed,
                        label.kind == Kind::local ? RankClue::local_rank : RankClue::label)
               : kNobody;
  Speaker speaker;
  speaker.host = label.host;
  if (label.kind == Kind::process) speaker.pid = label.number;
  return Add(std::move(speaker));
}

uint32_t SpeakerTable::OfLabelOfRank(const TorchLogLabel& label, int32_t rank) {
  const uint32_t speaker = OfRank(rank, Certainty::assumed, RankClue::file_name);
  if (speakers_[speaker].host.empty()) speakers_[speaker].host = label.host;
  if (label.kind == Kind::process) speakers_[speaker].pid = label.number;
  return speaker;
}

uint32_t SpeakerTable::OfWholeFile(const TorchLog& log, std::string_view path, const std::vector<int32_t>& stated,
                                   bool labelled) {
  if (labelled || stated.size() > 1) return kNobody;  // the launcher's own lines, or anybody's
  const auto file_rank = RankOfFile(log, path);
  if (stated.size() == 1) {
    // One rank spoke up in the file. The rest is its own only if the file is one process's.
    const bool own_file =
        file_rank && (*file_rank == stated[0] || Contains(path, "rank") || Contains(path, "attempt_"));
    return own_file ? OfRank(stated[0], Certainty::stated) : kNobody;
  }
  if (file_rank) return OfRank(*file_rank, Certainty::assumed, RankClue::file_name);
  return log.has_launcher ? kNobody : Add(Speaker());
}

uint32_t SpeakerTable::OfRank(int32_t rank, Certainty certainty, RankClue clue) {
  const auto [entry, is_new] = by_rank_.emplace(rank, static_cast<uint32_t>(speakers_.size()));
  if (is_new) Add({Rank{rank}, certainty});
  Speaker& speaker = speakers_[entry->second];
  speaker.rank_certainty = std::max(speaker.rank_certainty, certainty);
  const bool told_twice = speaker.rank_clue == RankClue::file_name && clue == RankClue::message;
  if (speaker.rank_clue == RankClue::not_told || told_twice) speaker.rank_clue = clue;
  return entry->second;
}

uint32_t SpeakerTable::OfHost(const std::string& host) {
  Speaker speaker;
  speaker.host = host;
  return Add(std::move(speaker));
}

uint32_t SpeakerTable::OfProcess(const std::string& host, int64_t pid) {
  const auto [entry, is_new] = by_process_.emplace(std::pair(host, pid), static_cast<uint32_t>(speakers_.size()));
  if (!is_new) return entry->second;
  Speaker speaker;
  speaker.host = host;
  speaker.pid = pid;
  return Add(std::move(speaker));
}

uint32_t SpeakerTable::Add(Speaker speaker) {
  speakers_.push_back(std::move(speaker));
  return static_cast<uint32_t>(speakers_.size() - 1);
}

}  // namespace tacet
