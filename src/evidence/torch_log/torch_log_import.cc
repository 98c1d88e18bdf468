// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_import.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/signal_name.h"
#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_detail.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"
#include "evidence/torch_log/figures/torch_log_outline.h"
#include "evidence/torch_log/libraries/torch_log_ascend.h"
#include "evidence/torch_log/torch_log_activity.h"
#include "evidence/torch_log/torch_log_owners.h"
#include "evidence/torch_log/torch_log_speakers.h"
#include "evidence/torch_log/torch_log_time.h"
#include "evidence/torch_log/waits/torch_log_watchdog.h"
#include "model/assembly/nccl_warning_ranks.h"
#include "model/events/event_words.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

class Importer {
 public:
  Importer(const TorchLog& log, std::string_view path, Fragment& out)
      : log_(log),
        out_(out),
        speakers_(log, path, out.speakers),
        step_before_(out.events.size(), -1),
        tasks_left_(16 + out.bytes.total / 16),
        listed_tasks_left_(4096 + out.bytes.total / 4) {}

  void Run() {
    SurveyWorkers();
    std::vector<const TorchLogRecord*> records;
    for (const TorchLogRecord& record : log_.records) records.push_back(&record);
    std::stable_sort(records.begin(), records.end(),
                     [](const auto* a, const auto* b) { return a->source.line < b->source.line; });
    FindOwnersOfBars();
    DropEarlierAttempts(records);
    DropPassedBarriers(records);
    for (const TorchLogRecord* record : records) Take(*record);
    GiveOwners(out_);
    DropSuperseded();
    DropCutLauncher();
    if (log_.dropped_records > 0)
      out_.Note(DiagnosticSeverity::warning, "too-many-records",
                std::to_string(log_.dropped_records) + " messages beyond the limit were counted but not kept");
  }

 private:
  // torchrun ends the old workers, and its agents meet again, before the new ones say anything.
  static bool IsOfTheAgent(const TorchLogRecord& record) {
    return record.kind == TorchLogKind::process_killed || record.kind == TorchLogKind::restarted ||
           (record.kind == TorchLogKind::exception &&
            (Contains(record.subject, "Rendezvous") || Contains(record.subject, "cut off")));
  }

  // How often one agent started its workers anew, and what ended them the last time.
  void NoteRestarts(const std::vector<const TorchLogRecord*>& records, const TorchLogRecord& last) {
    EarlierRun run;
    run.source = last.source;
    std::map<uint32_t, int64_t> restarts;  // by voice
    const TorchLogRecord *exit = nullptr, *error = nullptr;
    for (const TorchLogRecord* record : records) {
      if (record->source.line > last.source.line) break;
      if (record->kind == TorchLogKind::restarted) run.restarts = std::max(run.restarts, ++restarts[record->voice]);
      if (record->kind == TorchLogKind::restarted && record != &last) exit = error = nullptr;
      if (record->kind == TorchLogKind::process_exited && exit == nullptr) exit = record;
      if (record->kind == TorchLogKind::exception && error == nullptr) error = record;
    }
    if (exit != nullptr) {
      run.end = exit->rank >= 0         ? "rank " + std::to_string(exit->rank)
                : exit->local_rank >= 0 ? "local rank " + std::to_string(exit->local_rank)
                                        : "a process";
      run.end += exit->value < 0 ? " had been ended by " + std::string(SignalName(-exit->value))
                                 : " had exited with code " + std::to_string(exit->value);
      run.line_of_end = exit->source.line;
    } else if (error != nullptr) {
      run.end = "a rank had raised " + error->subject;
      run.line_of_end = error->source.line;
    }
    out_.earlier_runs.push_back(std::move(run));
  }

  // "[default0]:" is a rank on its node: the rank of the job only where a timeout behind such a label has its number.
  bool LabelsAreRanks() const {
    bool confirmed = false;
    for (const TorchLogRecord& record : log_.records) {
      const int32_t rank = record.rank >= 0 ? record.rank : record.work_rank;
      if (record.kind != TorchLogKind::watchdog_timeout || rank < 0 || record.voice >= log_.voices.size()) continue;
      const TorchLogLabel& label = log_.labels[log_.voices[record.voice].label];
      if (label.kind != LauncherPrefix::Kind::local) continue;
      if (label.number != rank) return false;
      confirmed = true;
    }
    return confirmed;
  }

