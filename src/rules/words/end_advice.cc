// SPDX-License-Identifier: Apache-2.0
#include "rules/words/end_advice.h"

#include <algorithm>
#include <cstdint>

#include "rules/words/activity_words.h"
#include "rules/words/words.h"

namespace tacet {

// What the kernel writes of a process that ended so: "traps: python[4121] trap invalid opcode ip:...".
static std::string_view KernelWordsOf(int64_t code) {
  switch (code) {
    case -4: return "traps:|invalid opcode|undefined instruction";
    case -5: return "traps:|int3";
    case -7: return "memory failure|hardware error|sigbus|I/O error";
    case -8: return "traps:|divide error";
    default: return "killed process|segfault|xid";
  }
}

std::vector<std::string> LostOutputSteps(const Case& facts, const Event& end) {
  if (!end.rank.known() || end.As<ProcessEnd>().code < 1) return {};
  const bool first = end.As<ProcessEnd>().first_failure.value_or(false);
  const auto& events = facts.incident.events;
  const bool heard = std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return event.rank == end.rank && event.kind != EventKind::process_exited && event.kind != EventKind::process_killed;
  });
  if (heard && !first) return {};
  const std::string who = RankWords({end.rank});
  const std::string host = ToldHostOf(facts.incident, end.rank);
  const auto& told = end.As<ProcessEnd>();
  return {
      "Find the " + std::string(heard ? "complete " : "") + "output of " + who +
          (host.empty() ? "" : " (on " + host + ")") + (first ? ", which torchrun names as the first to fail" : "") +
          ": what it raised is not in these files. " +
          (told.named_first ? "--output-filename DIR of mpirun or horovodrun keeps it next time."
           : !told.first_failure && told.local_rank < 0
               ? "A file for each rank (srun --output=%t.log, torchrun --redirects 3 --log-dir DIR) keeps it next time."
               : "torchrun --redirects 3 --log-dir DIR keeps it next time, and @record on the main function puts "
                 "its traceback into the launcher's summary."),
      "Look at the kernel log (dmesg -T) of " + (host.empty() ? "its host" : host) + " as well."};
}

// Ray's monitor is not the kernel: it counts only those that it killed itself.
static std::vector<std::string> RayEndAdvice(const Event& end) {
  const std::string& host = end.As<ProcessEnd>().host;
  return {
      "Ray's memory monitor did not kill it: Ray counts no worker killed for memory at that time, and at least one "
      "that crashed. Ray does not see a kill by the kernel or a segmentation fault: on " +
          (host.empty() ? "that node" : host) + ", dmesg -T | grep -iE 'killed process|segfault|xid'.",
      "Read what Ray and the worker wrote: ray logs raylet.out -ip " + (host.empty() ? "ADDRESS" : host) +
          ", and on that node /tmp/ray/session_latest/logs/worker-*-" +
          (end.pid > 0 ? std::to_string(end.pid) : "PID") + ".err."};
}

