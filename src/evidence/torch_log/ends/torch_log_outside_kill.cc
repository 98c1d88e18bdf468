// SPDX-License-Identifier: Apache-2.0
// Whoever ends a job from outside: a cluster that needs the node, a cloud that takes the machine back, a signal.
#include <algorithm>
#include <initializer_list>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_launcher.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "model/events/event.h"

namespace tacet {
namespace {

bool MentionsOneOf(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return Contains(text, part); });
}

// Received 15 death signal, shutting down workers
// Received Signals.SIGTERM death signal, shutting down workers
// torch.distributed.elastic.multiprocessing.api.SignalException: Process 1234 got signal: 15
int64_t FindReceivedSignal(std::string_view text) {
  if (Contains(text, "death signal, shutting down workers")) {
    const auto rest = After(text, "Received ");
    if (!rest) return -1;
    if (auto name = After(*rest, "Signals.")) return SignalNumber(TakeWord(*name));
    return IntAfter(text, "Received ").value_or(-1);
  }
  // lightning.pytorch.utilities.exceptions.SIGTERMException
  // FatalError: `Termination signal` is detected by the operating system.                       Paddle
  if (ContainsAny(text, {"exceptions.SIGTERMException", "`Termination signal` is detected by"})) return 15;
  if (Contains(text, "SignalException") || Contains(text, "Process "))
    return IntAfter(text, "got signal: ").value_or(-1);
  return -1;
}

// The node was low on resource: memory. Threshold quantity: 100Mi, available: 96Mi.
// The node had condition: [DiskPressure].
std::string_view LowResource(std::string_view text) {
  if (Contains(text, "[MemoryPressure]")) return "memory";
  if (Contains(text, "[DiskPressure]")) return "disk space";
  if (Contains(text, "[PIDPressure]")) return "process ids";
  const auto rest = After(text, "was low on resource: ");
  return rest ? rest->substr(0, rest->find_first_of("., ")) : std::string_view();
}

// 9m   Warning   Evicted   pod/trainer-1   The node was low on resource: ...
// trainer-1   0/1     Evicted   0          7h12m
// trainer-1   team-a   Evicted   gpu-09   Pod The node had condition: [DiskPressure].
// 95s   Normal   TaintManagerEviction   taint-eviction-controller   Marking for deletion Pod default/trainer-3
std::string_view EvictedPod(std::string_view text) {
  if (auto pod = After(text, "Marking for deletion Pod ")) {
    const std::string_view name = TakeWord(*pod);
    return name.substr(name.rfind('/') + 1);
  }
  if (auto pod = After(text, " pod/")) return TakeWord(*pod);
  std::string_view rest = Trim(text);
  const std::string_view name = TakeWord(rest), second = TakeWord(rest);
  const bool ready = second.find('/') != std::string_view::npos && IsDigit(second[0]);
  if (name.empty() || TakeWord(rest) != "Evicted") return {};
  return ready || Contains(rest, " The node had condition: ") ? name : std::string_view();
}

// Every line about a pod may tell something of it: what ran out, and how much of it a container used.
//   Container pytorch was using 812Gi, request is 0, has larger consumption of ephemeral-storage.
void AddEviction(const LogLine& line, std::string_view resource, RecordList& out) {
  const std::string_view pod = EvictedPod(line.text);
  if (pod.empty()) return AddSchedulerKill(line, SchedulerKill::evicted, resource, out);
  const auto [record, is_new] = out.AddOnce(TorchLogKind::scheduler_kill, line, "evicted " + std::string(pod));
  record->repeats = 1;  // the same eviction, told again
  if (is_new) {
    record->value = static_cast<int64_t>(SchedulerKill::evicted);
    record->host = Capped(pod, 200);
  }
  if (!is_new && (resource.empty() || !record->object.empty())) return;
  record->source = line.source;  // the line that tells most
  record->object = Capped(resource, 200);
  record->text = Capped(line.text, 600);
  if (auto use = After(line.text, " was using ")) record->cure = Capped(use->substr(0, use->find_first_of(", ")), 40);
}