  void FindOwnersOfBars() {
    for (const uint32_t voice : log_.bar_voices) {
      const TorchLogVoice& own = log_.voices[voice];
      if (own.rank < 0 &&
          (own.label == 0 || (log_.labels[own.label].kind == LauncherPrefix::Kind::local && !LabelsAreRanks())))
        continue;
      const Speaker* speaker = speakers_.Get(speakers_.Of(voice));
      if (speaker != nullptr && speaker->rank.known()) bar_ranks_.push_back(speaker->rank);
    }
    std::sort(bar_ranks_.begin(), bar_ranks_.end());
    bar_ranks_.erase(std::unique(bar_ranks_.begin(), bar_ranks_.end()), bar_ranks_.end());
  }

  // What torchrun's workers said before it started them anew is over; but not where the file ends before the new ones
  // come to say anything: then it tells of the failed attempt.
  void DropEarlierAttempts(std::vector<const TorchLogRecord*>& records) {
    constexpr uint32_t kLinesOfTheAgent = 12;
    const auto is_restart = [](const TorchLogRecord* record) { return record->kind == TorchLogKind::restarted; };
    auto restart = std::find_if(records.rbegin(), records.rend(), is_restart);
    if (restart == records.rend()) return;
    const bool goes_on =
        log_.lines > (*restart)->source.line + kLinesOfTheAgent ||
        std::any_of(restart.base(), records.end(), [](const TorchLogRecord* record) { return !IsOfTheAgent(*record); });
    if (!goes_on) {
      records.erase(restart.base() - 1, records.end());
      restart = std::find_if(records.rbegin(), records.rend(), is_restart);
      if (restart == records.rend()) return;
    }
    out_.Note(DiagnosticSeverity::note, "earlier-attempt",
              "torchrun restarted all workers here: earlier output belongs to an earlier attempt and is not used",
              (*restart)->source);
    NoteRestarts(records, **restart);
    records.erase(records.begin(), restart.base());
    std::erase_if(records, [](const TorchLogRecord* r) { return r->kind == TorchLogKind::restarted; });
  }

  // Nobody passes before all have come: one who is through speaks for those who still said that they wait.
  static void DropPassedBarriers(std::vector<const TorchLogRecord*>& records) {
    std::map<std::string, uint32_t> passed;  // by key, the last line
    for (const TorchLogRecord* record : records)
      if (record->kind == TorchLogKind::barrier_passed) passed[record->subject] = record->source.line;
    std::erase_if(records, [&](const TorchLogRecord* record) {
      if (record->kind == TorchLogKind::barrier_passed) return true;
      if (record->kind != TorchLogKind::rendezvous_incomplete || record->subject != "waiting") return false;
      const auto found = passed.find(record->object);
      return found != passed.end() && found->second > record->source.line;
    });
  }

  // An agent's line knows a pid, its summary the rank of that pid.
  void SurveyWorkers() {
    for (const TorchLogRecord& record : log_.records) {
      if (record.local_rank >= 0) has_agent_ = true;
      if (record.kind == TorchLogKind::process_exited && record.rank >= 0 && record.pid > 0)
        rank_of_pid_[record.pid] = record.rank;
      // Ray lists the lost actor's pid below the first line of its error.
      if (record.kind == TorchLogKind::exception &&
          (record.subject.ends_with("ActorDiedError") || record.subject.ends_with("RayActorError")))
        if (const auto pid = IntAfter(record.text, "pid: "); pid && *pid > 0) actor_pids_[record.source.line] = *pid;
    }
  }

  bool IsLaunchersRecord(const TorchLogRecord& record) const {
    switch (record.kind) {
      case TorchLogKind::process_killed:
      case TorchLogKind::oom_kill:
      case TorchLogKind::job_time_limit:
      case TorchLogKind::setting:
      case TorchLogKind::scheduler_kill:
      case TorchLogKind::node_failed: return true;
      // A shell's "Killed" in a rank's own file is about that rank.
      case TorchLogKind::process_exited:
        return !record.of_itself && (record.local_rank >= 0 || !record.host.empty() || !record.ranks.empty());
      default: return false;
    }
  }

