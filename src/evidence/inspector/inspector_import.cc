// SPDX-License-Identifier: Apache-2.0
#include "evidence/inspector/inspector_import.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "base/line_reader.h"
#include "evidence/inspector/inspector_parse.h"

namespace tacet {
namespace {

int64_t MicrosToNanos(int64_t us) { return us < 0 || us > INT64_MAX / 1000 ? kNoTime : us * 1000; }

class Importer {
 public:
  explicit Importer(Fragment& out) : out_(out) {}

  void Import(const InspectorRecord& record) {
    const uint32_t speaker = SpeakerOf(record);
    const size_t group = GroupOf(record);
    places_[speaker].emplace(group, record.rank);
    dropped_ = std::max(dropped_, record.dropped);  // the counters only grow
    if (!record.has_operation) return;
    Measurement& measured = out_.measurements.emplace_back();
    measured.speaker = speaker;
    measured.comm = record.comm;
    measured.comm_size = record.ranks;
    measured.group_rank = {record.rank};
    measured.op = KindOf(record.op);
    measured.peer = {record.peer};
    measured.seq = record.seq;
    measured.bytes = record.bytes;
    // Not a number and beyond all measure count as unknown.
    if (record.duration_us >= 0 && record.duration_us < 9e15)
      measured.duration_ns = static_cast<int64_t>(record.duration_us * 1000);
    measured.start_wall_ns = MicrosToNanos(record.start_us);
    measured.finish_wall_ns = MicrosToNanos(record.finish_us);
    measured.enter_wall_ns = MicrosToNanos(record.enter_us);
    measured.bus_gbs = record.bus_gbs >= 0 ? record.bus_gbs : -1;
    measured.host_timed = !record.timing_source.empty() && record.timing_source != "kernel_gpu";
    measured.source = record.source;
    MendLength(measured);
    if (measured.enter_wall_ns == kNoTime && measured.start_wall_ns == kNoTime && record.dumped_us >= 0)
      untimed_[speaker].emplace_back(MicrosToNanos(record.dumped_us), out_.measurements.size() - 1);
  }

  void Finish() {
    NameRanks();
    for (const auto& [speaker, writes] : untimed_) EstimateTimes(writes);
    if (dropped_ > 0)
      out_.Note(DiagnosticSeverity::note, "records-dropped",
                "the Inspector overwrote " + std::to_string(dropped_) + " operations before it could write them", {},
                "raise NCCL_INSPECTOR_DUMP_COLL_RING_SIZE, or write more often");
  }

 private:
  using Writes = std::vector<std::pair<int64_t, size_t>>;  // when a record was written, and its measurement

  // NCCL hands out the GPU's times by a count of kernels, which sends and receives that run as one kernel put out of
  // step. No kernel runs for longer than from the host's call to the moment in which its end was noticed.
  static void MendLength(Measurement& measured) {
    constexpr int64_t kSlackNs = 1'000'000;
    int64_t in_flight = 0, noticed = 0;
    if (measured.enter_wall_ns == kNoTime || measured.start_wall_ns == kNoTime || measured.finish_wall_ns == kNoTime ||
        __builtin_sub_overflow(measured.finish_wall_ns, measured.enter_wall_ns, &in_flight) ||
        __builtin_sub_overflow(measured.finish_wall_ns, measured.start_wall_ns, &noticed))
      return;
    if (in_flight < 0 || noticed <= 0 || measured.duration_ns - kSlackNs <= in_flight) return;
    if (measured.bus_gbs > 0)
      measured.bus_gbs *= static_cast<double>(measured.duration_ns) / static_cast<double>(noticed);
    measured.duration_ns = noticed;
    measured.host_timed = true;
  }

  // Without the verbose form a record says only when it was written, together with all that ended since the last time.
  // Spread evenly over that time, operations keep their order, and many of them together their true length.
  void EstimateTimes(const Writes& writes) {
    constexpr int64_t kOneWriteNs = 20'000'000;  // records of one write follow each other within this
    std::vector<std::pair<int64_t, Writes::const_iterator>> turns;  // end of a write, and its first record
    for (auto at = writes.begin(); at != writes.end(); ++at) {
      if (at->first == kNoTime) return;
      if (!turns.empty() && at->first < turns.back().first) return;  // not in order: nothing to build on
      if (turns.empty() || at->first > turns.back().first + kOneWriteNs) {
        turns.emplace_back(at->first, at);
      } else {
        turns.back().first = at->first;
      }
    }
    for (size_t i = 1; i < turns.size(); ++i) {
      const auto first = turns[i].second, end = i + 1 < turns.size() ? turns[i + 1].second : writes.end();
      const int64_t since = turns[i - 1].first, length = turns[i].first - since, count = end - first;
      for (auto at = first; at != end; ++at) {
        Measurement& measured = out_.measurements[at->second];
        measured.enter_wall_ns = since + length / count * (at - first);
        measured.enter_is_estimate = true;
      }
    }
  }

