// SPDX-License-Identifier: Apache-2.0
#include "report/rank_table.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <set>

#include "analysis/process/job_end.h"
#include "analysis/timeouts/timeout_census.h"
#include "analysis/timeouts/watchdog_waits.h"
#include "model/rank_ranges.h"
#include "report/rank_words.h"
#include "rules/words/timeout_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

std::string Clock(int64_t wall_ns) {
  if (wall_ns == kNoTime) return "";
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[16];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

// What a group is called in the table: where a few have the same description, with its members. Else ranks that are in
// different groups would seem to be in one operation.
class GroupLabels {
 public:
  explicit GroupLabels(const Incident& incident) : incident_(incident) {
    for (const Group& group : incident.groups)
      if (auto& lists = members_[group.Label()]; !group.members.empty() && lists.size() <= kMostApart)
        lists.insert(group.members);
  }
  std::string Of(GroupIndex index) const {
    const Group& group = incident_.groups[static_cast<uint32_t>(index)];
    std::string label = group.Label();
    const size_t namesakes = members_.at(label).size();
    if (namesakes > 1 && namesakes <= kMostApart && !group.members.empty())
      label += " (" + RankRanges(group.members) + ")";
    return label;
  }

 private:
  static constexpr size_t kMostApart = 4;
  const Incident& incident_;
  std::map<std::string, std::set<std::vector<Rank>>> members_;
};

std::string Describe(const GroupLabels& labels, const Call& call, const CallStream& stream, bool by_op_count) {
  static constexpr const char* kStates[] = {"", ": enqueued", ": started", ": completed"};
  const bool knows_state = stream.knows_finish || (by_op_count && call.state == CallState::started);
  // Each rank counts its own batches of sends and receives: beside each other the numbers would only confuse.
  const bool own_count = call.kind == OpKind::coalesced && call.has(kPointToPoint);
  std::string text = std::string(Name(call.kind)) + (own_count ? "" : " #" + std::to_string(call.seq));
  // Numbers of a log without its beginning are counted from its first line; NCCL's own is what others can compare.
  if (by_op_count && stream.source == CallSource::nccl_log && !stream.from_start && call.record > 0) {
    char number[24];
    std::snprintf(number, sizeof number, " (opCount %x)", call.record);
    text = std::string(Name(call.kind)) + number;
  }
  if (call.group != GroupIndex::none) text += " on " + labels.Of(call.group);
  if (knows_state) text += call.has(kEndedByAbort) ? ": ended by the abort" : kStates[static_cast<size_t>(call.state)];
  return text;
}

// The call in which the verdict says that the rank waits. Messages have numbers of each rank's own.
const Call* CallOfVerdict(const CallStream& stream, const Finding& verdict) {
  if (!verdict.operation || IsPointToPoint(verdict.operation->kind) || !stream.knows_finish) return nullptr;
  const auto found = std::find_if(stream.calls.rbegin(), stream.calls.rend(), [&](const Call& call) {
    return call.kind == verdict.operation->kind && call.seq == verdict.operation->seq && call.group == verdict.group;
  });
  const bool waits = found != stream.calls.rend() && found->state != CallState::completed && !found->has(kPointToPoint);
  return waits ? &*found : nullptr;
}

// The operation that matters most on a rank: the verdict's, else the first unfinished one, else the last issued.
const Call* LastCall(const Incident& incident, const SourceAnalysis& source, Rank rank, const Finding* verdict) {
  const CallStream* stream = incident.StreamOf(rank, source.source);
  if (!stream || stream->calls.empty()) return nullptr;
  if (const Call* call = verdict ? CallOfVerdict(*stream, *verdict) : nullptr) return call;
  const auto blocked = source.waits.blocked_in.find(rank);
  return blocked != source.waits.blocked_in.end() ? blocked->second : &stream->calls.back();
}

// By the first record that knows the rank; another one than the verdict's is named, since it may count differently.
std::string LastOperation(const Incident& incident, const GroupLabels& labels,
                          const std::vector<const SourceAnalysis*>& sources, Rank rank, const Finding* verdict,
                          bool by_op_count) {
  for (const SourceAnalysis* source : sources) {
    const Call* call = LastCall(incident, *source, rank, verdict);
    if (!call) continue;
    std::string text = Describe(labels, *call, *incident.StreamOf(rank, source->source), by_op_count);
    if (source != sources.front()) text += " (" + std::string(RecordWords(source->source)) + ")";
    return text;
  }
  return "";
}

// The operation in the row has no time, and stands further down in the file than the last line that has one.
bool IsOlderThanItsCall(const Incident& incident, const std::vector<const SourceAnalysis*>& sources,
                        const RankLife& life) {
  if (!life.last_event) return false;
  for (const SourceAnalysis* source : sources) {
    const Call* call = LastCall(incident, *source, life.rank, nullptr);
    if (!call) continue;
    const bool timed =
        call->enter_wall_ns != kNoTime || call->start_wall_ns != kNoTime || call->finish_wall_ns != kNoTime;
    return !timed && incident.StreamOf(life.rank, source->source)->file == life.last_event->source.file &&
           call->line > life.last_event->source.line;
  }
  return false;
}

// A group of the job is no larger than the job, so that ranks up to its size exist, though nothing else tells of them.
void ListUnseen(const Incident& incident, const TimeoutCensus& census, std::vector<ReportRank>& rows) {
  constexpr int64_t kMostUnseen = 1024;
  if (incident.world_told || rows.empty()) return;
  int64_t size = 0;
  for (const TimedOutCall& call : census.calls) size = std::max<int64_t>(size, call.group_size);
  if (size > kMostUnseen ||
      std::none_of(rows.begin(), rows.end(), [](const ReportRank& row) { return row.role == "silent"; }))
    return;
  for (int64_t rank = int64_t{rows.back().rank} + 1; rank < size; ++rank) {
    ReportRank row;
    row.rank = static_cast<int>(rank);
    row.role = "silent";
    rows.push_back(std::move(row));
  }
}

// What a rank itself says of an error; what a launcher or the kernel says of it RankLife holds. Connections close at
// the end of any job, and so tell something only of one that failed.
bool IsOwnError(const Event& event, Status status) {
  if (event.kind == EventKind::connection_lost || event.kind == EventKind::store_lost)
    return (status == Status::crash || status == Status::hang) && !event.As<LostPeer>().ends_itself;
  return IsSignOfCrash(event) && event.kind != EventKind::process_exited && event.kind != EventKind::process_killed &&
         event.kind != EventKind::oom_kill && event.kind != EventKind::nccl_warning;
}

// "Received a dump signal due to a collective timeout from rank 1": marked as an error, and none of this rank.
const Event* SignalToDump(const RankLife& life) {
  return life.dump_signal && life.dump_signal->kind == EventKind::dump_signal ? life.dump_signal : nullptr;
}

// NCCL failed in this process: not because of a socket, memory or a peer (codes 2 and 6).
bool IsOwnNcclError(const Event* error) {
  if (!error || error->kind != EventKind::nccl_error) return false;
  const int64_t code = error->As<NcclError>().code;
  return code == 1 || (code >= 3 && code <= 5);
}

// Where a report says that ranks wait.
std::map<Rank, std::string> ReportedWaits(const Incident& incident) {
  std::map<Rank, std::string> waits;
  for (const Event& event : incident.events)
    for (const Rank rank : event.As<DesyncReport>().waiting)
      if (std::string call = ReportedCallWords(event); !call.empty()) waits.emplace(rank, std::move(call));
  return waits;
}

// Nobody blames it, but well it is not: how it ended, that its time was up, that its watchdog stood still.
void FillFate(const RankLife& life, const TimeoutCensus& census, const Event* stuck, ReportRank& row) {
  const TimedOutCall* call = census.Of(life.rank);
  if (life.gloo_timeout && !life.exception && row.role == "ok") {
    row.role = "waits";
    row.doing = "timed out";
  }
  const bool failed = row.role == "ok" || row.role == "waits";
  if (call && failed) {
    row.role = "waits";
    if (row.doing.empty()) row.doing = "timed out";
    if (row.last_operation.empty() && call->op != OpKind::unknown) row.last_operation = TimedOutCallWords(*call);
  }
  if (call && row.role == "guilty" && row.last_operation.empty() && call->op != OpKind::unknown)
    row.last_operation = TimedOutCallWords(*call);
  if (stuck && failed && row.doing.empty()) {
    if (row.role == "ok") row.role.clear();
    row.doing = "watchdog stuck";
  }
  if (row.role == "waits" && row.doing.empty() && life.consequence && life.consequence->Means(Meaning::gloo_timeout))
    row.doing = "timed out";
  if (life.exited && (row.role == "ok" || row.role == "silent" || row.role.empty())) {
    row.role.clear();
    row.doing = EndWords(*life.exited);
  }
  if (life.exception) row.doing = BareWords(life.exception->As<Raised>().type);
  if (row.role == "guilty" && row.doing.empty() && life.exited) row.doing = EndWords(*life.exited);
  if (row.role == "guilty" && row.doing.empty() && life.segfault) row.doing = "segmentation fault";
  if (row.role == "guilty" && row.doing.empty() && call) row.doing = "timed out";
}

// It was killed from outside, or is only reported as timed out: what was done to it is known, not what it did.
bool WasEnded(const RankLife& life) {
  if (life.exception || life.gpu_error) return false;
  return life.oom_killed ||
         (life.exited && (life.exited->As<ProcessEnd>().code == -9 || life.exited->Means(Meaning::timed_out)));
}

// A signal that nobody else sends: an abort, a segmentation fault.
bool EndedByItsOwnSignal(const RankLife& life) {
  const int64_t code = life.exited ? life.exited->As<ProcessEnd>().code : 0;
  return code < 0 && code != -2 && code != -9 && code != -15;
}

// An error that nobody signs may be of any rank of which there is no line.
bool HasUnsignedError(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::nccl_error && !event.rank.known() && event.speaker == kNobody;
  });
}