  void Take(const TorchLogRecord& record) {
    const bool ended = record.kind == TorchLogKind::process_exited || record.kind == TorchLogKind::process_killed;
    // "failed (exitcode: -9) local_rank: 3 (pid: 12)" is told again, with rank and host, in the summary.
    if (ended && record.rank < 0 && record.local_rank >= 0 && rank_of_pid_.contains(record.pid)) return;
    if ((ended || record.kind == TorchLogKind::oom_kill) && !record.ranks.empty()) {
      TakeTasks(record);
      return;
    }
    Event event = Convert(record);
    if (const auto actor = actor_pids_.find(record.source.line); ended && event.pid < 0 && actor != actor_pids_.end())
      event.pid = actor->second;
    if (record.kind == TorchLogKind::process_exited && record.rank >= 0) NameWorker(record, event);
    if (ended && !event.rank.known())
      if (const auto known = rank_of_pid_.find(record.pid); known != rank_of_pid_.end())
        event.rank = Rank{known->second};
    if (ended && !event.rank.known() && event.pid < 0 && record.local_rank < 0 && !record.host.empty())
      event.speaker = speakers_.OfHost(record.host);
    // "[node1:19546:0:19546] ib_mlx5_log.c:177": the line tells host and pid, and the launcher the rank of that pid.
    if (record.kind == TorchLogKind::nccl_warning && event.speaker == kNobody && !record.host.empty())
      event.speaker = speakers_.OfHost(record.host);
    const Event told = event;
    Push(std::move(event), record);
    if (record.kind == TorchLogKind::nccl_error) TakeLastError(told, record);
  }

  // NCCL's last warning, quoted by PyTorch: the NCCL log itself is often not there.
  void TakeLastError(const Event& error, const TorchLogRecord& record) {
    const auto quoted = After(error.text, "Last error: ");
    if (!quoted) return;
    const std::string_view message = Trim(*quoted);
    const NcclWarning& warning = ClassifyWarning(message);
    if (IsConnectionLoss(warning) || warning.id == "other" || warning.id == "cuda-failure") return;
    const NcclWarningNumbers numbers = ParseWarningNumbers(warning, message);
    Event event = error;
    event.kind = EventKind::nccl_warning;
    event.text = message;
    if (record.reason_line > 0) event.source.line = record.reason_line, event.source.offset = 0;
    auto& told = event.Make<Warning>();
    told.id = warning.id;
    told.number = numbers.value;
    told.role = RoleOf(warning, numbers, false);
    told.object = ParseWarningObject(warning, message);
    if (const auto ranks = ParseWarningRanks(warning, message)) {
      event.group_rank = GroupRank{ranks->first};
      event.peer_group_rank = GroupRank{ranks->second};
    }
    Push(std::move(event), record);
  }

  void Push(Event event, const TorchLogRecord& record) {
    out_.events.push_back(std::move(event));
    step_before_.push_back(record.value2);
  }

  // srun counts tasks. A task is a rank, unless each task is an agent that starts the ranks of its node.
  void TakeTasks(const TorchLogRecord& record) {
    Event event = Convert(record);
    event.ranks = std::vector<Rank>();  // clear() would keep the memory of 65,536
    if (has_agent_) {
      Push(std::move(event), record);
      return;
    }
    // An event each, as long as that is in proportion to the text; the assembly writes the rest out where there is
    // room.
    size_t next = 0;
    for (; next < record.ranks.size() && tasks_left_ > 0 && out_.events.size() < kMaxEvents; ++next, --tasks_left_) {
      event.rank = Rank{record.ranks[next]};
      Push(event, record);
    }
    event.rank = Rank{};
    for (; next < record.ranks.size() && listed_tasks_left_ > 0; ++next, --listed_tasks_left_)
      event.ranks.push_back(Rank{record.ranks[next]});
    if (!event.ranks.empty()) Push(std::move(event), record);
  }

  void NameWorker(const TorchLogRecord& record, Event& event) {
    event.speaker = speakers_.OfRank(record.rank, Certainty::stated);
    Speaker& speaker = *speakers_.Get(event.speaker);
    if (speaker.host.empty()) speaker.host = record.host;
    if (speaker.pid < 0) speaker.pid = record.pid;
  }

  uint32_t SpeakerOf(const TorchLogRecord& record) {
    if (IsLaunchersRecord(record)) return kNobody;
    const uint32_t speaker = speakers_.Of(record.voice);
    const bool nameless = speaker == kNobody || !speakers_.Get(speaker)->rank.known();
    if (nameless && record.work_rank >= 0)
      return speakers_.OfRank(record.work_rank, Certainty::assumed, RankClue::message);
    if (nameless && record.pid > 0 && !record.host.empty()) return speakers_.OfProcess(record.host, record.pid);
    return speaker;
  }

