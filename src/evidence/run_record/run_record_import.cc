// SPDX-License-Identifier: Apache-2.0
#include "evidence/run_record/run_record_import.h"

#include <algorithm>
#include <csignal>
#include <ctime>

#include "base/signal_name.h"
#include "base/text_scan.h"
#include "evidence/run_record/run_record_parse.h"

namespace tacet {
namespace {

// No job has more; a larger number in the file is not believed.
constexpr int64_t kLargestRank = 10'000'000;

TaskState StateFrom(std::string_view name) {
  if (name == "running") return TaskState::running;
  if (name == "stopped") return TaskState::stopped;
  if (name == "uninterruptible") return TaskState::uninterruptible;
  if (name == "zombie") return TaskState::zombie;
  if (name == "gone") return TaskState::gone;
  return TaskState::unknown;
}

SourceRef PlaceIn(std::string_view text, size_t offset) {
  SourceRef source;
  source.line = static_cast<uint32_t>(1 + std::count(text.begin(), text.begin() + static_cast<long>(offset), '\n'));
  source.offset = offset;
  return source;
}

void AddProcess(const WatchRecord& record, const WatchedProcess& process, SourceRef source, Fragment& out) {
  const auto speaker = static_cast<uint32_t>(out.speakers.size());
  Speaker& who = out.speakers.emplace_back();
  who.host = record.host;
  who.pid = process.pid;
  if (process.rank >= 0 && process.rank <= kLargestRank) {
    who.rank = Rank{static_cast<int32_t>(process.rank)};
    who.rank_certainty = Certainty::stated;
  }
  if (record.world_size > 0 && record.world_size <= kLargestRank) who.world_size = record.world_size;
  const TaskState state = StateFrom(process.state);
  // A black box has a pulse of its own, finer than this one.
  if (!process.has_box && process.running_until_wall_ns > 0) {
    Pulse& pulse = out.pulses.emplace_back();
    pulse.speaker = speaker;
    pulse.pid = process.pid;
    pulse.start_jiffies = static_cast<uint64_t>(process.start_jiffies);
    pulse.last_beat_wall_ns = process.running_until_wall_ns;
    pulse.interval_ns = 1'000'000'000;
    pulse.source = source;
  }
  if (state == TaskState::unknown || state == TaskState::running || record.looked_wall_ns <= 0) return;
  Sight& sight = out.sights.emplace_back();
  sight.speaker = speaker;
  sight.rank = who.rank;
  sight.pid = process.pid;
  sight.start_jiffies = static_cast<uint64_t>(process.start_jiffies);
  sight.state = state;
  sight.since_wall_ns = process.running_until_wall_ns > 0 ? process.running_until_wall_ns : record.looked_wall_ns;
  sight.seen_wall_ns = record.looked_wall_ns;
  sight.source = source;
}

// The watch of a run is a watchdog like PyTorch's, and the rules know what such a one means.
void AddStandstill(const WatchRecord& record, Fragment& out) {
  if (record.still_ms < 0) return;
  Event& event = out.events.emplace_back();
  event.kind = EventKind::watchdog_timeout;
  event.speaker = kNobody;
  event.wall_ns = record.looked_wall_ns > 0 ? record.looked_wall_ns : kNoTime;
  auto& timeout = event.Make<WatchdogTimeout>();
  timeout.timeout_ms = std::max<int64_t>(record.limit_ms, 0);
  timeout.elapsed_ms = record.still_ms;
  event.source = PlaceIn({}, 0);
  event.text = "no rank has made progress for " + std::to_string(record.still_ms / 1000) + " s; " +
               std::to_string(timeout.timeout_ms / 1000) + " s would have been tolerated";
}

// 2026-11-17T17:03:51.655911415Z, to the second. 0 where it is no time.
int64_t WallOf(const std::string& text) {
  std::tm broken{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &broken) == nullptr) return 0;
  return static_cast<int64_t>(::timegm(&broken)) * 1'000'000'000;
}

// Somebody pressed Ctrl-C, or a scheduler sent SIGTERM: the job did not fail. A hang that was seen before explains it.
void AddStopOnRequest(const EndRecord& record, Fragment& out) {
  if (record.hung || record.exit_code == 0) return;
  constexpr int64_t kShellBase = 128;
  const int64_t number = record.stop_signal > 0          ? record.stop_signal
                         : record.signal > 0             ? record.signal
                         : record.exit_code > kShellBase ? record.exit_code - kShellBase
                                                         : 0;
  const std::string_view name = SignalName(number);
  Event& event = out.events.emplace_back();
  event.speaker = kNobody;
  event.kind = EventKind::scheduler_kill;
  auto& end = event.Make<OutsideEnd>();
  end.why = SchedulerKill::signal;
  end.by = name;
  event.text = "stopped on request" + (name.empty() ? std::string() : ": " + std::string(name));
  const int64_t wall_ns = WallOf(record.stop_requested_at.empty() ? record.ended_at : record.stop_requested_at);
  if (wall_ns > 0) event.wall_ns = wall_ns;
}

std::string SignalText(int64_t number) {
  const std::string_view name = SignalName(number);
  return "signal " + std::to_string(number) + (name.empty() ? "" : " (" + std::string(name) + ")");
}

// What the shell would have seen of the whole command. It is no rank's end: it counts where nothing else tells one. The
// file is one long line: the file is cited, and not its line.
void AddRunEnd(const EndRecord& record, Fragment& out) {
  if (!record.ended) return;
  if (record.stopped_on_request) return AddStopOnRequest(record, out);
  Event& event = out.events.emplace_back();
  event.speaker = kNobody;
  if (record.exit_code == 0) {
    event.kind = EventKind::process_finished;
    auto& finish = event.Make<ProcessFinish>();
    finish.said = finish.of_job = true;
    event.text = "exit code 0";
    return;
  }
  event.kind = EventKind::process_killed;
  auto& end = event.Make<ProcessEnd>();
  end.code = record.exit_code;
  end.sentence = record.signal > 0 ? "the job was ended by " + SignalText(record.signal)
                                   : "the job ended with exit code " + std::to_string(record.exit_code);
  event.text = record.signal > 0 ? SignalText(record.signal) : "exit code " + std::to_string(record.exit_code);
  // Of a kill it is asked how long the output had stopped by then; who exits does so in its own time.
  const bool killed = record.signal == SIGKILL || record.signal == SIGTERM || record.signal == SIGINT;
  if (const int64_t wall_ns = WallOf(record.ended_at); killed && wall_ns > 0) event.wall_ns = wall_ns;
}

}  // namespace

