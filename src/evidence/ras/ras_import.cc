// SPDX-License-Identifier: Apache-2.0
#include "evidence/ras/ras_import.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/json_reader.h"
#include "evidence/ras/ras_identity.h"
#include "evidence/ras/ras_parse.h"

namespace tacet {
namespace {

using RankKey = std::pair<uint64_t, int32_t>;  // communicator, rank in it

// ncclResult_t by the words of the text report; 0 where they are none of its own.
int64_t ResultCode(std::string_view words) {
  static constexpr std::string_view kWords[] = {"",
                                                "Unhandled CUDA error",
                                                "System error",
                                                "Internal error",
                                                "Invalid argument",
                                                "Invalid usage",
                                                "Remote process error",
                                                "NCCL operation in progress"};
  for (int64_t code = 1; code < 8; ++code)
    if (kWords[code] == words) return code;
  return 0;
}

std::string_view ResultWords(int64_t code) {
  static constexpr std::string_view kWords[] = {"Unhandled CUDA error", "System error",  "Internal error",
                                                "Invalid argument",     "Invalid usage", "Remote process error"};
  return code >= 1 && code <= 6 ? kWords[code - 1] : "Unexpected error";
}

class Importer {
 public:
  Importer(RasParse parse, Fragment& out) : parse_(std::move(parse)), out_(out) {}
  void Run();

 private:
  void CountAnswers();
  void ReadTable();
  void NameMissingRank();
  void ImportRecord(const RasRecord& record, bool listed_below);
  void ImportCounts(const RasRecord& record);
  void ImportAbsent(const RasRecord& record);
  void ImportLaunched(const RasRecord& record);
  void ImportStatus(const RasRecord& record);
  void ImportError(const RasRecord& record, int64_t code, std::string_view words);
  void ImportProcess(const RasRecord& record);
  void ImportPeerEvent(const RasRecord& record);
  void DropWithdrawn();
  void NoteEarlierAnswers();

  bool MembersFollow(size_t index) const;
  uint32_t SpeakerOf(const RasRecord& record);
  LaunchCounts& CountsOf(const RasRecord& record);
  Event& AddEvent(EventKind kind, const RasRecord& record);
  Event& AddReport(EventKind kind, const RasRecord& record);  // what RAS says of a rank
  int32_t SizeOf(const RasRecord& record) const;
  void KnowGroup(const RasRecord& record);