  Event Convert(const TorchLogRecord& record) {
    Event event;
    event.kind = EventKindOf(record.kind);
    event.speaker = SpeakerOf(record);
    event.wall_ns = ResolveMoment(record.time, log_.dated_wall_ns);
    if (record.time.month_day != 0) event.clock_s = record.time.month_day * 86400 + record.time.second_of_day;
    event.source = record.source;
    event.op = ParseOpKind(record.op);
    event.seq = record.seq;
    event.pid = record.pid;
    event.group_rank = GroupRank{record.group_rank};
    event.peer_group_rank = GroupRank{record.peer_group_rank};
    event.group_name = record.group_name;
    event.group_description = record.group_description;
    event.text = record.text;
    event.detail = DetailOf(record);
    if (record.kind == TorchLogKind::heartbeat_stuck && record.value2 == 1) event.Set(Meaning::reported);
    if (record.of_server ||
        (record.voice < log_.voices.size() && IsServersLabel(log_.labels[log_.voices[record.voice].label].text)))
      event.library = Library::server;
    for (const int32_t rank : record.ranks) event.ranks.push_back(Rank{rank});
    if (record.kind == TorchLogKind::watchdog_timeout && !record.object.empty()) event.ranks = bar_ranks_;
    // PyTorch prints one failed attempt twice, as an error of its socket and as an exception.
    const bool twice = record.repeats == 2 &&
                       (record.kind == TorchLogKind::store_unreachable || record.kind == TorchLogKind::connect_failed);
    if (record.repeats > 1 && !twice) event.text += " (" + std::to_string(record.repeats) + " times)";
    SetRanks(record, event);
    return event;
  }

  void SetRanks(const TorchLogRecord& record, Event& event) {
    const Speaker* speaker = speakers_.Get(event.speaker);
    const Rank own = speaker == nullptr ? Rank{} : speaker->rank;
    event.peer = record.peer_is_self ? own : Rank{record.peer};
    if (record.kind == TorchLogKind::mismatch_report) {
      // The report counts in the ranks of its group. They are global ranks where they fit the one who prints.
      // Horovod's coordinator tells of all ranks by their global numbers.
      if (own.known() && own.value != record.group_rank && record.subject != "tensor") return;
      event.rank = Rank{record.group_rank};
      event.peer = Rank{record.peer_group_rank};
      for (const int32_t rank : {record.group_rank, record.peer_group_rank})
        if (rank >= 0) event.ranks.push_back(Rank{rank});
      return;
    }
    // The same of the communicator that a rank waits for.
    if (record.kind == TorchLogKind::store_wait_timeout && own.known() && own.value != record.rank) {
      event.peer = Rank{};
      return;
    }
    // DDP's "for rank 1" is a rank of its group, too: whoever prints is surer.
    if (record.rank >= 0 && (!own.known() || record.kind != TorchLogKind::ddp_unused_parameters))
      event.rank = Rank{record.rank};
  }

  // "cannot decrease scale anymore. Exiting run."
  static bool SaysThatItEnds(std::string_view message) {
    return ContainsAny(message, {"xiting run", "xiting now", "xiting training", "borting run", "borting training"});
  }

  // What a program may catch, and go on: a checkpoint that could not be written, a port that was tried and given up.
  static bool IsSurvivable(const Event& event) {
    switch (event.kind) {
      case EventKind::store_unreachable: return event.As<StoreUnreachable>().how != Unreachable::store;
      case EventKind::watchdog_timeout: return IsAscendWait(event.text) || IsRaisedTimeout(event.text);
      case EventKind::desync_report: return !event.As<DesyncReport>().tensor.empty();  // Horovod only warns
      case EventKind::store_wait_timeout: return event.As<StoreWait>().keys.empty();  // a thread of PyTorch's own asked
      case EventKind::exception:
        if (SaysThatItEnds(event.text)) return false;
        [[fallthrough]];
      case EventKind::cuda_error:
      case EventKind::shared_memory_full:
      case EventKind::disk_full:
      case EventKind::port_in_use:
      case EventKind::peer_access_failed:
      case EventKind::fabric_down:
      case EventKind::rdma_failed:
      case EventKind::connect_failed: return true;
      default: return false;
    }
  }

  bool Speaks(const Event& event) const { return event.speaker != kNobody; }

