// SPDX-License-Identifier: Apache-2.0
#include "rules/words/crash_steps.h"

#include <algorithm>
#include <string_view>

#include "model/events/nccl_warnings.h"
#include "model/network_address.h"
#include "rules/findings/refusal_finding.h"
#include "rules/unexplained/open_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/end_advice.h"
#include "rules/words/end_sentence.h"
#include "rules/words/library_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "check nvidia-smi on this node" -> "Check nvidia-smi on this node."
std::string CapitalStep(std::string_view advice) {
  std::string step(advice);
  if (!step.empty() && step[0] >= 'a' && step[0] <= 'z') step[0] = static_cast<char>(step[0] - 'a' + 'A');
  return step + ".";
}

std::vector<std::string> StepsOfAnEndedRun(const Event& told) {
  constexpr int64_t kSignals = 128;
  if (told.As<ProcessEnd>().code <= kSignals)
    return {"Read the last lines of output.log, and the log files that the program writes itself.",
            "Run the command again by hand: what does it print before it exits?"};
  return {
      "Find out who sent the signal: the kernel when memory ran out (dmesg -T), the scheduler (its record of the "
      "job), a person or a script.",
      "Read the last lines of output.log: what did the program do at that moment?"};
}

}  // namespace

bool IsNamedFirst(const Event& end) {
  return end.As<ProcessEnd>().first_failure == true || end.As<ProcessEnd>().named_first;
}

const Event* NamedFirst(const Case& facts, const Event& told) {
  const auto& events = facts.incident.events;
  const auto found = std::find_if(events.begin(), events.end(),
                                  [&](const Event& event) { return event.rank == told.rank && IsNamedFirst(event); });
  return !told.rank.known() || found == events.end() ? nullptr : &*found;
}

const Event* EndedFromOutsideAfter(const Incident& incident, const Event& told) {
  const auto found = std::find_if(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::scheduler_kill && event.source.file == told.source.file &&
           event.source.line > told.source.line;
  });
  return found == incident.events.end() ? nullptr : &*found;
}

// Where the rank was that is waited for when somebody ended the job: "in main (pretrain.py:140)"; empty: not told.
static std::string PlaceOfAwaited(const Incident& incident, const Event& told) {
  const Event* stop = EndedFromOutsideAfter(incident, told);
  if (!stop || !told.peer.known()) return "";
  for (const Event& event : incident.events) {
    const CodePlace& place = event.As<Raised>().place;
    if (event.kind == EventKind::exception && event.rank == told.peer && event.source.file == stop->source.file &&
        event.source.line > stop->source.line && !place.file.empty())
      return "in " + CodePlaceWords(place);
  }
  return "";
}

// "rank 0 of the group", "rank 3"; "the awaited rank" where the line tells no number.
static std::string NameOfAwaited(const Event& told) {
  if (told.peer.known()) return RankWords({told.peer});
  return told.peer_group_rank.known() ? "rank " + std::to_string(told.peer_group_rank.value) + " of the group"
                                      : "the awaited rank";
}

static std::vector<std::string> StepsOfAStoreWait(const Incident& incident, const Event& told,
                                                  const std::string& elsewhere) {
  const std::string place = PlaceOfAwaited(incident, told);
  const std::string awaited =
      told.peer.known() ? RankWords({told.peer}) : "the rank that is waited for, usually rank 0,";
  std::vector<std::string> steps = {
      place.empty() ? "Look at what " + awaited +
                          " did in that time: downloads, preprocessing or compilation on one rank make all others wait "
                          "in the store."
                    : Capitalised(awaited) + " was " + place +
                          " when the job was ended: if that is a download, preprocessing or compilation, it made " +
                          (told.rank.known() ? RankWords({told.rank}) : "the others") + " wait in the store.",
      "Do such work before the job starts, or raise the limit: init_process_group(timeout=...)."};
  // Who is ended from outside after this wait had failed did not fail before it.
  if (!EndedFromOutsideAfter(incident, told)) steps.push_back(elsewhere);
  return steps;
}