  // The same few names come a million times.
  OpKind KindOf(std::string_view name) {
    if (name != last_name_) {
      last_name_ = name;
      last_kind_ = ParseOpKind(name);
    }
    return last_kind_;
  }

  uint32_t SpeakerOf(const InspectorRecord& record) {
    if (record.pid == last_pid_ && record.host == last_host_ && !out_.speakers.empty()) return last_speaker_;
    last_pid_ = record.pid;
    last_host_ = record.host;
    const auto [found, fresh] = speakers_.try_emplace({JsonReader::Unescape(record.host), record.pid},
                                                      static_cast<uint32_t>(out_.speakers.size()));
    if (fresh) {
      Speaker& speaker = out_.speakers.emplace_back();
      speaker.host = found->first.first;
      speaker.pid = record.pid;
      places_.emplace_back();
    }
    return last_speaker_ = found->second;
  }

  size_t GroupOf(const InspectorRecord& record) {
    if (!out_.groups.empty() && out_.groups[last_group_].comm_id == record.comm) return last_group_;
    const auto [found, fresh] = groups_.try_emplace(record.comm, out_.groups.size());
    if (fresh) {
      Group& group = out_.groups.emplace_back();
      group.comm_id = record.comm;
      group.size = record.ranks;
      if (record.comm_name != "unknown") group.description = JsonReader::Unescape(record.comm_name);
    }
    return last_group_ = found->second;
  }

  // One file is one process as a rule, and no process knows how large the job is: its largest communicator may be the
  // job or a part of it. So its rank there is assumed. It is stated where the communicator is the framework's default
  // group, or where files were joined and the communicator holds every process in them.
  void NameRanks() {
    for (uint32_t i = 0; i < out_.speakers.size(); ++i) {
      int32_t largest = -1;
      for (const auto& [group, rank] : places_[i]) largest = std::max(largest, out_.groups[group].size);
      std::set<int32_t> ranks;
      bool stated = false;
      for (const auto& [group, rank] : places_[i]) {
        if (out_.groups[group].size != largest) continue;
        ranks.insert(rank);
        stated |= out_.groups[group].description == "default_pg";
        stated |= out_.speakers.size() > 1 && out_.speakers.size() == static_cast<size_t>(std::max(largest, 0));
      }
      if (largest < 1 || ranks.size() != 1 || *ranks.begin() < 0) continue;
      out_.speakers[i].rank = {*ranks.begin()};
      out_.speakers[i].rank_certainty = stated ? Certainty::stated : Certainty::assumed;
      if (stated) out_.speakers[i].world_size = largest;
    }
  }

  Fragment& out_;
  std::map<std::pair<std::string, int64_t>, uint32_t> speakers_;
  std::map<uint64_t, size_t> groups_;
  std::vector<std::map<size_t, int32_t>> places_;  // speaker -> group -> rank in it
  std::map<uint32_t, Writes> untimed_;
  int64_t dropped_ = 0;
  std::string_view last_host_, last_name_;
  int64_t last_pid_ = -1;
  uint32_t last_speaker_ = 0;
  size_t last_group_ = 0;
  OpKind last_kind_ = OpKind::unknown;
};

}  // namespace

void ImportInspector(const FileView& file, Fragment& out) {
  out.bytes = {.total = file.bytes.size()};
  Importer importer(out);
  LineReader lines(file.bytes);
  SourceRef first_foreign;
  InspectorRecord record;
  for (std::string_view line; lines.Next(&line);) {
    record.source = {FileId{}, lines.number(), lines.offset()};
    switch (ParseInspectorLine(line, &record)) {
      case InspectorLine::record:
        importer.Import(record);
        out.bytes.understood += lines.line_bytes();
        break;
      case InspectorLine::blank: out.bytes.ignored += lines.line_bytes(); break;
      case InspectorLine::foreign:
        if (out.bytes.not_understood == 0) first_foreign = record.source;
        out.bytes.not_understood += lines.line_bytes();
        break;
      case InspectorLine::cut:
        out.bytes.not_understood += lines.line_bytes();
        out.Note(DiagnosticSeverity::note, "truncated", "a record ends early: the process was stopped while it wrote",
                 record.source);
        break;
    }
  }
  if (first_foreign.line > 0)
    out.Note(DiagnosticSeverity::note, "not-understood", "some lines are not records of the Inspector", first_foreign);
  importer.Finish();
}

}  // namespace tacet