  // Ranks train together: when one of them prints so many more steps, or that it is done, and nobody's end is told,
  // those who print nothing are there as well.
  uint32_t LineUpToWhichAllWentOn() const {
    constexpr int64_t kManySteps = 5;
    std::vector<std::pair<uint32_t, int64_t>> steps;  // by line
    uint32_t last_end = 0, finished = 0;
    for (const Event& event : out_.events) {
      // A bar is drawn once more when its process dies: a step counts from the one before it on.
      if (event.kind == EventKind::progress) {
        const auto& progress = event.As<Progress>();
        steps.emplace_back(progress.line_before > 0 ? progress.line_before : event.source.line, progress.step);
      }
      if (event.kind == EventKind::process_finished) finished = std::max(finished, event.source.line);
      const bool end = event.kind == EventKind::process_exited || event.kind == EventKind::process_killed ||
                       event.kind == EventKind::abort_signal ||
                       (event.kind == EventKind::watchdog_timeout && !IsSurvivable(event)) ||
                       event.kind == EventKind::connection_lost;
      if (end) last_end = std::max(last_end, event.source.line);
    }
    if (steps.size() < 2 || last_end > 0) return 0;
    std::sort(steps.begin(), steps.end());
    const int64_t needed = steps.back().second - (finished > steps.back().first ? 1 : kManySteps);
    if (steps.front().second > needed) return 0;  // the file does not show so many
    const auto first = std::find_if(steps.begin(), steps.end(), [&](const auto& one) { return one.second > needed; });
    return first == steps.end() ? 0 : first->first;
  }

  using ErrorPlace = std::pair<std::string, CodePlace>;

  // In a file of several ranks: errors of one kind and place that all of them printed, and later all of them again with
  // other words ("trial 1 pruned" three times, then "trial 3 pruned" three times). Who raises it again had caught it,
  // and the file goes on behind the last.
  std::vector<ErrorPlace> ErrorsRaisedAgain() const {
    std::vector<ErrorPlace> out;
    std::vector<std::pair<ErrorPlace, std::map<std::string, size_t>>> seen;
    uint32_t last = 0;
    for (const Event& event : out_.events) {
      if (event.kind == EventKind::process_exited || event.kind == EventKind::process_killed ||
          event.kind == EventKind::abort_signal || event.kind == EventKind::watchdog_timeout ||
          event.kind == EventKind::connection_lost)
        return out;
      if (event.kind != EventKind::exception || event.As<Raised>().place.file.empty()) continue;
      const ErrorPlace here{event.As<Raised>().type, event.As<Raised>().place};
      auto at = std::find_if(seen.begin(), seen.end(), [&](const auto& one) { return one.first == here; });
      if (at == seen.end()) at = seen.insert(seen.end(), {here, {}});
      const std::string_view words = MessageOf(event);
      ++at->second[std::string(words.substr(0, words.find('\n')))];
      last = std::max(last, event.source.line);
    }
    if (last == 0 || log_.lines <= last) return out;
    for (const auto& [place, words] : seen)
      if (words.size() > 1 && std::all_of(words.begin(), words.end(), [](const auto& one) { return one.second > 1; }))
        out.push_back(place);
    return out;
  }

  // That a launcher failed tells something only where nothing else tells how anybody ended.
  void DropCutLauncher() {
    const auto cut = [](const Event& event) {
      return event.kind == EventKind::abort_signal && event.As<Abort>().sentence == kLauncherCut;
    };
    const bool known = std::any_of(out_.events.begin(), out_.events.end(), [&](const Event& event) {
      return event.kind != EventKind::progress && event.kind != EventKind::process_started && !cut(event);
    });
    if (known) std::erase_if(out_.events, cut);
  }

  // Ranks that say that they finished, and errors behind it: whose they are nobody knows.
  void DropRanksOfAnEarlyFinish() {
    uint32_t trouble = 0;
    for (const Event& event : out_.events)
      if (event.kind == EventKind::exception || event.kind == EventKind::process_exited ||
          event.kind == EventKind::process_killed || event.kind == EventKind::watchdog_timeout ||
          event.kind == EventKind::connection_lost)
        trouble = std::max(trouble, event.source.line);
    for (Event& event : out_.events)
      if (event.kind == EventKind::process_finished && event.source.line < trouble) event.ranks.clear();
  }