// Files in which a launcher tells of the first failure, after which it ends the other processes.
std::set<FileId> OutputsOfSpawn(const Incident& incident) {
  std::set<FileId> files;
  for (const Event& event : incident.events)
    if (event.As<Raised>().first_only || event.As<ProcessEnd>().first_only || event.As<PortTaken>().of_spawn)
      files.insert(event.source.file);
  return files;
}

// Ranks that lines name as the ones that print them, whatever they say.
std::set<Rank> PrintingRanks(const Incident& incident) {
  std::set<Rank> ranks;
  for (const LogOutline& one : incident.outlines)
    for (const int32_t rank : one.ranks) ranks.insert(Rank(rank));
  return ranks;
}

// The file holds the lines of this process and of no other one.
bool OwnsFile(const Incident& incident, uint32_t owner, FileId file) {
  for (uint32_t i = 0; i < incident.processes.size(); ++i) {
    const auto& files = incident.processes[i].files;
    if ((std::find(files.begin(), files.end(), file) != files.end()) != (i == owner)) return false;
  }
  return true;
}

// It lost a peer, raised because of that, and is gone: it does not wait any more.
bool FailedWithItsPeer(const RankLife& life) {
  const bool raised = life.consequence && (life.lost_peer || life.gloo_loss);
  return (raised || life.shared_gpu_error) && !life.timeout && !life.has_stack;
}

