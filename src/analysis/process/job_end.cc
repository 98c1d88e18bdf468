// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/job_end.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "analysis/printed/plain_figures.h"
#include "analysis/timeouts/nameless_waits.h"
#include "model/events/connect_problem.h"
#include "model/events/nccl_warnings.h"
#include "model/job_times.h"

namespace tacet {

bool IsSignOfHang(const Event& event) {
  switch (event.kind) {
    case EventKind::watchdog_timeout:
    case EventKind::heartbeat_stuck:
    case EventKind::gil_blocked:
    case EventKind::desync_report:
    case EventKind::hung_task: return true;
    case EventKind::connect_failed: return IsStillConnecting(event);
    case EventKind::exception:
      return event.Means(Meaning::gloo_timeout) || IsOwnWaitInVain(event) || IsInterruptedMeeting(event);
    case EventKind::xla_wait: return !event.As<XlaWait>().passed;
    // Whose connection broke in the barrier was left by its peer; only who waited until its time was up tells of a
    // hang.
    case EventKind::monitored_barrier_failed: return !event.peer.known();
    default: return false;
  }
}

bool IsSignOfCrash(const Event& event) {
  switch (event.kind) {
    case EventKind::exception: return !IsSignOfHang(event);
    case EventKind::abort_signal:
    case EventKind::cuda_error:
    case EventKind::nccl_error:
    case EventKind::mismatch_report:
    case EventKind::ddp_unused_parameters:
    case EventKind::ddp_marked_twice:
    case EventKind::segfault:
    case EventKind::oom_kill:
    case EventKind::store_lost:
    case EventKind::store_wait_timeout:
    case EventKind::store_unreachable:
    case EventKind::connection_lost:
    case EventKind::job_time_limit:
    case EventKind::node_failed:
    case EventKind::scheduler_kill:
    case EventKind::shared_memory_full:
    case EventKind::disk_full:
    case EventKind::port_in_use:
    case EventKind::peer_access_failed:
    case EventKind::model_mismatch:
    case EventKind::process_killed: return true;
    case EventKind::connect_failed: return !IsStillConnecting(event);
    case EventKind::process_exited: return event.As<ProcessEnd>().code != 0;
    case EventKind::fabric_down: return event.As<CudaRefusal>().fabric == FabricFault::not_started;
    case EventKind::rendezvous_incomplete: return !event.As<Rendezvous>().waiting;
    case EventKind::monitored_barrier_failed: return event.peer.known();
    case EventKind::xid:
    case EventKind::ecc_error:
    case EventKind::nvlink_error: return IsDeviceFault(event);
    // What a local peer should have left in /dev/shm is not there: the peer's fault, but NCCL does not go on without
    // it.
    case EventKind::nccl_warning: {
      const auto& warning = event.As<Warning>();
      return warning.role == NcclWarningRole::cause || warning.id == "shm-open-failed";
    }
    default: return false;
  }
}

namespace {

// An end that nothing comes after: what the launcher, the scheduler or the shell say of a process.
bool IsLastWord(const Event& event) {
  switch (event.kind) {
    case EventKind::process_exited:
    case EventKind::process_killed:
    case EventKind::abort_signal:
    case EventKind::scheduler_kill:
    case EventKind::job_time_limit:
    case EventKind::node_failed:
    case EventKind::segfault:
    case EventKind::oom_kill: return true;
    default: return false;
  }
}

// A fault of a device, of the network or of the set-up ends nobody by itself: a process may as well wait behind it.
bool EndsSomebody(const Event& event) {
  switch (event.kind) {
    case EventKind::xid:
    case EventKind::ecc_error:
    case EventKind::nvlink_error:
    case EventKind::nccl_warning:
    case EventKind::peer_access_failed:
    case EventKind::fabric_down: return false;
    // NCCL INFO include/net.h:24 -> 2: it passes a code on, and what the program does with it is not shown.
    case EventKind::nccl_error: return event.As<NcclError>().code <= 0 || !event.As<NcclError>().reason.empty();
    default: return true;
  }
}

// Ctrl-C: whoever sees a job stand still ends it so, and what fails behind it fails because of it.
const Event* FirstInterrupt(const Incident& incident) {
  const auto found = std::find_if(incident.events.begin(), incident.events.end(), IsInterrupt);
  return found == incident.events.end() ? nullptr : &*found;
}

// The kernel and the scheduler speak of other jobs too. Beside files of a job they count only where they are tied to
// it.
bool MayBeForeign(const Incident& incident, const Event& event) {
  if (event.rank.known()) return false;
  if (event.Means(Meaning::of_service)) return true;
  if (event.kind != EventKind::oom_kill && event.kind != EventKind::segfault && event.kind != EventKind::xid &&
      event.kind != EventKind::ecc_error && event.kind != EventKind::nvlink_error && event.kind != EventKind::hung_task)
    return false;
  return std::any_of(incident.processes.begin(), incident.processes.end(),
                     [](const Process& process) { return process.rank.known(); });
}

// The last line of each file behind which the job went on or came to its end. One step behind an error shows nothing: a
// progress bar is drawn once more when its process dies, and who asks for help tells at which step it happened.
std::map<FileId, uint32_t> LastSteps(const Incident& incident) {
  std::map<FileId, uint32_t> last;
  for (const Event& event : incident.events) {
    const bool ended = event.kind == EventKind::process_finished || event.kind == EventKind::init_completed;
    if (!ended && event.kind != EventKind::progress) continue;
    last[event.source.file] =
        std::max(last[event.source.file], ended ? event.source.line : event.As<Progress>().line_before);
  }
  return last;
}

// The first line of each file that says that the job came to its end.
std::map<FileId, uint32_t> FirstFinishes(const Incident& incident) {
  std::map<FileId, uint32_t> first;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::process_finished)
      if (const auto [at, is_new] = first.emplace(event.source.file, event.source.line); !is_new)
        at->second = std::min(at->second, event.source.line);
  return first;
}

// Progress lines came at a steady rhythm, then for many times that long there were none until something ended the job.
int64_t QuietBefore(const Incident& incident, const Event& end, const OutputFront& front) {
  // PyTorch's lines tell no year, the program's may.
  const JobTimes clock(incident);
  const int64_t ended = clock.TimeOf(end);
  if (ended == kNoTime) return 0;
  std::vector<int64_t> times;
  bool same_kind = true;
  for (const Event& event : incident.events) {
    if (event.kind != EventKind::progress) continue;
    const int64_t at = clock.TimeOf(event);
    if (at == kNoTime || at > ended) continue;
    times.push_back(at);
    same_kind = same_kind && (event.wall_ns == kNoTime) == (end.wall_ns == kNoTime);
  }
  if (times.size() < 4) return 0;
  std::sort(times.begin(), times.end());
  int64_t longest = 0;
  for (size_t i = 1; i < times.size(); ++i) longest = std::max(longest, times[i] - times[i - 1]);
  const int64_t quiet = ended - times.back();
  // Lines of two kinds may be written in two time zones, which lie half an hour or more apart.
  constexpr int64_t kLeastZone = 1'800'000'000'000;
  if (!same_kind && quiet >= kLeastZone) return 0;
  const Patience& limits = incident.patience;
  // Where all ranks but one printed what comes next, less of it is enough.
  const bool one_lags = front.kind == OutputFront::Kind::lags;
  const int64_t lessened = one_lags ? 3 : 1;
  const bool usual =
      quiet < limits.quiet_ns / lessened || quiet / limits.quiet_times * lessened < std::max<int64_t>(longest, 1);
  return usual ? 0 : quiet;
}

// Somebody looked into every process of the job with a tool. Who then ends a job that had not failed did not do it for
// the scheduler.
bool IsLookedAt(const Incident& incident, const SignsOfLife& life) {
  std::set<Rank> seen;
  for (const ThreadStack& thread : incident.threads)
    if (thread.looked_at && thread.rank.known()) seen.insert(thread.rank);
  return seen.size() >= 2 && seen.size() >= life.ranks.size();
}

// Every process wrote its stack when a signal asked for it, above the line that tells of the end from outside, and none
// printed anything in between: somebody asked because nothing moved. A scheduler that ends a job at its limit may send
// that signal, too.
bool WereAskedForStacks(const Incident& incident, const SignsOfLife& life, const Event& end,
                        const std::map<FileId, uint32_t>& steps) {
  for (const Event& event : incident.events)
    if (event.kind == EventKind::job_time_limit ||
        (event.kind == EventKind::scheduler_kill && event.As<OutsideEnd>().why != SchedulerKill::signal))
      return false;
  std::set<Rank> seen;
  uint32_t first = end.source.line;
  for (const ThreadStack& thread : incident.threads) {
    if (thread.source.file != end.source.file || thread.source.line >= end.source.line) continue;
    if (!thread.rank.known() || thread.timer_s >= 0) return false;
    seen.insert(thread.rank);
    first = std::min(first, thread.source.line);
  }
  const auto step = steps.find(end.source.file);
  if (seen.size() < 2 || seen.size() < life.ranks.size() || (step != steps.end() && step->second > first)) return false;
  return std::none_of(incident.outlines.begin(), incident.outlines.end(), [&](const LogOutline& outline) {
    return std::any_of(outline.own_lines.begin(), outline.own_lines.end(), [&](const OwnLine& line) {
      return line.source.file == end.source.file && line.source.line > first && line.source.line < end.source.line;
    });
  });
}

// What a launcher does to the processes that are left once one has failed: it never tells how the job came to its end.
bool IsCleanUp(const Event& event) { return event.kind == EventKind::process_killed; }

bool EndsFromOutside(const Event& event) {
  const int64_t code = event.As<ProcessEnd>().code;
  return event.kind == EventKind::process_killed || event.kind == EventKind::job_time_limit ||
         event.kind == EventKind::scheduler_kill || IsInterrupt(event) ||
         (event.kind == EventKind::process_exited && (code == -15 || code == -9 || code == -2));
}

//   terminate called after throwing an instance of 'std::runtime_error'
//     what():  NCCL failure: unhandled cuda error in bench.cu at line: 86 rank: 0
// What ended the process stands below the line that says that it aborts; two processes may print into each other.
const Event* WordsOfAbort(const Incident& incident, const Event& abort) {
  constexpr uint32_t kNearLines = 3;
  const Event* words = nullptr;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::nccl_error && event.source.file == abort.source.file &&
        event.source.line > abort.source.line && event.source.line <= abort.source.line + kNearLines &&
        (!words || event.source.line < words->source.line))
      words = &event;
  return words ? words : &abort;
}