void ImportRunRecord(const FileView& file, Fragment& out) {
  out.bytes.total = file.bytes.size();
  if (SchemaOf(file.bytes) == "tacet.manifest.v1") {
    out.tops_a_run = Contains(file.bytes.substr(0, 200), "\"kind\":\"run\"");
    EndRecord end;
    if (out.tops_a_run && ParseRunEnd(file.bytes, &end)) {
      out.bytes.understood = file.bytes.size();
      AddRunEnd(end, out);
      return;
    }
  }
  if (SchemaOf(file.bytes) != "tacet.watch.v1") {
    out.bytes.ignored = file.bytes.size();
    return;
  }
  WatchRecord record;
  if (!ParseWatchRecord(file.bytes, &record)) {
    out.bytes.not_understood = file.bytes.size();
    out.Note(DiagnosticSeverity::warning, "not-json", "this watch record is not JSON", PlaceIn({}, 0));
    return;
  }
  out.bytes.understood = file.bytes.size();
  for (const WatchedProcess& process : record.processes)
    AddProcess(record, process, PlaceIn(file.bytes, std::min(process.offset, file.bytes.size())), out);
  AddStandstill(record, out);
  if (record.cut || file.cut)
    out.Note(DiagnosticSeverity::warning, "truncated", "this watch record is cut", PlaceIn({}, 0));
}

}  // namespace tacet