// Horovod names what each side of a disagreement waits in.
const MismatchReport* TensorsOf(const Incident& incident, const Diagnosis& diagnosis) {
  if (diagnosis.cause != "collective-mismatch-operation") return nullptr;
  for (const Event& event : incident.events)
    if (const auto& report = event.As<MismatchReport>();
        report.aspect == "tensor" && !report.tensor.empty() && !report.other_tensor.empty())
      return &report;
  return nullptr;
}

// By its stack it waits for other ranks.
bool WaitsByStack(const StackReading& stack) {
  return stack.place == StackReading::Place::communication || stack.errand.kind == StackErrand::Kind::mpi_call ||
         stack.errand.kind == StackErrand::Kind::communicator_setup;
}

}  // namespace

std::vector<const SourceAnalysis*> SourcesOfVerdict(const Incident& incident, const Analyses& analyses,
                                                    const Diagnosis& diagnosis) {
  std::vector<const SourceAnalysis*> sources;
  for (const SourceAnalysis& source : analyses.sources) sources.push_back(&source);
  if (diagnosis.findings.empty() || !diagnosis.findings[0].operation) return sources;
  const Finding& finding = diagnosis.findings[0];
  const auto shows = [&](const SourceAnalysis* source) {
    return std::count_if(finding.affected_ranks.begin(), finding.affected_ranks.end(), [&](Rank rank) {
      const Call* call = LastCall(incident, *source, rank, nullptr);
      return call && call->kind == finding.operation->kind && call->seq == finding.operation->seq &&
             call->group == finding.group;
    });
  };
  const auto best = std::max_element(sources.begin(), sources.end(),
                                     [&](const auto* a, const auto* b) { return shows(a) < shows(b); });
  if (best != sources.end()) std::rotate(sources.begin(), best, best + 1);
  return sources;
}