std::vector<std::string> StepsOfACrash(const Case& facts, const Event& told) {
  const Incident& incident = facts.incident;
  const std::string elsewhere = "Look for the rank that ended first: read the output of all other ranks" +
                                std::string(told.library == Library::paddle ? " (log/workerlog.N)" : "") +
                                " and the kernel logs (dmesg -T) of their hosts.";
  if (IsEndOfRun(told)) return StepsOfAnEndedRun(told);
  if (told.Means(Meaning::mps_failed))
    return {
        "Read the logs of the MPS server and of its control daemon (server.log and control.log in "
        "CUDA_MPS_LOG_DIRECTORY, by default /var/log/nvidia-mps): a fault of one client ends all clients of a server.",
        "Look for an earlier error of any process that shares the server, also of another job; run without MPS to see "
        "it by itself."};
  switch (told.kind) {
    case EventKind::nccl_error:
    case EventKind::nccl_warning:
      if (const NcclWarning* known = FindNcclWarning(told.As<Warning>().id);
          told.kind == EventKind::nccl_warning && known && known->library != Library::not_told)
        return {CapitalStep(known->advice), "Look at the output of the peers for an earlier error."};
      if (auto steps = LibraryErrorSteps(told); !steps.empty()) return steps;
      if (const NcclWarning* known = FindNcclWarning(told.As<Warning>().id);
          told.kind == EventKind::nccl_warning && known && known->id != "other")
        return {CapitalStep(known->advice),
                "Read the lines of the same process around the cited one: NCCL's warnings, and '-> N', the results of "
                "its calls."};
      if (const Event* behind = told.kind == EventKind::nccl_error ? WarningBehind(facts, told) : nullptr)
        if (const NcclWarning* known = FindNcclWarning(behind->As<Warning>().id); known && !known->advice.empty())
          return {CapitalStep(known->advice), "Look at the output of the peers for an earlier error."};
      if (told.As<NcclError>().of_socket)
        return {
            "Look at the output of the peers for an earlier error: one that has ended, or has not started yet, cannot "
            "be reached.",
            "Compare the addresses in NCCL's Bootstrap lines of all hosts (grep -E 'Bootstrap ?: Using'): each must be "
            "reachable from the others (ping, nc -zv). NCCL_SOCKET_IFNAME chooses the interface; open the ports "
            "between the nodes."};
      if (const std::string_view peer = HostPart(told.As<NcclError>().peer); !peer.empty())
        return {"Look at the process at " + std::string(peer) +
                    " first: it closed the connection, most likely because it ended. Read its output, and dmesg -T of "
                    "its host.",
                HasNcclInfo(incident) ? "Read the lines of the same process around the cited one: NCCL's warnings, and "
                                        "'-> N', the results of its calls."
                                      : "Run again with NCCL_DEBUG=INFO: NCCL then prints warnings before the error."};
      return {told.kind == EventKind::nccl_warning || HasNcclInfo(incident)
                  ? "Read the lines of the same process around the cited one: NCCL's warnings, and '-> N', the results "
                    "of its calls."
                  : "Read NCCL's warnings around the cited line; where there are none, run again with NCCL_DEBUG=INFO.",
              "Look at the output of the peers for an earlier error."};
    case EventKind::store_lost:
      if (told.As<LostPeer>().closing)
        return {
            "Look at the output of the ranks and at the launcher's exit code: if the job had finished, this is "
            "harmless, since the node that hosts the store may end first.",
            "If it had not: read the output of the node that hosts the store (--rdzv-endpoint, usually node 0) for the "
            "first error."};
      if (told.As<LostPeer>().kind == PeerKind::rendezvous)
        return {
            "Read the output of the node that hosts the store (--rdzv-endpoint, usually node 0) for the first error: "
            "this node only notices that the store is gone.",
            "Look there at dmesg -T and the scheduler's log: was the agent ended, or the node lost?",
            "If that agent still ran at that time: look at the network between the two nodes."};
      return {
          "Look at the output of rank 0, and of the launcher on its node, first: the store runs there, and it ended "
          "or cannot be reached any more.",
          elsewhere};
    case EventKind::store_wait_timeout:
      if (NamedFirst(facts, told))
        return {"Find out what " + NameOfAwaited(told) +
                    " did in that time (its output, and a stack: py-spy dump --pid PID): it does not take part in the "
                    "same collective, or in the same group.",
                "Compare how the ranks build their groups (new_group, init_device_mesh): all ranks must make the same "
                "calls "
                "in the same order, also for groups that they are not in.",
                "If it downloads, preprocesses or compiles: do that before the job starts, or raise the limit "
                "(init_process_group(timeout=...))."};
      return StepsOfAStoreWait(incident, told, elsewhere);
    case EventKind::connection_lost:
    case EventKind::monitored_barrier_failed: return {elsewhere};
    case EventKind::exception:
      // Of a traceback that is cut nothing but its frames is known.
      if (told.text.empty() && told.Means(Meaning::reported) &&
          (told.library == Library::not_told || (told.library == Library::server && told.rank.known())))
        return {"Find the rest of this traceback in the output of the rank: its last line names the error.", elsewhere};
      if (auto steps = RefusalSteps(told); !steps.empty()) return steps;
      if (told.As<Raised>().points_back)
        return {
            "Read the lines above the cited one, and what the worker processes printed: the message says that the "
            "reason is there. vLLM marks their lines with (Worker_TP0 pid=...) or (VllmWorker rank=0 pid=...).",
            elsewhere};
      if (IsConsequence(told)) return {elsewhere};
      return {"Read the traceback that ends in the cited line: its last frame is where the program failed."};
    case EventKind::process_exited:
      if (NeverStarted(told) && told.As<ProcessEnd>().of_script)
        return {
            "Look at the first line of the job script: the interpreter that it names (#!) must exist on the node, and "
            "the line must not end with \\r, as lines in files from Windows do.",
            "On the node: does slurmd's spool directory exist, and does it have space (ls, df -h of SlurmdSpoolDir)? "
            "slurmd's log shows whether the script was written, or cleaned up too early."};
      if (NeverStarted(told) && told.As<ProcessEnd>().by_path)
        return {
            "Check that this path exists on every node of the job, inside the container where there is one (mounts), "
            "and that the file may be executed (ls -l).",
            "A script: the interpreter that its first line names (#!) must exist, too."};
      if (NeverStarted(told))
        return {
            "Check that the named program or file exists on every node, in the environment that the job gets: activate "
            "conda, venv, module or container before the line that starts it (torchrun is also python3 -m "
            "torch.distributed.run).",
            "Run the same command by hand on one node."};
      if (const std::string& log = told.As<ProcessEnd>().log_file; !log.empty())
        return {"Read " + log + " for the error itself.", elsewhere};
      if (auto steps = LostOutputSteps(facts, told); !steps.empty()) return steps;
      if (const Event* first = NamedFirst(facts, told); first && first->As<ProcessEnd>().named_first)
        return EndAdvice(told);
      if (const auto& pod = told.As<ProcessEnd>(); pod.of_pod && !pod.host.empty())
        return {"Read what it wrote: kubectl logs " + pod.host +
                    " (--previous if it was restarted, -c for each container).",
                "kubectl describe pod " + pod.host + " shows the exit code, the reason and the events."};
      [[fallthrough]];
    default:
      return {"Find the complete output of the job: the lines before the cited one hold no error that Tacet knows.",
              elsewhere};
  }
}

}  // namespace tacet
