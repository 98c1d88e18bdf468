// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/signs_of_life.h"

#include <algorithm>
#include <utility>

#include "analysis/calls/group_calls.h"
#include "analysis/calls/overdue.h"
#include "analysis/process/vanished_ranks.h"
#include "model/assembly/event_ties.h"
#include "model/events/event_time.h"
#include "model/events/xid.h"

namespace tacet {

bool IsConsequence(const Event& event) { return event.Means(Meaning::consequence); }

bool IsOwnWaitInVain(const Event& event) {
  return event.kind == EventKind::exception && event.Means(Meaning::consequence) && event.Means(Meaning::timed_out) &&
         event.Means(Meaning::of_communication) && !event.Means(Meaning::gloo_timeout) &&
         !event.Means(Meaning::setup_failed) && !event.Means(Meaning::reported) && !event.Means(Meaning::of_ascend);
}

bool IsAftermath(const Event& event) {
  const int64_t number = event.As<Xid>().number;
  return event.kind == EventKind::xid && (number == 43 || number == 45);
}

// Errors of the machine's own memory name a controller ("MC0", "memory", "machine check"), those of a GPU its address.
bool IsDeviceFault(const Event& event) {
  switch (event.kind) {
    case EventKind::xid: {
      const XidMeaning* entry = FindXid(event.As<Xid>().number);
      const bool told_harmless = event.As<Xid>().fatal == false;  // "Nonfatal" is the driver's own word
      return !told_harmless && !IsAftermath(event) && (!entry || entry->ends_process);
    }
    // An SXid says whether it is fatal.
    case EventKind::nvlink_error: return event.As<Xid>().number < 0 || event.As<Xid>().fatal != false;
    case EventKind::ecc_error: {
      const auto& error = event.As<HardwareError>();
      return error.severity >= ErrorSeverity::uncorrected && BusIdOf(error.device) >= 0;
    }
    case EventKind::pcie_error: return event.As<HardwareError>().severity == ErrorSeverity::fatal && event.rank.known();
    default: return false;
  }
}

bool IsOfAProgram(const Event& event) {
  const int64_t number = event.As<Xid>().number;
  return event.kind == EventKind::xid && (number == 13 || number == 31);
}

bool IsHostMemoryShortage(const Event& event) { return event.Means(Meaning::host_memory); }

bool IsFirstHandEnd(const Event& event) {
  const int64_t code = event.As<ProcessEnd>().code;
  return event.kind == EventKind::segfault || (code != -6 && code != -15 && code != 1);
}

bool IsBefore(const Event& a, const Event& b) { return OrderOf(a, b) == TimeOrder::before; }

bool CameBefore(const Event& a, const Event& b) {
  if (const TimeOrder order = OrderOf(a, b); order != TimeOrder::unordered) return order == TimeOrder::before;
  // Launchers list the ends of one moment by rank: where both have a time, the order of lines adds nothing.
  if (a.wall_ns != kNoTime && b.wall_ns != kNoTime) return false;
  return a.source.file == b.source.file && a.source.line < b.source.line;
}

const RankLife* SignsOfLife::Of(Rank rank) const {
  const auto found = ranks.find(rank);
  return found == ranks.end() ? nullptr : &found->second;
}

size_t SignsOfLife::Present() const {
  return static_cast<size_t>(
      std::count_if(ranks.begin(), ranks.end(), [](const auto& one) { return one.second.any(); }));
}

namespace {

void Keep(const Event*& slot, const Event& event) {
  if (!slot) slot = &event;
}

// The device's own word says more than the error that CUDA makes of it, unless it only tells what a program did.
void KeepDeviceFault(RankLife& life, const Event& event) {
  constexpr int64_t kDriftOfClocksNs = int64_t{15} * 60 * 1'000'000'000;
  const Event* before = life.gpu_error;
  const bool later = before && before->wall_ns != kNoTime && event.wall_ns != kNoTime &&
                     event.wall_ns - before->wall_ns > kDriftOfClocksNs;
  if (before && before->kind == EventKind::cuda_error && !IsOfAProgram(event) && !later)
    life.gpu_error = &event;
  else
    Keep(life.gpu_error, event);
}

void TakeEvent(const Event& event, RankLife& life) {
  switch (event.kind) {
    case EventKind::process_finished: life.finished = true; break;
    case EventKind::progress: life.last_step = std::max(life.last_step, event.As<Progress>().step); break;
    case EventKind::abort_signal: Keep(life.aborted, event); break;
    case EventKind::process_exited:
      if (event.As<ProcessEnd>().code != 0) Keep(life.exited, event);
      break;
    case EventKind::oom_kill: Keep(life.oom_killed, event); break;
    case EventKind::segfault: Keep(life.segfault, event); break;
    case EventKind::hung_task: Keep(life.hung_task, event); break;
    case EventKind::cuda_error: Keep(event.Means(Meaning::gpu_memory) ? life.cuda_oom : life.gpu_error, event); break;
    case EventKind::xid:
    case EventKind::ecc_error:
    case EventKind::nvlink_error:
    case EventKind::pcie_error:
      if (IsDeviceFault(event)) KeepDeviceFault(life, event);
      if (event.kind == EventKind::xid && !IsDeviceFault(event) && !IsAftermath(event)) Keep(life.mild_xid, event);
      break;
    case EventKind::nccl_warning:
      if (IsHostMemoryShortage(event)) Keep(life.host_memory, event);
      break;
    case EventKind::exception:
      Keep(IsConsequence(event) ? life.consequence : life.exception, event);
      if (event.Means(Meaning::gloo_timeout)) Keep(life.gloo_timeout, event);
      if (event.Means(Meaning::gloo_loss)) Keep(life.gloo_loss, event);
      if (IsOwnWaitInVain(event)) Keep(life.gave_up, event);
      if (IsHostMemoryShortage(event)) Keep(life.host_memory, event);
      break;
    case EventKind::ddp_unused_parameters: Keep(life.unused_parameters, event); break;
    case EventKind::watchdog_timeout: Keep(life.timeout, event); break;
    case EventKind::connection_lost: Keep(life.lost_peer, event); break;
    case EventKind::nccl_error:
      if (constexpr int64_t kRemoteError = 6; event.As<NcclError>().code == kRemoteError)
        Keep(life.remote_error, event);
      break;
    case EventKind::store_lost: Keep(life.store_lost, event); break;
    case EventKind::program_left: Keep(life.left, event); break;
    case EventKind::dump_signal:
    case EventKind::dump_started:
      life.asked_to_dump = true;
      Keep(life.dump_signal, event);
      break;
    case EventKind::rendezvous_incomplete:
    case EventKind::store_wait_timeout: Keep(life.init_error, event); break;
    default: break;
  }
  if (event.wall_ns != kNoTime && event.wall_ns > life.last_wall_ns) {
    life.last_wall_ns = event.wall_ns;
    life.last_event = &event;
  }
}

// The others had given up when it raised: whatever it is, they did not wait because of it.
void MarkLateExceptions(SignsOfLife& signs) {
  for (auto& [rank, life] : signs.ranks) {
    if (!life.exception || !life.dump_signal || life.timeout || !CameBefore(*life.dump_signal, *life.exception))
      continue;
    life.late_exception = std::exchange(life.exception, nullptr);
    if (!life.consequence) life.consequence = life.late_exception;
  }
}

void TakeProgress(const Incident& incident, SignsOfLife& signs) {
  std::map<Rank, std::pair<int64_t, int64_t>> first_and_last;
  std::map<Rank, int64_t> lines;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::progress || event.wall_ns == kNoTime || !event.rank.known()) continue;
    const auto [found, added] = first_and_last.try_emplace(event.rank, event.wall_ns, event.wall_ns);
    found->second.first = std::min(found->second.first, event.wall_ns);
    found->second.second = std::max(found->second.second, event.wall_ns);
    ++lines[event.rank];
  }
  for (const auto& [rank, times] : first_and_last) {
    if (lines[rank] < 2) continue;
    const int64_t interval = (times.second - times.first) / (lines[rank] - 1);
    signs.progress_interval_ns =
        signs.progress_interval_ns == kNoTime ? interval : std::max(signs.progress_interval_ns, interval);
    signs.last_progress_wall_ns =
        signs.last_progress_wall_ns == kNoTime ? times.second : std::max(signs.last_progress_wall_ns, times.second);
  }
}

}  // namespace