// Warning  Evicted    2m    kubelet  The node was low on resource: ephemeral-storage.
// Warning  Preempted  10s   default-scheduler  Preempted by default/urgent-0 on node gpu-7
// Normal   TaintManagerEviction  11s  taint-eviction-controller  Marking for deletion Pod default/trainer-3
// trainer-3   0/1     Evicted   0          12h
// Job was active longer than specified deadline
// A cache that evicts and an engine that preempts sequences say such words, too: a pod or a node must be there.
bool ReadKubernetes(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, "node was low on resource: ") || Contains(text, "The node had condition: [")) {
    AddEviction(line, LowResource(text), out);
  } else if (Contains(text, "TaintManagerEviction")) {
    AddEviction(line, "", out);
  } else if (MentionsOneOf(text, {"Evicted", "evicted"}) &&
             (MentionsOneOf(text, {"kubelet", "Pod ", "pod ", "pod/", "Reason:"}) || !EvictedPod(text).empty())) {
    AddEviction(line, "", out);
  } else if (MentionsOneOf(text, {"Preempted by ", "Preempted to accommodate"}) ||
             (Contains(text, "Preempted") && MentionsOneOf(text, {"default-scheduler", "Reason:", "kueue"}))) {
    AddSchedulerKill(line, SchedulerKill::preempted, "Kubernetes", out);
  } else if (Contains(text, "active longer than specified deadline") || Contains(text, "Reason:  DeadlineExceeded") ||
             Contains(text, "Reason: DeadlineExceeded")) {
    AddSchedulerKill(line, SchedulerKill::time_limit, "activeDeadlineSeconds", out);
  } else {
    return false;
  }
  return true;
}

// Instance gke-a3-7 was preempted.
// Received EC2 Spot Instance interruption notice
// Pod was terminated in response to imminent node shutdown.
bool ReadCloud(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool machine = MentionsOneOf(text, {"nstance", "VM ", "machine ", "compute.instances"});
  const bool taken = MentionsOneOf(text, {"was preempted", "been preempted", "instances.preempted"}) && machine;
  const bool spot = MentionsOneOf(text, {"pot interruption", "pot Interruption", "pot Instance", "pot instance"}) &&
                    MentionsOneOf(text, {"nterrupt", "reclaim", "terminat", "preempt"});
  const bool notice = MentionsOneOf(text, {"nterruption notice"}) && MentionsOneOf(text, {"pot", "EC2", "nstance"});
  if (!taken && !spot && !notice && !Contains(text, "imminent node shutdown")) return false;
  AddSchedulerKill(line, SchedulerKill::reclaimed, "", out);
  return true;
}

}  // namespace

void AddSchedulerKill(const LogLine& line, SchedulerKill kind, std::string_view object, RecordList& out,
                      std::string_view use) {
  const auto [record, is_new] =
      out.AddOnce(TorchLogKind::scheduler_kill, line,
                  std::to_string(static_cast<int>(kind)) + '/' + std::string(object.substr(0, 100)));
  if (!is_new) return;
  record->value = static_cast<int64_t>(kind);
  record->object = Capped(object, 200);
  record->cure = Capped(use, 40);
  record->text = Capped(line.text, 600);
}

LineUse ReadOutsideKill(const LogLine& line, RecordList& out) {
  if (!line.has(Keyword::outside_kill) && !line.has(Keyword::death_signal)) return LineUse::not_understood;
  if (const int64_t signal = FindReceivedSignal(line.text); signal > 0 && signal < 65) {
    AddSchedulerKill(line, SchedulerKill::signal, SignalName(signal), out);
    return LineUse::understood;
  }
  if (Contains(line.text, "exiting program after receiving SIGTERM")) {
    AddSchedulerKill(line, SchedulerKill::signal, "SIGTERM", out);
    return LineUse::understood;
  }
  if (Contains(line.text, "andling auto-requeue signal")) {
    AddSchedulerKill(line, SchedulerKill::requeued, "Slurm", out);  // Lightning handles Slurm's alone
    return LineUse::understood;
  }
  return ReadKubernetes(line, out) || ReadCloud(line, out) ? LineUse::understood : LineUse::not_understood;
}

}  // namespace tacet