  RasParse parse_;
  Fragment& out_;
  uint32_t last_answer_ = 0;
  bool has_answer_ = false;
  std::map<int32_t, int32_t> size_of_row_;  // group table of the last answer
  int64_t job_gpus_ = -1;
  std::map<std::pair<std::string, int64_t>, uint32_t> speaker_of_;
  std::map<RankKey, size_t> counts_of_;
  std::map<uint64_t, size_t> group_of_;
  std::set<std::pair<std::string_view, int64_t>> dead_;
  std::map<uint32_t, std::vector<size_t>> silences_;  // speaker -> events a recovery would take back
  std::vector<size_t> withdrawn_;
};

// Lists of members follow a line such as "6 ranks have launched up to operation 6649" only for the smaller groups.
bool Importer::MembersFollow(size_t index) const {
  const RasRecord& group = parse_.records[index];
  const RasKind member = group.kind == RasKind::ranks_launched ? RasKind::rank_launched
                         : group.kind == RasKind::ranks_status ? RasKind::rank_status
                                                               : RasKind::rank_error;
  int64_t found = 0;
  for (size_t i = index + 1; i < parse_.records.size() && found < group.count; ++i, ++found) {
    const RasRecord& next = parse_.records[i];
    if (next.kind == RasKind::rank_absent && next.comm == group.comm) continue;
    if (next.kind != member || next.comm != group.comm || next.op != group.op || next.value != group.value ||
        next.status != group.status || next.text != group.text)
      break;
  }
  return found == group.count;
}

uint32_t Importer::SpeakerOf(const RasRecord& record) {
  if (record.pid < 0 || record.host.empty() || record.host == "unknown") return kNobody;
  const auto [found, fresh] = speaker_of_.try_emplace({JsonReader::Unescape(record.host), record.pid},
                                                      static_cast<uint32_t>(out_.speakers.size()));
  if (fresh) {
    Speaker& speaker = out_.speakers.emplace_back();
    speaker.host = found->first.first;
    speaker.pid = record.pid;
  }
  Speaker& speaker = out_.speakers[found->second];
  if (speaker.device < 0) speaker.device = record.device;
  return found->second;
}

int32_t Importer::SizeOf(const RasRecord& record) const {
  if (record.size >= 0) return record.size;
  const auto row = size_of_row_.find(record.group);
  return row == size_of_row_.end() ? -1 : row->second;
}

void Importer::KnowGroup(const RasRecord& record) {
  if (record.comm == 0) return;
  const auto [found, fresh] = group_of_.try_emplace(record.comm, out_.groups.size());
  if (fresh) out_.groups.emplace_back().comm_id = record.comm;
  out_.groups[found->second].size = std::max(out_.groups[found->second].size, SizeOf(record));
}

LaunchCounts& Importer::CountsOf(const RasRecord& record) {
  // A majority has no rank: each such line is an entry of its own.
  const auto [found, fresh] = record.rank < 0
                                  ? std::pair(counts_of_.end(), true)
                                  : counts_of_.try_emplace({record.comm, record.rank}, out_.launch_counts.size());
  if (fresh) {
    LaunchCounts& counts = out_.launch_counts.emplace_back();
    std::fill(std::begin(counts.counts), std::end(counts.counts), -1);
    counts.comm = record.comm;
    counts.comm_size = SizeOf(record);
    counts.group_rank = {record.rank};
    counts.source = record.source;
    counts.wall_ns = record.wall_ns;
  }
  LaunchCounts& counts = fresh ? out_.launch_counts.back() : out_.launch_counts[found->second];
  if (counts.pid < 0) counts.pid = record.pid;
  if (counts.device < 0) counts.device = record.device;
  if (counts.host.empty() && record.host != "unknown") counts.host = JsonReader::Unescape(record.host);
  return counts;
}

Event& Importer::AddEvent(EventKind kind, const RasRecord& record) {
  Event& event = out_.events.emplace_back();
  event.kind = kind;
  event.speaker = SpeakerOf(record);
  event.wall_ns = record.wall_ns;
  event.source = record.source;
  event.comm = record.comm;
  event.group_rank = {record.rank};
  event.pid = record.pid;
  return event;
}

Event& Importer::AddReport(EventKind kind, const RasRecord& record) {
  Event& event = AddEvent(kind, record);
  auto& report = event.Make<RasReport>();
  if (record.kind != RasKind::answer) report.times = record.count;
  return event;
}

void Importer::ImportCounts(const RasRecord& record) {
  LaunchCounts& counts = CountsOf(record);
  SpeakerOf(record);
  counts.status = record.status;
  for (const RasCount& count : record.counts) {
    const OpKind kind = ParseOpKind(count.op);
    if (kind == OpKind::unknown) continue;
    counts.counts[static_cast<size_t>(kind)] = std::max<int64_t>(count.launched, 0);
    counts.lines[static_cast<size_t>(kind)] = count.source.line;
    counts.offsets[static_cast<size_t>(kind)] = count.source.offset;
  }
  // 0 is success and 7 in progress; anything else is an error code.
  for (const int64_t code : {record.value, record.value2})
    if (code > 0 && code != 7) ImportError(record, code, ResultWords(code));
  if (record.status == "ABORT") AddEvent(EventKind::comm_aborted, record).Make<CommunicatorEnd>();
}

void Importer::ImportAbsent(const RasRecord& record) {
  LaunchCounts& counts = CountsOf(record);
  counts.dead = record.dead || dead_.contains({record.host, record.pid});
  counts.responsive = !record.unresponsive && !counts.dead;
  if (counts.responsive) counts.status = "NOCOMM";
  const EventKind kind = counts.dead         ? EventKind::ras_rank_dead
                         : counts.responsive ? EventKind::ras_rank_missing
                         : record.pid >= 0   ? EventKind::ras_rank_unresponsive
                                             : EventKind::ras_rank_missing;
  Event& event = AddReport(kind, record);
  event.text = kind == EventKind::ras_rank_dead           ? "RAS considers the process of this rank dead"
               : kind == EventKind::ras_rank_unresponsive ? "the process of this rank does not answer RAS"
               : counts.responsive ? "the process of this rank answers, but does not have this communicator"
                                   : "no data from this rank";
}

void Importer::ImportLaunched(const RasRecord& record) {
  LaunchCounts& counts = CountsOf(record);
  if (record.count > 1) counts.ranks = static_cast<int32_t>(std::min<int64_t>(record.count, INT32_MAX));
  SpeakerOf(record);
  const OpKind kind = ParseOpKind(record.op);
  if (kind == OpKind::unknown) counts.all_kinds = record.value;
  if (kind != OpKind::unknown) counts.counts[static_cast<size_t>(kind)] = record.value;
}

void Importer::ImportStatus(const RasRecord& record) {
  if (record.status == "NOCOMM" || record.status == "UNKNOWN") {
    if (record.rank >= 0) ImportAbsent(record);
    return;
  }
  LaunchCounts& counts = CountsOf(record);
  if (record.count > 1) counts.ranks = static_cast<int32_t>(std::min<int64_t>(record.count, INT32_MAX));
  SpeakerOf(record);
  counts.status = record.status;
  if (record.status == "ABORT" && record.rank >= 0) AddEvent(EventKind::comm_aborted, record).Make<CommunicatorEnd>();
}

void Importer::ImportError(const RasRecord& record, int64_t code, std::string_view words) {
  Event& event = AddEvent(EventKind::nccl_error, record);
  event.Make<NcclError>() = {code, std::string(words), ""};
  event.text = "NCCL RAS: this rank reported " + std::string(words);
}

void Importer::ImportProcess(const RasRecord& record) {
  const bool dead = record.kind == RasKind::process_dead;
  Event& event = AddReport(dead ? EventKind::ras_rank_dead : EventKind::ras_rank_unresponsive, record);
  event.text = dead ? "RAS considers the process dead (unreachable via the RAS network)"
                    : "no communicator data from the process";
}

// PEER_TIMEOUT_DEAD and PEER_DEAD tell of one death from two sides. A closed connection is no death yet: processes that
// end in order close theirs too.
void Importer::ImportPeerEvent(const RasRecord& record) {
  const bool dead = record.text == "PEER_DEAD" || record.text == "PEER_TIMEOUT_DEAD";
  const bool silent =
      record.text == "PEER_UNRESPONSIVE" || record.text == "PEER_KEEPALIVE_TIMEOUT" || record.text == "PEER_SEND_STUCK";
  const uint32_t speaker = SpeakerOf(record);
  if (record.text == "PEER_RECOVERED") {
    withdrawn_.insert(withdrawn_.end(), silences_[speaker].begin(), silences_[speaker].end());
    silences_[speaker].clear();
  }
  if (!dead && !silent) return;
  if (silent && speaker != kNobody) silences_[speaker].push_back(out_.events.size());
  Event& event = AddReport(dead ? EventKind::ras_rank_dead : EventKind::ras_rank_unresponsive, record);
  event.Make<RasReport>().event = record.text;
  event.text = JsonReader::Unescape(record.status.substr(0, Event::kMaxText));
  if (record.pid < 0) event.text = JsonReader::Unescape(record.host.substr(0, 100)) + ": " + event.text;
}

void Importer::DropWithdrawn() {
  std::sort(withdrawn_.begin(), withdrawn_.end());
  size_t index = 0;
  std::erase_if(out_.events,
                [&](const Event&) { return std::binary_search(withdrawn_.begin(), withdrawn_.end(), index++); });
}

void Importer::CountAnswers() {
  for (const RasRecord& record : parse_.records) {
    if (record.kind == RasKind::peer_event) continue;
    last_answer_ = std::max(last_answer_, record.answer);
    has_answer_ = true;
  }
}

void Importer::ReadTable() {
  for (const RasRecord& record : parse_.records) {
    if (record.answer != last_answer_ || record.kind == RasKind::peer_event) continue;
    if (record.kind == RasKind::group_row) size_of_row_[record.group] = record.size;
    if (record.kind == RasKind::job_size) job_gpus_ = record.value;
    if (record.kind == RasKind::process_dead && record.pid >= 0) dead_.insert({record.host, record.pid});
  }
  NameMissingRank();
}

// NCCL before 2.26 lists missing ranks by number only. Where one process is silent and one rank missing, they are the
// same.
void Importer::NameMissingRank() {
  const RasRecord* silent = nullptr;
  size_t processes = 0;
  std::map<uint64_t, std::vector<RasRecord*>> absent;
  for (RasRecord& record : parse_.records) {
    if (record.answer != last_answer_) continue;
    if ((record.kind == RasKind::process_silent || record.kind == RasKind::process_dead) && record.pid >= 0) {
      silent = &record;
      ++processes;
    }
    if (record.kind == RasKind::rank_absent && record.unresponsive) absent[record.comm].push_back(&record);
  }
  if (processes != 1) return;
  for (auto& [comm, ranks] : absent) {
    if (ranks.size() != 1 || ranks[0]->pid >= 0) continue;
    ranks[0]->pid = silent->pid;
    ranks[0]->host = silent->host;
    ranks[0]->device = silent->device;
  }
}

void Importer::ImportRecord(const RasRecord& record, bool listed_below) {
  KnowGroup(record);
  switch (record.kind) {
    case RasKind::answer:
      if (!record.text.empty())
        AddEvent(EventKind::nccl_version, record).Make<Version>().number = JsonReader::Unescape(record.text);
      break;
    case RasKind::rank_counts: ImportCounts(record); break;
    case RasKind::rank_absent: ImportAbsent(record); break;
    case RasKind::rank_launched: ImportLaunched(record); break;
    case RasKind::ranks_launched:
      if (!listed_below) ImportLaunched(record);
      break;
    case RasKind::rank_status: ImportStatus(record); break;
    case RasKind::ranks_status:
      if (!listed_below) ImportStatus(record);
      break;
    case RasKind::rank_error: ImportError(record, ResultCode(record.text), record.text); break;
    case RasKind::ranks_error:
      if (!listed_below) ImportError(record, ResultCode(record.text), record.text);
      break;
    case RasKind::process_silent:
    case RasKind::process_dead: ImportProcess(record); break;
    case RasKind::timeouts:
      out_.Note(
          DiagnosticSeverity::note, "ras-timeouts",
          "RAS met " + std::to_string(record.count) + " timeouts while gathering this answer: data may be missing",
          record.source);
      break;
    case RasKind::no_communicators:
      out_.Note(DiagnosticSeverity::note, "ras-no-communicators", "RAS knew of no communicator when it was asked",
                record.source);
      break;
    case RasKind::refusal:
      out_.Note(DiagnosticSeverity::warning, "ras-refused",
                "the RAS server refused a command: " + std::string(record.text.substr(0, 200)), record.source,
                "NCCL before 2.28.7 has no JSON form; ask for text");
      break;
    case RasKind::peer_event: ImportPeerEvent(record); break;
    case RasKind::job_size:
    case RasKind::group_row: break;
  }
}

void Importer::NoteEarlierAnswers() {
  if (last_answer_ == 0) return;
  out_.Note(DiagnosticSeverity::note, "ras-earlier-answers",
            "the file holds " + std::to_string(last_answer_ + 1) + " answers; the state is that of the last one");
}

void Importer::Run() {
  CountAnswers();
  ReadTable();
  for (size_t i = 0; i < parse_.records.size(); ++i) {
    const RasRecord& record = parse_.records[i];
    if (record.kind != RasKind::peer_event && record.answer != last_answer_) continue;
    const bool group = record.kind == RasKind::ranks_launched || record.kind == RasKind::ranks_status ||
                       record.kind == RasKind::ranks_error;
    // "Missing communicator data from 3 job processes" only counts when they are not named below it.
    const bool process_count =
        (record.kind == RasKind::process_silent || record.kind == RasKind::process_dead) && record.pid < 0;
    if (process_count && i + 1 < parse_.records.size() && parse_.records[i + 1].kind == record.kind &&
        parse_.records[i + 1].pid >= 0)
      continue;
    ImportRecord(record, group && MembersFollow(i));
  }
  DropWithdrawn();
  int32_t largest = -1;
  for (const auto& [row, size] : size_of_row_) largest = std::max(largest, size);
  NameRasRanks(job_gpus_, largest, out_);
  if (last_answer_ > 0) CompareRasAnswers(parse_.records, last_answer_ - 1, out_);
  NoteEarlierAnswers();
}

}  // namespace

void ImportRas(const FileView& file, Fragment& out) {
  RasParse parse = ParseRas(file.bytes);
  out.bytes = {file.bytes.size(), parse.understood, parse.ignored, parse.not_understood};
  if (parse.truncated)
    out.Note(DiagnosticSeverity::warning, "truncated", "the answer ends early: ranks after the cut are unknown", {},
             "ask again and read until the server closes the connection");
  else if (parse.not_understood > 0)
    out.Note(DiagnosticSeverity::note, "not-understood", "some lines have an unknown form",
             {FileId{}, 0, parse.first_unknown});
  Importer(std::move(parse), out).Run();
}

}  // namespace tacet