std::vector<std::string> EndAdvice(const Event& end) {
  if (end.Means(Meaning::timed_out))
    return {
        "Look at its own output: did it end, or was it busy for a long time (compilation, a large allocation, a "
        "checkpoint)?",
        "If it ended: dmesg -T | grep -iE 'killed process|segfault|xid' on its host, and the scheduler's log.",
        end.library == Library::jax
            ? "If it was only busy: raise the limit of the heartbeat (heartbeat_timeout_seconds of "
              "jax.distributed.initialize, where the release has it)."
            : "If it was only busy: raise the limit that the launcher or its framework has for it."};
  // Kubernetes: only the pod is known, and its state.
  if (const auto& told = end.As<ProcessEnd>(); told.of_pod && told.code > 0)
    return {"Read what its last attempt wrote: kubectl logs --previous " + told.host + " (with -c for each container).",
            "kubectl describe pod " + told.host + " shows the exit code, the reason and the events.",
            "Pods in Init or ContainerCreating are only waiting, usually for this one."};
  if (const std::string& log = end.As<ProcessEnd>().log_file; !log.empty())
    return {
        "Read " + log + " for the error itself.",
        "If it shows nothing: dmesg -T | grep -iE 'killed process|segfault|xid' on its host, and the scheduler's log."};
  // A command that was started in a pod, by kubectl exec.
  if (const auto& told = end.As<ProcessEnd>(); told.of_pod)
    return {
        "Look at the pod in which it ran: kubectl describe pod POD shows Last State, Reason (OOMKilled, Error) and "
        "the limits; kubectl get events shows evictions.",
        "OOMKilled: raise the pod's memory limit, or use less (loader workers, cached data).",
        "Otherwise: kubectl logs --previous POD, and dmesg -T of its node."};
  const int64_t code = end.kind == EventKind::segfault ? -11 : end.As<ProcessEnd>().code;
  // A kill leaves no core dump.
  const bool killed = code == -9 || code == 137;
  std::vector<std::string> advice = {"Look for the reason on its host: dmesg -T | grep -iE '" +
                                     std::string(KernelWordsOf(code)) + "', the scheduler's log" +
                                     (killed ? "." : ", the core dump.")};
  if (const std::string& library = end.As<ProcessEnd>().inside; !library.empty() && code == -11) {
    advice.push_back("The fault is inside " + library +
                     ": try another release of that library. A core dump (ulimit -c unlimited) read with gdb shows "
                     "the function, with the library's debug symbols.");
    return advice;
  }
  switch (code) {
    case -11:
      if (end.As<Segfault>().place.function.empty())
        advice.push_back("Segmentation fault: run with PYTHONFAULTHANDLER=1 and keep core dumps.");
      else
        advice.push_back(
            "The Python line only shows which call into native code failed: a core dump (ulimit -c unlimited) read "
            "with "
            "gdb "
            "shows the library. Try another release of it.");
      break;
    case -4:
      advice.push_back(
          "SIGILL: the process executed an instruction that its CPU does not support, or a library stopped itself with "
          "a trap. Compare the CPU with those of hosts on which the job runs (lscpu: AVX-512, AMX, SVE), and install a "
          "build of the native extension for this CPU, or rebuild it here.");
      advice.push_back("PYTHONFAULTHANDLER=1 shows the Python line; a core dump read with gdb shows the library.");
      break;
    case -5:
      advice.push_back(
          "SIGTRAP: a failed check in native code ended the process, or a breakpoint was left in it; the lines before "
          "it and a core dump show which one.");
      break;
    case -8:
      advice.push_back(
          "SIGFPE: native code divided an integer by zero, most often because a size or a count is 0. "
          "PYTHONFAULTHANDLER=1 shows the Python line; a core dump read with gdb shows the function.");
      break;
    case -7:
      advice.push_back(
          "SIGBUS: most often /dev/shm is full (df -h /dev/shm); otherwise a file was truncated while it was mapped.");
      break;
    case -9:
    case 137:
    case 255:  // not told: a kill leaves no word
      if (end.As<ProcessEnd>().spared_by_ray) return RayEndAdvice(end);
      advice.front() =
          std::string(code == 255 ? "These files do not show how it ended. A killed process prints nothing itself, and "
                                    "the kernel's OOM killer is the most frequent reason."
                                  : "SIGKILL: the kernel's OOM killer is its most frequent sender.") +
          " On its host: dmesg -T | grep -iE 'out of "
          "memory|killed process'; then the memory limit of the job or container (sacct -o MaxRSS,ReqMem; kubectl "
          "describe pod; memory.events of its cgroup).";
      advice.push_back(
          code == 255 ? "Without an entry there: read its own output to the end (a traceback, a segmentation fault, a "
                        "watchdog), then the scheduler's log (time limit, preemption)."
                      : "Without an entry in the kernel log: a person or the scheduler killed it (time limit, "
                        "preemption; the scheduler's log).");
      break;
    case -6:
      advice.push_back("SIGABRT: read the lines before it: an assertion, an uncaught C++ exception, or a watchdog.");
      break;
    case -15:
      advice.push_back(
          "SIGTERM: a person, the scheduler or the launcher ended it; the log of the scheduler or launcher says why.");
      break;
    default:
      if (code > 0)
        advice.push_back("Exit code " + std::to_string(code) + " is the program's own: read what it wrote last.");
  }
  return advice;
}