  // "finished" before more steps, a traceback that the job survived, a barrier that was passed in the end.
  void DropSuperseded() {
    DropRanksOfAnEarlyFinish();
    std::map<uint32_t, uint32_t> last_step, last_trouble;
    std::map<uint32_t, uint32_t>
        last_rise;  // the line before the last step: two steps behind an error show more than one
    std::map<uint32_t, int64_t> highest;
    for (const Event& event : out_.events) {
      if (event.kind == EventKind::progress)
        last_step[event.speaker] = event.source.line, highest[event.speaker] = event.As<Progress>().step,
        last_rise[event.speaker] = event.As<Progress>().line_before;
      if (event.kind == EventKind::exception || event.kind == EventKind::process_exited)
        last_trouble[event.speaker] = event.source.line;
    }
    const auto later = [](const std::map<uint32_t, uint32_t>& lines, const Event& event) {
      const auto found = lines.find(event.speaker);
      return found != lines.end() && found->second > event.source.line;
    };
    const uint32_t all_went_on = LineUpToWhichAllWentOn();
    const std::vector<ErrorPlace> again = ErrorsRaisedAgain();
    const auto caught = [&](const Event& event) {
      return event.kind == EventKind::exception && std::any_of(again.begin(), again.end(), [&](const ErrorPlace& one) {
               return one.first == event.As<Raised>().type && one.second == event.As<Raised>().place;
             });
    };
    size_t index = 0;
    std::erase_if(out_.events, [&](const Event& event) {
      const int64_t step_before = step_before_[index++];
      // In a file of all ranks nobody's steps are everybody's.
      const bool error = IsSurvivable(event);
      if (!Speaks(event) && !error) return false;
      if (event.kind == EventKind::process_finished) return later(last_step, event) || later(last_trouble, event);
      if (event.kind == EventKind::rendezvous_incomplete && event.As<Rendezvous>().waiting)
        return later(last_step, event);
      // A summary at the end may name the last step again; only a higher one is progress.
      const bool itself = later(last_rise, event) && (highest[event.speaker] > step_before || step_before < 0);
      // Who waited for others in vain, or lost them, trains no further; whose steps follow in a file of several ranks
      // is another one.
      const bool of_others = event.kind == EventKind::exception && Contains(MessageOf(event), "gloo/transport/");
      const bool may = error && (Speaks(event) || !of_others);
      const bool went_on = may && (itself || event.source.line < all_went_on || caught(event));
      if (went_on && (event.kind == EventKind::exception || event.kind == EventKind::cuda_error ||
                      event.kind == EventKind::disk_full || event.kind == EventKind::shared_memory_full))
        out_.survived.push_back({event.As<Raised>(), std::string(MessageOf(event)).substr(0, kMostOfSurvived),
                                 event.source, event.speaker});
      if (went_on && event.kind == EventKind::exception) {
        const auto& raised = event.As<Raised>();
        out_.Note(DiagnosticSeverity::note, "exception-survived",
                  raised.in_thread ? "a thread ended with " + raised.type + ", and the process continued without it"
                                   : raised.type + " was printed, and the job continued",
                  event.source);
      }
      return went_on;
    });
  }

  static constexpr size_t kMaxEvents = 200'000, kMostOfSurvived = 200;
  const TorchLog& log_;
  Fragment& out_;
  SpeakerTable speakers_;
  std::vector<Rank> bar_ranks_;       // who draws the bars that timeouts are told beside
  std::vector<int64_t> step_before_;  // by event; of an error: the highest step before it
  bool has_agent_ = false;
  std::map<int64_t, int32_t> rank_of_pid_;
  std::map<uint32_t, int64_t> actor_pids_;  // by the line of Ray's error
  size_t tasks_left_, listed_tasks_left_;   // "tasks 0-65535" is ten bytes of text, and an event is hundreds
};

}  // namespace

void ImportTorchLog(const TorchLog& log, std::string_view path, Fragment& out) {
  out.bytes.understood = log.understood;
  out.bytes.ignored = log.ignored;
  out.bytes.not_understood = log.not_understood;
  out.training = log.training;
  out.earlier_runs = log.earlier_runs;
  Importer(log, path, out).Run();
}

void ReadTorchLog(const FileView& file, Fragment& out) {
  out.format = "torch_log";
  out.bytes.total = file.bytes.size();
  TorchLog log;
  const size_t first = file.bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || file.bytes[first] != '{' || !ParseTorchErrorFile(file.bytes, &log))
    log = ParseTorchLog(file.bytes);
  ImportTorchLog(log, file.path, out);
  AddOutline(file.bytes, out);
  if (!log.harmless.empty() && out.outlines.empty()) out.outlines.emplace_back();
  for (SeenWarning& one : log.harmless) out.outlines.back().harmless.push_back(std::move(one));
}

}  // namespace tacet