bool IsExplained(const RankLife& life) {
  return life.exception || life.unused_parameters || life.cuda_oom || life.host_memory || life.oom_killed ||
         life.gpu_error;
}

SignsOfLife ReadSignsOfLife(const Incident& incident) {
  SignsOfLife signs;
  signs.patience = incident.patience;
  for (const Rank rank : incident.AllRanks()) signs.ranks[rank].rank = rank;
  for (const Process& process : incident.processes) {
    if (!process.rank.known()) continue;
    RankLife& life = signs.ranks[process.rank];
    life.rank = process.rank;
    for (const FileId file : process.files) {
      const InputFile& input = incident.files[static_cast<uint32_t>(file)];
      life.has_nccl_log |= IsReadAs(input, "nccl_log");
      life.has_output |= IsReadAs(input, "torch_log");
      life.has_stack |= IsReadAs(input, "stacks");
    }
  }
  for (const CallStream& stream : incident.streams) {
    if (!stream.rank.known()) continue;
    RankLife& life = signs.ranks[stream.rank];
    life.has_cut_file |= stream.cut;
    if (stream.source != CallSource::flight_recorder && stream.source != CallSource::black_box) continue;
    (stream.stub ? life.has_stub_record : life.has_record) = true;
    life.has_dump |= !stream.stub && stream.source == CallSource::flight_recorder;
  }
  for (const Event& event : incident.events) {
    if (!event.rank.known()) continue;
    RankLife& life = signs.ranks[event.rank];
    life.rank = event.rank;
    TakeEvent(event, life);
  }
  TakeProgress(incident, signs);
  MarkLateExceptions(signs);
  MarkVanishedRanks(signs);
  for (auto& [rank, life] : signs.ranks) {
    signs.records += life.has_record;
    signs.stubs += life.has_stub_record;
    signs.nccl_logs += life.has_nccl_log;
    signs.outputs += life.has_output;
    signs.stacks += life.has_stack;
  }
  return signs;
}