std::string OutputToCapture(const Event* told) {
  const ProcessEnd end = told ? told->As<ProcessEnd>() : ProcessEnd();
  if (end.of_pod)
    return "the output of every container from the start (kubectl logs --previous POD), the events of the pods "
           "(kubectl "
           "describe pod POD) and the kernel log of their nodes (dmesg -T)";
  if (end.named_first)
    return "the output of every rank in a file of its own (mpirun or horovodrun --output-filename DIR) and the kernel "
           "log (dmesg -T)";
  const bool gloo = told && (told->Means(Meaning::gloo_timeout) || told->Means(Meaning::gloo_loss));
  return std::string("the output of every rank in a file of its own (torchrun --redirects 3 --log-dir DIR") +
         (end.first_failure ? ")" : ", srun --output=%t.log)") +
         (gloo ? " and the kernel log (dmesg -T)" : ", the kernel log (dmesg -T) and NCCL logs (NCCL_DEBUG=INFO)");
}

CannotTell QuestionAboutEnd(const Event& end) {
  if (end.As<ProcessEnd>().named_first) return {"Which rank was it, and why did it end?", OutputToCapture(&end)};
  return {"Which process failed first, and why?",
          "the launcher's output with exit codes, and the kernel log of the hosts (dmesg -T)"};
}

std::string EndedSubjectWords(const Event& end, const Subject& subject) {
  const auto& told = end.As<ProcessEnd>();
  return told.of_pod && !told.host.empty() ? "a container of pod " + told.host : SubjectWords(subject);
}

std::string HowItEnded(const Event& event) {
  if (event.kind == EventKind::segfault) {
    const CodePlace& place = event.As<Segfault>().place;
    return "a segmentation fault" + (place.function.empty() ? "" : " in " + CodePlaceWords(place));
  }
  const auto& end = event.As<ProcessEnd>();
  if (end.code < 0) {
    return "signal " + std::to_string(-end.code) + (end.how.empty() ? "" : " (" + end.how + ")") +
           (end.inside.empty() ? "" : " inside " + end.inside);
  }
  if (!end.how.empty() && end.code == 255) return end.how;
  return "exit code " + std::to_string(end.code);
}

bool FollowsLibraryError(const Incident& incident, const Event& end) {
  if (end.kind != EventKind::process_exited || end.As<ProcessEnd>().code <= 0) return false;
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return event.kind == EventKind::nccl_error && (!event.rank.known() || event.rank == end.rank) &&
           event.source.file == end.source.file && event.source.line < end.source.line;
  });
}

const Event* LostDaemonAfter(const Incident& incident, const Event& end) {
  for (const Event& event : incident.events)
    if (event.kind == EventKind::connection_lost && event.As<LostPeer>().kind == PeerKind::daemon &&
        event.source.file == end.source.file && event.source.line > end.source.line)
      return &event;
  return nullptr;
}

void TellLostDaemon(const Event& daemon, Finding& finding) {
  const std::string& host = daemon.As<LostPeer>().address;
  // What is unknown comes last.
  const size_t unknown = finding.headline.find("; the log does not say");
  finding.headline.insert(std::min(unknown, finding.headline.size()),
                          ", and then the launcher lost its daemon on " + (host.empty() ? "another node" : host));
  if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(daemon, "what the launcher reports about it"));
}

}  // namespace tacet