// A launcher tells that a process ended with exit code 1, and its own output tells why: that is the reason.
const Event* OwnErrorOf(const Incident& incident, const Event& exit) {
  const Event* own = nullptr;
  if (exit.kind != EventKind::process_exited || !exit.rank.known() || exit.As<ProcessEnd>().code != 1) return &exit;
  for (const Event& event : incident.events)
    if (event.rank == exit.rank && IsSignOfCrash(event) && !IsLastWord(event) && EndsSomebody(event) &&
        event.source.file != exit.source.file && (!own || CameBefore(event, *own)))
      own = &event;
  return own ? own : &exit;
}

}  // namespace

JobEnd ReadJobEnd(const Incident& incident, const SignsOfLife& life, const Outcome& outcome, const OutputFront& front) {
  JobEnd end;
  const std::map<FileId, uint32_t> steps = LastSteps(incident), finishes = FirstFinishes(incident);
  const Event *crash = nullptr, *clean_up = nullptr, *hang = nullptr, *outside = nullptr;
  const auto earlier = [](const Event& a, const Event* b) { return !b || CameBefore(a, *b); };
  // A timeout is reported by somebody else, or the watchdog only says that it found a failure. PyTorch speaks of a
  // timeout whatever went wrong; it is one only where something was issued.
  const Event* weak = nullptr;
  bool ended = false;  // some process is gone, by what the lines say
  const Event* interrupt = FirstInterrupt(incident);
  for (const Event& event : incident.events) {
    const bool crashes = IsSignOfCrash(event), hangs = IsSignOfHang(event);
    const bool asked = event.kind == EventKind::dump_signal && event.Means(Meaning::timed_out) &&
                       event.As<WorkCounters>().last_enqueued > 0;
    const bool found = event.kind == EventKind::watchdog_status && event.seq >= 0;
    if ((asked || found) && (!weak || (asked && weak->kind != event.kind))) weak = &event;
    if ((!crashes && !hangs) || MayBeForeign(incident, event)) continue;
    const auto step = steps.find(event.source.file);
    const bool of_others = event.Means(Meaning::gloo_timeout) || event.Means(Meaning::gloo_loss);
    const bool went_on = step != steps.end() && step->second > event.source.line && !of_others;
    if (went_on && !IsLastWord(event)) continue;
    if (event.kind == EventKind::store_lost && event.As<LostPeer>().ends_itself) continue;
    if (const auto done = finishes.find(event.source.file);
        IsFarewell(event) && done != finishes.end() && done->second < event.source.line)
      continue;
    const bool by_hand = interrupt && (CameBefore(*interrupt, event) || (interrupt->source.file == event.source.file &&
                                                                         interrupt->source.line <= event.source.line));
    ended = ended || (crashes && EndsSomebody(event) && !by_hand);
    if (hangs && earlier(event, hang)) hang = &event;
    if (const Event*& slot = IsCleanUp(event) ? clean_up : crash; crashes && earlier(event, slot)) slot = &event;
    if (EndsFromOutside(event) && earlier(event, outside)) outside = &event;
  }
  if (!crash) crash = clean_up;
  if (crash && crash->kind == EventKind::abort_signal) crash = WordsOfAbort(incident, *crash);
  // torchrun tells which of several ends it saw first.
  if (crash && crash->kind == EventKind::process_exited)
    for (const Event& event : incident.events)
      if (event.kind == EventKind::process_exited && event.As<ProcessEnd>().first_failure == true &&
          event.source.file == crash->source.file && !IsBefore(*crash, event))
        crash = &event;
  if (crash) crash = OwnErrorOf(incident, *crash);
  // Where nothing else tells why processes ended.
  if (!hang && weak && (!crash || crash->kind == EventKind::abort_signal)) hang = weak;
  // Gloo has no watchdog: who waits in vain raises.
  for (const auto& [rank, one] : life.ranks)
    if (one.gloo_timeout && !outcome.first_failure && earlier(*one.gloo_timeout, hang)) hang = one.gloo_timeout;
  if (outside && (!crash || EndsFromOutside(*crash)) && !hang) {
    end.quiet_ns = QuietBefore(incident, *outside, front);
    const bool by_signal =
        interrupt || std::any_of(incident.events.begin(), incident.events.end(),
                                 [](const Event& event) { return event.kind == EventKind::scheduler_kill; });
    end.looked_at = by_signal && !outcome.somebody_finished &&
                    (IsLookedAt(incident, life) || WereAskedForStacks(incident, life, *outside, steps));
  }
  const bool hung = outcome.hangs() || hang || end.quiet_ns > 0 || end.looked_at;
  // What fails first-hand before anybody gives up waiting is the end; errors that only tell of others are not.
  const bool crashed_first = crash && hang && crash != hang && CameBefore(*crash, *hang) &&
                             !(crash->kind == EventKind::exception && IsConsequence(*crash)) &&
                             crash->kind != EventKind::connection_lost && crash->kind != EventKind::store_lost &&
                             crash->kind != EventKind::abort_signal;
  const bool finished = outcome.ended_in_order || outcome.somebody_finished;
  const auto told_hang = std::find_if(incident.events.begin(), incident.events.end(),
                                      [](const Event& event) { return event.kind == EventKind::told_hang; });
  if (hung && !crashed_first) {
    end.kind = JobEnding::hung;
    end.told = hang ? hang : end.quiet_ns > 0 || end.looked_at ? outside : outcome.first_timeout;
  } else if (told_hang != incident.events.end() && !ended && (crash || !finished) && !FindDataWait(incident)) {
    // Steps that wait for their data go on, whatever it feels like. Nothing in the log ends a process: whoever pasted
    // it was there.
    end.kind = JobEnding::hung;
    end.told = &*told_hang;
  } else if (crash) {
    end.kind = JobEnding::crashed;
    end.told = crash;
  } else if (finished) {
    end.kind = JobEnding::finished;
  }
  const bool well = end.kind == JobEnding::open || end.kind == JobEnding::finished;
  if (well && !outcome.unfinished_calls && !outcome.first_timeout) end.said = FindSaidEnd(incident);
  return end;
}

}  // namespace tacet