namespace {

// How long the operation had been open when the record was taken; kNoTime where the record cannot tell.
int64_t AgeNs(const CallStream& stream, const Call& call) {
  if (call.enter_wall_ns == kNoTime || stream.captured_wall_ns == kNoTime || !stream.knows_start) return kNoTime;
  return stream.captured_wall_ns - call.enter_wall_ns;
}

bool IsAged(const Incident& incident, const CallStream& stream, const Call& call) {
  if (const int64_t age = AgeNs(stream, call); age != kNoTime) {
    const bool starting = stream.source == CallSource::black_box && HasEndedNothing(stream);
    return age > (starting ? incident.patience.starting_ns : incident.patience.fresh_ns);
  }
  // The record does not tell when it was taken. A file written moments after its newest entry is a snapshot.
  const int64_t written = incident.files[static_cast<uint32_t>(stream.file)].modified_wall_ns;
  return written == kNoTime || stream.captured_wall_ns == kNoTime ||
         written - stream.captured_wall_ns >= incident.patience.fresh_ns;
}

}  // namespace

Outcome ReadOutcome(const Incident& incident, const SignsOfLife& life) {
  Outcome outcome;
  const auto earlier = [](const Event& a, const Event* b) { return !b || IsBefore(a, *b); };
  for (const Event& event : incident.events) {
    const bool barrier = event.kind == EventKind::monitored_barrier_failed && !event.ranks.empty();
    if ((event.kind == EventKind::watchdog_timeout || event.kind == EventKind::heartbeat_stuck || barrier) &&
        earlier(event, outcome.first_timeout))
      outcome.first_timeout = &event;
    const RankLife* own = event.rank.known() ? life.Of(event.rank) : nullptr;
    const bool shared = own && own->shared_gpu_error;
    const bool failure =
        (!shared &&
         ((event.kind == EventKind::exception && !IsConsequence(event) && !(own && own->late_exception == &event)) ||
          event.kind == EventKind::cuda_error)) ||
        event.kind == EventKind::mismatch_report || event.kind == EventKind::ddp_unused_parameters ||
        // The kernel and launchers speak of other processes too: only a rank of this job counts.
        (event.rank.known() && (event.kind == EventKind::segfault || event.kind == EventKind::oom_kill ||
                                (event.kind == EventKind::process_exited && event.As<ProcessEnd>().code != 0)));
    if (failure && earlier(event, outcome.first_failure)) outcome.first_failure = &event;
    const bool end =
        event.kind == EventKind::process_exited && event.As<ProcessEnd>().code != 0 && event.wall_ns != kNoTime;
    if (end && event.rank.known() && earlier(event, outcome.first_end)) outcome.first_end = &event;
  }
  for (const CallStream& stream : incident.streams) {
    const Call* open = FirstUnfinished(stream);
    if (!open) continue;
    outcome.unfinished_calls = true;
    outcome.aged |= IsAged(incident, stream, *open);
  }
  outcome.overdue = outcome.unfinished_calls && IsOverdue(incident);
  // A watchdog has waited already for as long as is normal.
  outcome.aged |= outcome.unfinished_calls && outcome.first_timeout;
  int ended = 0, logged = 0;
  for (const auto& [rank, one] : life.ranks) {
    logged += one.has_nccl_log || one.has_output;
    outcome.somebody_finished |= one.finished;
    ended += one.finished && (one.has_nccl_log || one.has_output);
  }
  outcome.ended_in_order = logged > 0 && ended == logged && !outcome.first_failure && !outcome.first_timeout;
  return outcome;
}

}  // namespace tacet
