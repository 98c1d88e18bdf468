// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/assembly.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/assembly/aborted_owner.h"
#include "model/assembly/cut_logs.h"
#include "model/assembly/earlier_attempts.h"
#include "model/assembly/event_ties.h"
#include "model/assembly/group_join.h"
#include "model/assembly/handled_errors.h"
#include "model/assembly/identity.h"
#include "model/assembly/job_split.h"
#include "model/assembly/late_finish.h"
#include "model/assembly/local_ranks.h"
#include "model/assembly/survived_setup.h"
#include "model/assembly/timeline_merge.h"
#include "model/assembly/vital_signs.h"
#include "model/events/event_echo.h"
#include "model/rank_room.h"

namespace tacet {
namespace {

// "24 hours", "90 minutes"
std::string HoursOrMinutes(int64_t ns) {
  const int64_t minutes = ns / 60'000'000'000;
  return minutes < 180 ? std::to_string(minutes) + " minutes" : std::to_string((minutes + 30) / 60) + " hours";
}

template <typename T>
void MoveAll(std::vector<T>& from, std::vector<T>& to) {
  if (to.empty()) return to.swap(from);  // of a single large file nothing is held twice
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

std::vector<StringId> JoinStrings(const StringTable& from, StringTable& to) {
  std::vector<StringId> map(from.size());
  for (uint32_t i = 0; i < from.size(); ++i) map[i] = to.Intern(from.Get(static_cast<StringId>(i)));
  return map;
}

std::vector<StackId> JoinStacks(const StackTable& from, const std::vector<StringId>& strings, StackTable& to) {
  std::vector<StackId> map(from.size());
  for (uint32_t i = 0; i < from.size(); ++i) {
    std::vector<Frame> frames = from.Get(static_cast<StackId>(i));
    for (Frame& frame : frames) {
      frame.function = strings[static_cast<uint32_t>(frame.function)];
      frame.file = strings[static_cast<uint32_t>(frame.file)];
    }
    map[i] = to.Intern(std::move(frames));
  }
  return map;
}

GroupIndex MapGroup(GroupIndex local, const std::vector<GroupIndex>& groups) {
  return local == GroupIndex::none ? local : groups[static_cast<uint32_t>(local)];
}

void RenumberSetup(NcclSetup& setup, FileId file, const std::vector<StringId>& strings) {
  const auto map = [&](StringId& id) { id = strings[static_cast<uint32_t>(id)]; };
  setup.source.file = file;
  map(setup.version);
  map(setup.host);
  map(setup.bus_id);
  for (StringId& row : setup.system_rows) map(row);
  for (StringId& row : setup.path_rows) map(row);
  for (NcclGraphSearch& graph : setup.graphs) {
    graph.source.file = file;
    for (StringId& row : graph.rows) map(row);
  }
  for (NcclTuningTable& table : setup.tables) {
    table.source.file = file;
    for (SourceRef& row : table.row_sources) row.file = file;
  }
  for (NcclLoggedChoice& choice : setup.choices) {
    choice.source.file = file;
    map(choice.kernel);
    map(choice.variant);
  }
}

class JobBuilder {
 public:
  JobBuilder(Incident& incident, RankRoom& room) : incident_(incident), room_(room), groups_(incident) {}

  void Take(Fragment& fragment, const std::vector<uint32_t>& processes) {
    const auto file = static_cast<FileId>(incident_.files.size());
    InputFile input{fragment.path, fragment.format, Rank{}, fragment.bytes, fragment.modified_wall_ns, fragment.stub};
    if (processes.size() == 1) input.rank = incident_.processes[processes[0]].rank;
    incident_.files.push_back(std::move(input));
    for (const uint32_t process : processes) incident_.processes[process].files.push_back(file);

    const auto strings = JoinStrings(fragment.strings, incident_.strings);
    const auto stacks = JoinStacks(fragment.stacks, strings, incident_.stacks);
    const auto groups = groups_.Join(fragment);
    const auto who = [&](uint32_t speaker) { return speaker < processes.size() ? processes[speaker] : kNobody; };
    const auto rank_of = [&](uint32_t process) {
      return process == kNobody ? Rank{} : incident_.processes[process].rank;
    };

    for (CallStream& stream : fragment.streams) {
      stream.speaker = who(stream.speaker);
      stream.rank = rank_of(stream.speaker);
      stream.file = file;
      for (Call& call : stream.calls) {
        call.group = MapGroup(call.group, groups);
        call.name = strings[static_cast<uint32_t>(call.name)];
        call.shape = strings[static_cast<uint32_t>(call.shape)];
        call.stack = stacks[static_cast<uint32_t>(call.stack)];
      }
      for (GroupProgress& progress : stream.progress) progress.group = MapGroup(progress.group, groups);
    }
    for (ThreadStack& thread : fragment.threads) {
      thread.speaker = who(thread.speaker);
      thread.rank = rank_of(thread.speaker);
      thread.source.file = file;
      thread.stack = stacks[static_cast<uint32_t>(thread.stack)];
    }
    for (Event& event : fragment.events) {
      event.source.file = file;
      event.speaker = event.speaker == kNobody ? kNobody : who(event.speaker);
      if (!event.rank.known()) event.rank = rank_of(event.speaker);
    }
    for (LaunchCounts& counts : fragment.launch_counts) counts.source.file = file;
    for (Measurement& measurement : fragment.measurements) {
      measurement.source.file = file;
      measurement.speaker = who(measurement.speaker);
      measurement.rank = rank_of(measurement.speaker);
    }
    for (Timeline& timeline : fragment.timelines) {
      timeline.speaker = who(timeline.speaker);
      timeline.rank = rank_of(timeline.speaker);
      timeline.file = file;
      for (TraceCollective& collective : timeline.collectives) collective.group = MapGroup(collective.group, groups);
    }
    for (PipelineTrace& trace : fragment.pipeline_traces) trace.file = file;
    for (BenchmarkRun& run : fragment.benchmark_runs) {
      for (SourceRef* place : {&run.source, &run.summary, &run.failed_at}) place->file = file;
      for (BenchmarkLine& line : run.lines) line.source.file = file;
      for (BenchmarkMatrix& matrix : run.matrices) matrix.source.file = file;
    }
    for (TrainingRecord& training : fragment.training) {
      for (SourceRef* place :
           {&training.source, &training.loss.run_source, &training.gradient.run_source, &training.zero_loss.source,
            &training.same_gradient.source, &training.scale.first, &training.scale.last})
        place->file = file;
      for (StepTime& time : training.times) time.source.file = file;
    }
    for (EarlierRun& run : fragment.earlier_runs) run.source.file = file;
    for (LogOutline& outline : fragment.outlines) {
      for (SourceRef* place :
           {&outline.last_source, &outline.error_source, &outline.last_error, &outline.ended_source,
            &outline.saved.source, &outline.trained.source, &outline.served.source, &outline.stopped.source})
        place->file = file;
      for (LineOfRank& one : outline.last_of_ranks) one.source.file = file;
      for (LineOfRank& one : outline.joining) one.source.file = file;
      for (LineOfRank& one : outline.at_work) one.source.file = file;
      for (auto* lines : {&outline.own_lines, &outline.first_lines, &outline.barriers, &outline.outsiders})
        for (OwnLine& one : *lines) one.source.file = file;
      for (SeenWarning& one : outline.harmless) one.source.file = file;
      for (StepShare& one : outline.steps) one.source.file = file;
      for (RankValue& one : outline.values) one.source.file = file;
      for (FigureSeries& one : outline.series)
        one.last.file = one.value.run_source.file = one.value.far_source.file = file;
      for (StepDecimal& one : outline.decimals) one.source.file = file;
      GiveRank(outline, processes);
      for (GroupRate& one : outline.rates) one.source.file = file;
      for (PairRate& one : outline.pairs) one.source.file = file;
      for (Utilization& one : outline.utilizations) one.source.file = file;
    }
    for (InFlight& flight : fragment.in_flight) {
      flight.speaker = who(flight.speaker);
      flight.rank = rank_of(flight.speaker);
      flight.group = MapGroup(flight.group, groups);
      flight.source.file = file;
    }
    for (Pulse& pulse : fragment.pulses) {
      pulse.speaker = who(pulse.speaker);
      pulse.rank = rank_of(pulse.speaker);
      pulse.source.file = file;
    }
    for (Sight& sight : fragment.sights) {
      sight.speaker = who(sight.speaker);
      sight.source.file = file;
    }
    for (NcclSetup& setup : fragment.nccl_setups) {
      setup.speaker = who(setup.speaker);
      setup.rank = rank_of(setup.speaker);
      setup.group = MapGroup(setup.group, groups);
      RenumberSetup(setup, file, strings);
    }
    const auto transports = JoinTransports(fragment.transports);
    for (RankChannels& channels : fragment.rank_channels) {
      channels.speaker = who(channels.speaker);
      channels.rank = rank_of(channels.speaker);
      channels.group = MapGroup(channels.group, groups);
      channels.file = file;
      for (ChannelUse& use : channels.uses) use.transport = transports[use.transport];
    }
    for (NetDevices& devices : fragment.net_devices) {
      devices.speaker = who(devices.speaker);
      devices.source.file = devices.pxn_source.file = file;
    }
    for (Hardware& hardware : fragment.hardware) {
      hardware.speaker = who(hardware.speaker);
      hardware.group = MapGroup(hardware.group, groups);
      hardware.source.file = file;
    }
    for (Diagnostic& diagnostic : fragment.diagnostics) diagnostic.source.file = file;
    MoveAll(fragment.streams, incident_.streams);
    MoveAll(fragment.threads, incident_.threads);
    WriteOutTasks(fragment.events);
    MoveAll(fragment.events, incident_.events);
    MoveAll(fragment.launch_counts, incident_.launch_counts);
    MoveAll(fragment.measurements, incident_.measurements);
    MoveAll(fragment.diagnostics, incident_.diagnostics);
    MoveAll(fragment.timelines, incident_.timelines);
    MoveAll(fragment.pipeline_traces, incident_.pipeline_traces);
    MoveAll(fragment.benchmark_runs, incident_.benchmark_runs);
    MoveAll(fragment.training, incident_.training);
    MoveAll(fragment.outlines, incident_.outlines);
    MoveAll(fragment.earlier_runs, incident_.earlier_runs);
    for (SurvivedError& one : fragment.survived) {
      one.source.file = file;
      one.speaker = who(one.speaker);
    }
    MoveAll(fragment.survived, incident_.survived);
    MoveAll(fragment.in_flight, incident_.in_flight);
    MoveAll(fragment.pulses, incident_.pulses);
    MoveAll(fragment.sights, incident_.sights);
    MoveAll(fragment.nccl_setups, incident_.nccl_setups);
    MoveAll(fragment.rank_channels, incident_.rank_channels);
    MoveAll(fragment.net_devices, incident_.net_devices);
    MoveAll(fragment.hardware, incident_.hardware);
    fragment = Fragment();  // give the memory back early
  }

  void Finish() {
    SettleWorldSize();
    groups_.Finish(room_);
    TieEventsToProcesses(incident_);
    GiveErrorsToTheAborted(incident_);
    DropEchoes(incident_);
    ForgiveHandledErrors(incident_);
    LowerSurvivedSetups(incident_);
    RejectStaleStreams();
    MarkStreamsEndedByError();
    ForgiveLateFinishes(incident_.streams);
    std::stable_sort(incident_.streams.begin(), incident_.streams.end(), [](const auto& a, const auto& b) {
      return std::pair(a.source, a.rank) < std::pair(b.source, b.rank);
    });
    KeepOneStreamPerRank();
    MarkCutLogs(incident_);
    SettleVitalSigns(incident_);
    JoinTracesOfOneRank(incident_.timelines, incident_.diagnostics);
  }

 private:
  std::vector<uint32_t> JoinTransports(std::vector<Transport>& from) {
    std::vector<uint32_t> map(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      const auto [place, is_new] =
          transport_of_text_.try_emplace(from[i].text, static_cast<uint32_t>(incident_.transports.size()));
      if (is_new) incident_.transports.push_back(std::move(from[i]));
      map[i] = place->second;
    }
    return map;
  }

  // "tasks 0-16383: Terminated" is one line: an event for each of them, as far as there is room for so many ranks.
  void WriteOutTasks(std::vector<Event>& events) {
    size_t told = events.size(), left_out = 0;
    for (size_t i = 0; i < told; ++i) {
      const EventKind kind = events[i].kind;
      if (kind != EventKind::process_exited && kind != EventKind::process_killed && kind != EventKind::oom_kill &&
          kind != EventKind::process_finished)
        continue;
      const std::vector<Rank> ranks = std::exchange(events[i].ranks, {});
      if (ranks.empty()) continue;
      if (!events[i].rank.known()) events[i].rank = ranks.front();
      for (const Rank rank : ranks) {
        if (rank == events[i].rank) continue;
        if (!room_.TakeToldRank()) {
          ++left_out;
          continue;
        }
        events.push_back(events[i]);
        events.back().rank = rank;
      }
    }
    if (left_out > 0)
      incident_.diagnostics.push_back(
          {DiagnosticSeverity::warning,
           "claimed-ranks",
           std::to_string(left_out) +
               " more ranks are reported to have ended, more than so small an input can describe; they are not listed",
           {},
           "give the files of more ranks if the job is that large"});
  }

  struct NamedProcess {
    uint32_t line = 0;
    int64_t pid = -1;
    bool closed = false;
  };

  // The largest number of processes that one attempt had. A restart closes processes that nobody has named before,
  // behind a failure, and another one fails then.
  static size_t LargestAttempt(std::vector<NamedProcess> named) {
    std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
    std::set<int64_t> closed, attempt;
    for (const NamedProcess& one : named)
      if (one.closed) closed.insert(one.pid);
    const auto failed = [&](const NamedProcess& one) { return !one.closed && !closed.contains(one.pid); };
    uint32_t last_failure = 0;  // the line of the last process to fail, where it is first told
    std::set<int64_t> known;
    for (const NamedProcess& one : named)
      if (failed(one) && known.insert(one.pid).second) last_failure = one.line;
    size_t most = 0;
    bool seen_failure = false;
    for (const NamedProcess& one : named) {
      if (one.closed && seen_failure && !attempt.contains(one.pid) && last_failure > one.line) {
        most = std::max(most, attempt.size());
        attempt.clear();
        seen_failure = false;
      }
      seen_failure |= failed(one);
      attempt.insert(one.pid);
    }
    return std::max(most, attempt.size());
  }

  // What the lines of a file do not tell, its name may, or the label that was taken off all of them: "worker.2.out".
  void GiveRank(LogOutline& outline, const std::vector<uint32_t>& processes) const {
    if (processes.size() != 1) return;
    const Process& process = incident_.processes[processes[0]];
    if (!process.rank.known()) return;
    if (process.rank_clue != RankClue::file_name && process.rank_clue != RankClue::label) return;
    for (StepShare& one : outline.steps)
      if (one.rank < 0) one.rank = process.rank.value;
    for (RankValue& one : outline.values)
      if (one.rank < 0) one.rank = process.rank.value;
    for (FigureSeries& one : outline.series)
      if (one.rank < 0) one.rank = process.rank.value;
    for (StepDecimal& one : outline.decimals)
      if (one.rank < 0) one.rank = process.rank.value;
  }

  // A launcher names the processes that it closes, and those that failed before: each of them was a rank.
  int64_t CountLaunched() const {
    std::map<FileId, std::vector<NamedProcess>> pids;
    bool closes = false;
    for (const Event& event : incident_.events) {
      const bool closed = event.kind == EventKind::process_killed;
      const bool failed = event.kind == EventKind::process_exited && event.As<ProcessEnd>().local_rank >= 0;
      if (event.pid > 0 && (closed || failed))
        pids[event.source.file].push_back(NamedProcess{event.source.line, event.pid, closed});
      closes |= closed;
    }
    size_t most = 0;
    for (const auto& [file, named] : pids) most = std::max(most, LargestAttempt(named));
    return closes ? static_cast<int64_t>(most) : -1;
  }

  // One text in which every rank from 0 on marks lines of its own, more than one each: "[rank 2] step 4 ...". A list of
  // GPUs looks the same: something else must tell of ranks.
  int64_t CountMarked(int64_t known) const {
    constexpr size_t kMostMarks = 4096;
    int64_t most = -1;
    if (known <= 0 && std::none_of(incident_.events.begin(), incident_.events.end(), [](const Event& event) {
          return event.Means(Meaning::gloo_timeout) || event.Means(Meaning::gloo_loss);
        }))
      return -1;
    for (const LogOutline& outline : incident_.outlines) {
      std::map<int32_t, size_t> lines;
      for (const OwnLine& line : outline.own_lines)
        if (line.rank >= 0 && !line.local) lines[line.rank] += static_cast<size_t>(line.times);
      const bool all = lines.size() >= 2 && lines.size() <= kMostMarks &&
                       std::cmp_equal(lines.rbegin()->first + 1, lines.size()) &&
                       std::all_of(lines.begin(), lines.end(), [](const auto& one) { return one.second > 1; });
      if (all) most = std::max(most, static_cast<int64_t>(lines.size()));
    }
    return most;
  }

  // "rank=3 world=8", where all who tell it tell the same; and "rank 2/4", where the lines of all of them are here: a
  // group's numbers look the same.
  int64_t StatedWorld() const {
    int64_t stated = -1;
    std::map<int64_t, std::set<int32_t>> counted;  // by the size, who counts so
    for (const LogOutline& outline : incident_.outlines) {
      if (outline.stated_world != -1)
        stated = stated == -1 || stated == outline.stated_world ? outline.stated_world : -2;
      if (outline.world > 0) counted[outline.world].insert(outline.ranks.begin(), outline.ranks.end());
    }
    for (const auto& [world, ranks] : counted)
      if (std::cmp_equal(ranks.size(), world) && *ranks.rbegin() == world - 1) stated = std::max(stated, world);
    return stated;
  }

  void SettleWorldSize() {
    int64_t size = groups_.AgreedSize(incident_.world_size);
    for (const Group& group : incident_.groups) {
      size = std::max<int64_t>({size, static_cast<int64_t>(group.members.size()), group.size});
      for (const Rank rank : group.members) size = std::max<int64_t>(size, rank.value + 1);
    }
    incident_.world_told = size > 0;
    for (const auto& [rank, process] : incident_.process_of) size = std::max<int64_t>(size, rank.value + 1);
    for (const Event& event : incident_.events) {
      const int64_t expected = event.As<Rendezvous>().expected;
      if (expected < (1 << 24)) size = std::max(size, expected), incident_.world_told |= expected > 0;
    }
    if (const int64_t stated = StatedWorld(); stated > 0 && stated >= size && stated < (1 << 24))
      size = stated, incident_.world_told = true;
    // A report may name ranks of which no file is here.
    for (const Event& event : incident_.events) {
      if (event.kind != EventKind::monitored_barrier_failed && event.kind != EventKind::desync_report &&
          event.kind != EventKind::rendezvous_incomplete && event.kind != EventKind::mismatch_report)
        continue;
      // A key of the store may hold the number of something else.
      if (event.kind == EventKind::rendezvous_incomplete && incident_.world_told) continue;
      for (const auto* list : {&event.ranks, &event.As<DesyncReport>().waiting})
        for (const Rank rank : *list)
          if (rank.value < (1 << 24)) size = std::max<int64_t>(size, rank.value + 1);
    }
    // So may one who waited: HCCL tells for which rank.
    for (const Event& event : incident_.events)
      if (event.kind == EventKind::watchdog_timeout && event.peer.known() && event.peer.value < (1 << 24))
        size = std::max<int64_t>(size, event.peer.value + 1);
    if (!incident_.world_told) size = std::max({size, CountLaunched(), CountMarked(size)});
    incident_.world_size = size;
    const auto seen = static_cast<int64_t>(incident_.process_of.size());
    incident_.lists_world = size <= seen || (size <= INT32_MAX && room_.TakeRanks(size - seen));
    if (!incident_.lists_world)
      incident_.diagnostics.push_back(
          {DiagnosticSeverity::warning,
           "claimed-ranks",
           "the job is said to have " + std::to_string(size) +
               " ranks, more than so small an input can describe; only " +
               (seen == 1 ? "the rank that was seen is listed" : "the ranks that were seen are listed"),
           {},
           "give the files of more ranks if the job is that large"});
  }

  // The first call of the run that the newest dump is of: dumps whose times overlap are of one run. A dump that ends
  // before it was written by an earlier run: a rank that could not dump this time leaves its old file behind. Where a
  // dump of the newest run has lost its first calls, nothing can be said.
  int64_t BeginningOfNewestRun() const {
    std::vector<const CallStream*> dumps;
    for (const CallStream& stream : incident_.streams)
      if (stream.source == CallSource::flight_recorder && stream.captured_wall_ns != kNoTime) dumps.push_back(&stream);
    std::sort(dumps.begin(), dumps.end(),
              [](const auto* a, const auto* b) { return a->captured_wall_ns > b->captured_wall_ns; });
    int64_t beginning = INT64_MAX;
    for (const CallStream* dump : dumps) {
      if (beginning != INT64_MAX && dump->captured_wall_ns < beginning) break;
      if (dump->calls.empty()) continue;
      if (!dump->from_start || dump->calls.front().enter_wall_ns == kNoTime) return kNoTime;
      beginning = std::min(beginning, dump->calls.front().enter_wall_ns);
    }
    return beginning == INT64_MAX ? kNoTime : beginning;
  }

  void RejectStaleStreams() {
    std::vector<int64_t> times;
    for (const CallStream& stream : incident_.streams)
      if (stream.captured_wall_ns != kNoTime && stream.source == CallSource::flight_recorder)
        times.push_back(stream.captured_wall_ns);
    if (times.size() < 2) return;
    // The newest moment counts: a job that has just failed is newer than any leftover.
    const int64_t newest = *std::max_element(times.begin(), times.end());
    const int64_t beginning = BeginningOfNewestRun();
    std::erase_if(incident_.streams, [&](const CallStream& stream) {
      if (stream.source != CallSource::flight_recorder || stream.captured_wall_ns == kNoTime) return false;
      if (newest - stream.captured_wall_ns < incident_.patience.stale_ns && stream.captured_wall_ns >= beginning)
        return false;
      incident_.diagnostics.push_back({DiagnosticSeverity::warning, "stale-dump",
                                       "this dump ends " + HoursOrMinutes(newest - stream.captured_wall_ns) +
                                           " before the others: it belongs to another run and is not used",
                                       SourceRef{stream.file, 0, 0},
                                       "delete old dumps before a run, or write them to a folder of the job's own"});
      incident_.files[static_cast<uint32_t>(stream.file)].stub = true;
      return true;
    });
  }

  void MarkStreamsEndedByError() {
    std::set<Rank> hurt;
    for (const Event& event : incident_.events)
      if (event.kind == EventKind::connection_lost && event.rank.known()) hurt.insert(event.rank);
    for (CallStream& stream : incident_.streams) stream.ended_by_error = hurt.contains(stream.rank);
  }

  void KeepOneStreamPerRank() {
    auto& streams = incident_.streams;
    for (size_t i = 0; i + 1 < streams.size();) {
      CallStream& a = streams[i];
      CallStream& b = streams[i + 1];
      if (a.source != b.source || a.rank != b.rank || !a.rank.known()) {
        ++i;
        continue;
      }
      // The longer record tells more; of equals the later one. A box holds a process for good, so of two boxes the
      // later one is of the later attempt, and the other's story is over.
      const bool keep_second = a.source == CallSource::black_box ? b.captured_wall_ns >= a.captured_wall_ns
                                                                 : std::pair(b.calls.size(), b.captured_wall_ns) >=
                                                                       std::pair(a.calls.size(), a.captured_wall_ns);
      const CallStream& dropped = keep_second ? a : b;
      incident_.diagnostics.push_back(
          {DiagnosticSeverity::note, "duplicate-record",
           "rank " + std::to_string(a.rank.value) + " has more than one record of this kind; the fuller one is used",
           SourceRef{dropped.file, 0, 0}, ""});
      streams.erase(streams.begin() + static_cast<ptrdiff_t>(keep_second ? i : i + 1));
    }
  }

  Incident& incident_;
  RankRoom& room_;
  GroupJoin groups_;
  std::map<std::string, uint32_t> transport_of_text_;
};

}  // namespace

std::vector<Incident> Assemble(std::vector<Fragment> fragments, const Patience& patience) {
  std::vector<Incident> incidents;
  uint64_t bytes = 0;
  for (const Fragment& fragment : fragments) bytes += fragment.bytes.total;
  RankRoom room(bytes);
  SetEarlierAttemptsAside(fragments);
  ForgetLonelyNumbers(fragments);
  ShiftLocalRanks(fragments);
  NameLocalRanks(fragments);
  for (JobPart& part : SplitJobs(fragments)) {
    Incident& incident = incidents.emplace_back();
    incident.label = part.label;
    incident.patience = patience;
    const SpeakerMap speakers = JoinSpeakers(fragments, part.members, incident);
    JobBuilder builder(incident, room);
    size_t events = 0;
    for (const size_t member : part.members) events += fragments[member].events.size();
    incident.events.reserve(events);
    for (size_t m = 0; m < part.members.size(); ++m) builder.Take(fragments[part.members[m]], speakers[m]);
    builder.Finish();
  }
  return incidents;
}

}  // namespace tacet