std::vector<ReportRank> RankTable(const Incident& incident, const Analyses& analyses, const StandstillView& standstill,
                                  const Diagnosis& diagnosis) {
  const std::vector<const SourceAnalysis*> sources = SourcesOfVerdict(incident, analyses, diagnosis);
  std::set<Rank> guilty(diagnosis.ranks.begin(), diagnosis.ranks.end()),
      waiting(standstill.waiters.begin(), standstill.waiters.end());
  const std::set<Rank> stands = waiting;
  const bool suffer = !diagnosis.findings.empty() && diagnosis.findings[0].ranks_suffer;
  // Ranks that PyTorch's check of their calls stopped wait no more.
  const bool stopped = diagnosis.status == Status::crash && diagnosis.cause.starts_with("collective-");
  // What runs on a slow transport is affected and waits for nobody.
  if (!diagnosis.findings.empty() && AffectedWait(diagnosis.findings[0].status) && !stopped && !suffer)
    waiting.insert(diagnosis.findings[0].affected_ranks.begin(), diagnosis.findings[0].affected_ranks.end());
  std::set<Rank> affected;  // of whom the verdict itself says that they wait
  if (!diagnosis.findings.empty())
    affected.insert(diagnosis.findings[0].affected_ranks.begin(), diagnosis.findings[0].affected_ranks.end());
  if (diagnosis.status == Status::healthy) waiting.clear();  // who was in an operation when it was looked at
  std::map<Rank, const StackReading*> stacks;
  for (const StackReading& reading : analyses.stacks) stacks.emplace(reading.rank, &reading);
  // The program raises the same on several ranks: they fail, and no one of them is to blame.
  const bool alike = diagnosis.cause == "application-exception" && guilty.size() > 1;
  const bool failed = IsFailure(diagnosis.status);
  const TimeoutCensus census = failed ? CountTimeouts(incident) : TimeoutCensus{};
  std::map<Rank, const Event*> stuck;
  for (const Event& event : incident.events)
    if (failed && event.kind == EventKind::heartbeat_stuck && event.rank.known()) stuck.emplace(event.rank, &event);
  std::map<Rank, const Event*> errors;  // null: a line of its own is an error's, and no reader knows which
  if (diagnosis.status != Status::healthy) {
    for (const Event& event : incident.events) {
      if (!IsOwnError(event, diagnosis.status)) continue;
      if (event.rank.known()) errors.emplace(event.rank, &event);
      // Whoever passes on what another one raised does not go on, either.
      if (event.speaker < incident.processes.size()) errors.emplace(incident.processes[event.speaker].rank, nullptr);
    }
    // An error that nobody signs is of the only process that there is.
    if (incident.process_of.size() == 1)
      for (const Event& event : incident.events)
        if (IsOwnError(event, diagnosis.status) && event.kind == EventKind::nccl_error && !event.rank.known())
          errors.emplace(incident.process_of.begin()->first, &event);
    for (const auto& [rank, process] : incident.process_of)
      if (incident.processes[process].fails) errors.emplace(rank, nullptr);
  }
  // Lines that no reader knows, and that are marked as errors: of whom the whole file is.
  std::set<FileId> unread;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::unread_error) unread.insert(event.source.file);
  if (diagnosis.status == Status::undetermined)
    for (const FileId file : unread)
      for (const auto& [rank, process] : incident.process_of)
        if (OwnsFile(incident, process, file)) errors.emplace(rank, nullptr);
  std::map<Rank, std::string> laggards;
  for (const Event& event : incident.events)
    if (const std::string call = ReportedCallWords(event); event.kind == EventKind::desync_report && !call.empty())
      for (const Rank rank : event.ranks) laggards.emplace(rank, "did not join " + call);
  std::map<Rank, const Event*> refused;  // by NCCL, in the call of the verdict
  for (const Event& event : incident.events)
    if (failed && event.rank.known() && IsRefusedWork(event) && diagnosis.cause.starts_with("collective-mismatch"))
      refused.emplace(event.rank, &event);
  const MismatchReport* tensors = TensorsOf(incident, diagnosis);
  std::set<Rank> checked;  // who report what the check of their calls found
  for (const Event& event : incident.events)
    if (event.kind == EventKind::mismatch_report && event.rank.known()) checked.insert(event.rank);
  const std::map<Rank, std::string> reported = failed ? ReportedWaits(incident) : std::map<Rank, std::string>();
  // A process that speaks and tells no rank may be any of those of whom there is no line.
  const bool nameless = !NamelessProcesses(incident).empty() || HasUnsignedError(incident);
  const std::set<Rank> printing = PrintingRanks(incident);
  const Event* end = analyses.end.told;
  const bool told_hang = diagnosis.status == Status::hang && end && end->kind == EventKind::told_hang;
  const GroupLabels labels(incident);
  // Of a job that failed nobody is known to be well.
  const bool goes_on =
      diagnosis.status == Status::healthy || diagnosis.status == Status::slow || diagnosis.status == Status::degraded;
  const std::set<FileId> spawned = OutputsOfSpawn(incident);
  const auto ended_by_spawn = [&](Rank rank) {
    const auto process = incident.process_of.find(rank);
    if (spawned.empty() || process == incident.process_of.end()) return false;
    const auto& files = incident.processes[process->second].files;
    return std::any_of(files.begin(), files.end(), [&](FileId file) { return spawned.contains(file); });
  };
  std::map<Rank, std::string> told_hosts;  // by the launcher, which tells where the process ended
  for (const Event& event : incident.events)
    if (event.kind == EventKind::process_exited && event.rank.known() && !event.As<ProcessEnd>().of_pod)
      told_hosts.emplace(event.rank, event.As<ProcessEnd>().host);
  std::vector<ReportRank> rows;
  for (const auto& [rank, life] : analyses.life.ranks) {
    ReportRank row;
    row.rank = rank.value;
    if (const auto process = incident.process_of.find(rank); process != incident.process_of.end()) {
      row.host = incident.processes[process->second].host;
      row.pid = incident.processes[process->second].pid;
      std::set<std::string> kinds;
      for (const FileId file : incident.processes[process->second].files)
        kinds.insert(incident.files[static_cast<uint32_t>(file)].format);
      row.evidence_kinds.assign(kinds.begin(), kinds.end());
    }
    if (const auto told = told_hosts.find(rank); row.host.empty() && told != told_hosts.end()) row.host = told->second;
    row.of_verdict = guilty.contains(rank);
    row.role = guilty.contains(rank)                       ? "guilty"
               : waiting.contains(rank)                    ? "waits"
               : life.any() || !row.evidence_kinds.empty() ? "ok"
               : nameless || printing.contains(rank)       ? ""
                                                           : "silent";
    if (guilty.contains(rank) && (diagnosis.cause.empty() || diagnosis.confidence == Confidence::possible))
      row.role = "suspect";
    if (guilty.contains(rank) && suffer) row.role.clear();
    if (guilty.contains(rank) && alike) row.role.clear();
    if (row.role == "guilty" && WasEnded(life)) {
      // That it was ended is known, and not by whom: no guilt.
      if (diagnosis.confidence != Confidence::certain)
        row.role = "suspect";
      else if (!life.oom_killed)
        row.role.clear();
      row.doing = life.oom_killed ? "killed: out of memory" : EndWords(*life.exited);
    }
    // Of a job that runs on, the operation that happened to be the last tells nothing.
    if (diagnosis.status != Status::slow)
      row.last_operation = LastOperation(incident, labels, sources, rank,
                                         affected.contains(rank) ? &diagnosis.findings[0] : nullptr, told_hang);
    if (const auto wait = reported.find(rank);
        wait != reported.end() && row.last_operation.empty() && row.role == "waits")
      row.last_operation = wait->second;
    if (tensors && row.last_operation.empty() && affected.contains(rank)) row.last_operation = tensors->tensor;
    if (tensors && row.last_operation.empty() && guilty.contains(rank)) row.last_operation = tensors->other_tensor;
    if (const auto stack = stacks.find(rank); stack != stacks.end() && !analyses.outcome.ended_in_order) {
      if (row.doing.empty() && !stack->second->where.empty()) row.doing = "in " + stack->second->where;
      const bool stands_still =
          diagnosis.status == Status::hang || (diagnosis.status == Status::undetermined && incident.streams.empty());
      if (row.role == "ok" && stands_still && WaitsByStack(*stack->second)) row.role = "waits";
    }
    const auto found = stuck.find(rank);
    FillFate(life, census, found == stuck.end() ? nullptr : found->second, row);
    const auto error = errors.find(rank);
    // Who failed by itself does not wait any more; a system error or one of a peer is how a wait ended.
    const bool failed_itself = error != errors.end() && IsOwnNcclError(error->second) && !affected.contains(rank);
    const bool never_waited = error != errors.end() && error->second && error->second->kind == EventKind::nccl_error &&
                              !census.Of(rank) && !stands.contains(rank);
    const bool aborted = EndedByItsOwnSignal(life) && !census.Of(rank) && !stands.contains(rank);
    const bool over = row.role == "waits" && diagnosis.status == Status::crash &&
                      (failed_itself || never_waited || aborted || (life.exception && !census.Of(rank)));
    if (over && aborted && row.doing.empty()) row.doing = EndWords(*life.exited);
    if (row.role == "waits" && FailedWithItsPeer(life) && IsFailure(diagnosis.status)) {
      row.role.clear();
      if (row.doing.empty()) row.doing = life.lost_peer || life.gloo_loss ? "lost a connection" : "CUDA error";
    }
    if (over) row.role.clear();
    if (row.role == "waits" && row.doing.empty() && diagnosis.status == Status::crash &&
        diagnosis.cause == "init-unreachable" && affected.contains(rank)) {
      row.role.clear();
      row.doing = "cannot connect";
    }
    if (error != errors.end() && (row.role == "ok" || row.role == "silent" || row.role.empty())) {
      row.role.clear();
      if (row.doing.empty()) row.doing = ErrorWords(error->second ? error->second : SignalToDump(life));
    }
    if (const auto call = refused.find(rank); call != refused.end() && row.role != "guilty") {
      row.role.clear();
      row.doing = ErrorWords(call->second);
      if (row.last_operation.empty())
        row.last_operation = std::string(Name(call->second->op)) + " #" + std::to_string(call->second->seq);
    }
    if (error == errors.end() && diagnosis.status == Status::crash && row.role.empty() && row.doing.empty() &&
        printing.contains(rank) && !nameless)
      row.doing = spawned.empty() ? "no error reported" : kEndedByLauncher;
    if (diagnosis.status == Status::hang && census && !census.Of(rank) && row.role.empty() && row.doing.empty() &&
        printing.contains(rank))
      row.doing = "no timeout reported";
    if (stopped && affected.contains(rank) && (row.role == "ok" || row.role.empty())) {
      row.role.clear();
      if (row.doing.empty()) row.doing = "stopped by the check";
    }
    if (stopped && checked.contains(rank)) row.doing = "stopped by the check";
    if (row.role == "ok" && diagnosis.status == Status::degraded && affected.contains(rank)) row.role.clear();
    if (row.role == "ok" && !goes_on) {
      row.role.clear();
      if (row.doing.empty()) row.doing = ended_by_spawn(rank) ? kEndedByLauncher : "no error reported";
    }
    if (const auto laggard = laggards.find(rank);
        laggard != laggards.end() && row.doing.empty() && (row.role == "guilty" || row.role == "suspect"))
      row.doing = laggard->second;
    if (!IsOlderThanItsCall(incident, sources, life)) row.last_sign = Clock(life.last_wall_ns);
    rows.push_back(std::move(row));
  }
  ListUnseen(incident, census, rows);
  // Numbers alone tell nothing.
  const auto is_bare = [&](const ReportRank& row) {
    return row.role.empty() && (suffer || row.host.empty()) && row.doing.empty() && row.last_operation.empty();
  };
  if ((nameless || suffer) && std::all_of(rows.begin(), rows.end(), is_bare)) rows.clear();
  return rows;
}

}  // namespace tacet
