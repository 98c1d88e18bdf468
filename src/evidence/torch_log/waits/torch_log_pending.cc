// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/waits/torch_log_pending.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text_scan.h"
#include "model/events/event.h"

namespace tacet {
namespace {

constexpr int64_t kMostWaitSeconds = 10'000'000;
constexpr std::string_view kStarted = "started";  // TorchLogRecord::file: the wait is over

TorchLogRecord& PendingRecord(const LogLine& line, std::string_view by, std::string_view key, RecordList& out) {
  const auto [record, is_new] =
      out.AddOnce(TorchLogKind::start_pending, line, std::string(by) + " " + std::string(key));
  record->repeats = 1;  // the same wait, told again
  if (is_new) {
    record->host = by;
    record->value = static_cast<int64_t>(PendingWhy::not_told);
    record->value2 = -1;
  }
  return *record;
}

void Tell(TorchLogRecord& record, const LogLine& line, PendingWhy why, std::string_view reason) {
  record.source = line.source;
  record.time = line.time;
  record.text = Capped(Trim(line.text), 600);
  record.file.clear();
  if (reason.empty() && !record.subject.empty()) return;  // it was told before
  record.value = static_cast<int64_t>(why);
  record.subject = Capped(Trim(reason), 300);
}

// ---- Ray ----

bool IsAddress(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789.:") == std::string_view::npos;
}

// {'node:node-a.example.com': 0.001, 'GPU': 1.0}: the node that it asks for.
std::string_view NodeAskedFor(std::string_view demand) {
  const auto node = After(demand, "'node:");
  return node ? node->substr(0, node->find('\'')) : std::string_view();
}

// {'GPU': 1.0, 'CPU': 1.0} * 1, {'GPU': 1.0} * 15
int64_t GpusOf(std::string_view demand) {
  double sum = 0;
  for (std::string_view rest = demand; !rest.empty();) {
    const size_t open = rest.find('{');
    const size_t close = rest.find('}', open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    double gpus = 0, times = 1;
    for (const std::string_view name : {"'GPU': ", "{GPU: ", ", GPU: "})
      if (auto number = After(rest.substr(open, close - open), name); number && gpus == 0) TakeDouble(*number, &gpus);
    rest.remove_prefix(close + 1);
    if (std::string_view tail = rest; TakeLiteral(tail, " * ")) TakeDouble(tail, &times);
    if (gpus > 0 && gpus < 1e6 && times > 0 && times < 1e6) sum += gpus * times;
  }
  return sum > 0 && sum < 1e7 ? std::llround(sum) : -1;
}

void TellRay(const LogLine& line, std::string_view demand, PendingWhy why, std::string_view reason, RecordList& out) {
  TorchLogRecord& record = PendingRecord(line, "Ray", "", out);
  Tell(record, line, why, reason);
  // A warning names one bundle of what the table lists as a whole.
  const int64_t gpus = GpusOf(demand);
  if (demand.empty() || (gpus < record.seq && NodeAskedFor(demand).empty())) return;
  record.function = Capped(Trim(demand), 300);
  record.seq = std::max(record.seq, gpus);
  const std::string_view node = NodeAskedFor(demand);
  record.object = Capped(node, 200);
  // Ray knows its nodes by their addresses.
  if (!node.empty() && !IsAddress(node)) record.value = static_cast<int64_t>(PendingWhy::unknown_node);
}

// "{'GPU': 1.0}", the first of a text.
std::string_view Braces(std::string_view text) {
  const size_t open = text.find('{');
  if (open == std::string_view::npos) return {};
  const size_t close = text.find('}', open);
  return text.substr(open, close == std::string_view::npos ? close : close - open + 1);
}

// "0.0/16.0 GPU", also "8.0/8.0 GPU (8.0 used of 8.0 reserved in placement groups)"
bool TakeUsage(const LogLine& line, RecordList& out) {
  std::string_view rest = Trim(line.text);
  double used = 0, all = 0;
  if (!TakeDouble(rest, &used) || !TakeLiteral(rest, "/") || !TakeDouble(rest, &all) || !TakeLiteral(rest, " GPU"))
    return false;
  if (!rest.empty() && !rest.starts_with(" (")) return false;
  if (!(used >= 0 && used <= all && all < 1e7)) return false;
  TorchLogRecord& record = PendingRecord(line, "Ray", "", out);
  record.count = std::llround(std::ceil(used));
  record.count_out = std::llround(all);
  return true;
}

// Usage:
//  0.0/16.0 GPU
// Demands:
//  {'node:node-a.example.com': 0.001, 'GPU': 1.0} * 1, {'GPU': 1.0} * 15 (PACK): 1+ pending placement groups
// (autoscaler +10m11s) Error: No available node types can fulfill resource request {'GPU': 16.0}. Add suitable ...
// Warning: The following resource request cannot be scheduled right now: {'GPU': 1.0}. This is likely due to ...
// INFO ray_utils.py:214] Waiting for creating a placement group of specs for 70 seconds. specs=[{'GPU': 1.0}, ...
LineUse ReadRayPending(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  for (const std::string_view mark : {" pending placement group", " pending tasks/actors"})
    if (const size_t at = text.find(mark); at != std::string_view::npos && text.starts_with('{')) {
      const size_t colon = text.rfind(": ", at);
      if (colon == std::string_view::npos) return LineUse::not_understood;
      TellRay(line, text.substr(0, colon), PendingWhy::not_told, "", out);
      return LineUse::understood;
    }
  if (const auto demand = After(text, "No available node types can fulfill resource request")) {
    TellRay(line, Braces(*demand), PendingWhy::no_resources, "no node type can fulfil the request", out);
    return LineUse::understood;
  }
  if (const auto demand = After(text, "The following resource request cannot be scheduled right now: ")) {
    TellRay(line, Braces(*demand), PendingWhy::no_resources, "the request cannot be scheduled right now", out);
    return LineUse::understood;
  }
  // The actor or task with ID 5749... cannot be scheduled right now. It requires {CPU: 1.000000} for placement, ...
  if (const auto demand = After(text, " cannot be scheduled right now. It requires ")) {
    TellRay(line, Braces(*demand), PendingWhy::no_resources, "the request cannot be scheduled right now", out);
    return LineUse::understood;
  }
  for (const std::string_view mark : {"Waiting for creating a placement group of specs for ",
                                      "Cannot provide a placement group of placement_group_specs="})
    if (Contains(text, mark)) {
      const auto specs = After(text, "specs=");
      TellRay(line, specs ? specs->substr(0, specs->find(']') + 1) : std::string_view(), PendingWhy::not_told, "", out);
      const auto seconds = IntAfter(text, mark.starts_with('W') ? mark : " within ");
      if (TorchLogRecord& record = PendingRecord(line, "Ray", "", out); seconds && *seconds >= 0)
        record.value2 = std::max(record.value2, std::min(*seconds, kMostWaitSeconds));
      return LineUse::understood;
    }
  // ray.train...WorkerGroupStartupTimeoutError: The worker group startup timed out after 30.0 seconds waiting for 16
  // ...
  if (Contains(text, "The worker group startup timed out after ")) {
    TellRay(line, "", PendingWhy::no_resources, "the worker group did not start in time", out);
    const auto seconds = IntAfter(text, "timed out after ");
    if (TorchLogRecord& record = PendingRecord(line, "Ray", "", out); seconds && *seconds >= 0)
      record.value2 = std::max(record.value2, std::min(*seconds, kMostWaitSeconds));
    return LineUse::understood;
  }
  if (Contains(text, "required GPUs exceeds the total number of available GPUs")) {
    TellRay(line, "", PendingWhy::no_resources, "more GPUs are required than are available", out);
    return LineUse::understood;
  }
  if (text == "(no resource demands)" || ContainsAny(text, {"vLLM is using nccl==", "Loading model weights took"})) {
    if (TorchLogRecord* record = out.Said(TorchLogKind::start_pending, line, "Ray ")) record->file = kStarted;
    return text.starts_with('(') ? LineUse::understood : LineUse::not_understood;
  }
  return TakeUsage(line, out) ? LineUse::understood : LineUse::not_understood;
}

// ---- Kubernetes ----

// "14m", "2d3h", "95s", "3m12s"
int64_t AgeSeconds(std::string_view text) {
  int64_t seconds = 0;
  for (int64_t number = 0; !text.empty();) {
    if (!TakeNumber(text, &number) || number < 0 || number > kMostWaitSeconds || text.empty()) return -1;
    const char unit = text.front();
    const int64_t factor = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : 0;
    if (factor == 0) return -1;
    seconds += number * factor;
    text.remove_prefix(1);
  }
  return std::min(seconds, kMostWaitSeconds);
}

PendingWhy WhyUnschedulable(std::string_view reason) {
  if (Contains(reason, "Insufficient ")) return PendingWhy::no_resources;
  if (ContainsAny(reason, {"PersistentVolumeClaim", "persistentvolumeclaim", "volume node affinity"}))
    return PendingWhy::volume;
  if (ContainsAny(reason, {"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready", "were unschedulable"}))
    return PendingWhy::nodes_down;
  if (ContainsAny(reason, {"taint", "didn't match", "did not match"})) return PendingWhy::no_match;
  return PendingWhy::not_told;
}

// "6/8 tasks in gang unschedulable: pod group is not ready, 6 Pending, 2 Running, 8 minAvailable; ..."
void TellGang(std::string_view reason, TorchLogRecord& record) {
  int64_t pending = 0, all = 0;
  if (!TakeNumber(reason, &pending) || !TakeLiteral(reason, "/") || !TakeNumber(reason, &all)) return;
  if (!reason.starts_with(" tasks in gang") || pending <= 0 || pending > all || all > 1'000'000) return;
  record.group_rank = static_cast<int32_t>(pending);
  record.peer_group_rank = static_cast<int32_t>(all);
}

// Warning  FailedScheduling  12s (x5 over 4m)  default-scheduler  0/5 nodes are available: 5 Insufficient
//   nvidia.com/gpu. preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod.
// 3m12s  Warning  FailedScheduling  pod/trainer-worker-3  pod has unbound immediate PersistentVolumeClaims
LineUse ReadUnschedulable(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  size_t begin = text.find(" nodes are available: ");
  if (begin != std::string_view::npos) {
    const size_t blank = text.find_last_of(" \t'\"", begin - (begin > 0 ? 1 : 0));
    begin = blank == std::string_view::npos ? 0 : blank + 1;
    std::string_view count = text.substr(begin);
    int64_t fit = 0, all = 0;
    if (!TakeNumber(count, &fit) || !TakeLiteral(count, "/") || !TakeNumber(count, &all) || fit != 0)
      return LineUse::not_understood;
  } else if (const size_t gang = text.find(" tasks in gang unschedulable"); gang != std::string_view::npos) {
    // Warning  FailedScheduling  111s  volcano  10/6 tasks in gang unschedulable: job is not ready, 6 Pending.
    const size_t blank = gang > 0 ? text.find_last_of(" \t'\"", gang - 1) : std::string_view::npos;
    begin = blank == std::string_view::npos ? 0 : blank + 1;
  } else {
    begin = text.find("pod has unbound");
    if (begin == std::string_view::npos || !Contains(text, "FailedScheduling")) return LineUse::not_understood;
  }
  std::string_view reason = text.substr(begin);
  reason = reason.substr(0, reason.find(". preemption:"));
  auto pod = After(text.substr(0, begin), "pod/");
  const std::string_view name = pod ? TakeWord(*pod) : std::string_view();
  TorchLogRecord& record = PendingRecord(line, "Kubernetes", name, out);
  Tell(record, line, WhyUnschedulable(reason), reason);
  record.object = Capped(name, 200);
  TellGang(reason, record);
  // "(x5 over 4m)"
  if (const auto since = After(text.substr(0, begin), " over "))
    record.value2 = std::max(record.value2, AgeSeconds(since->substr(0, since->find(')'))));
  return LineUse::understood;
}

// trainer-worker-3   0/1   Pending   0   14m
// A pod that is a few seconds old is always pending.
LineUse ReadPendingPod(const LogLine& line, RecordList& out) {
  constexpr int64_t kUsualSeconds = 60;
  std::string_view words[5];
  if (SplitWords(line.text, words) < 5 || words[2] != "Pending") return LineUse::not_understood;
  std::string_view ready = words[1];
  int64_t here = -1, all = -1;
  if (!TakeNumber(ready, &here) || !TakeLiteral(ready, "/") || !TakeNumber(ready, &all) || here != 0)
    return LineUse::not_understood;
  const int64_t age = AgeSeconds(words[4]);
  if (age < kUsualSeconds) return LineUse::understood;
  TorchLogRecord& record = PendingRecord(line, "Kubernetes", words[0], out);
  if (record.subject.empty()) Tell(record, line, PendingWhy::not_told, "");
  record.object = Capped(words[0], 200);
  record.value2 = std::max(record.value2, age);
  return LineUse::understood;
}

LineUse ReadUnscheduledPod(const LogLine& line, RecordList& out) {
  // Normal  Scheduled  2m  default-scheduler  Successfully assigned team-a/trainer-worker-3 to gpu-node-7
  if (auto assigned = After(line.text, "Successfully assigned ")) {
    std::string_view pod = TakeWord(*assigned);
    pod.remove_prefix(pod.find('/') == std::string_view::npos ? 0 : pod.find('/') + 1);
    for (const std::string_view key : {pod, std::string_view()})
      if (TorchLogRecord* record = out.Said(TorchLogKind::start_pending, line, "Kubernetes " + std::string(key)))
        record->file = kStarted;
    return LineUse::understood;
  }
  if (const LineUse use = ReadUnschedulable(line, out); use != LineUse::not_understood) return use;
  return ReadPendingPod(line, out);
}

// ---- Slurm ----

PendingWhy WhyQueued(std::string_view reason) {
  if (reason.starts_with("Resources")) return PendingWhy::no_resources;
  if (reason.starts_with("Priority")) return PendingWhy::priority;
  if (reason.starts_with("DependencyNeverSatisfied")) return PendingWhy::never;
  if (reason.starts_with("Dependency")) return PendingWhy::dependency;
  if (reason.starts_with("BeginTime") || reason.starts_with("Reservation")) return PendingWhy::begin_time;
  if (reason.starts_with("BadConstraints")) return PendingWhy::no_match;
  if (reason.starts_with("JobHeld") || Contains(reason, "requeued held")) return PendingWhy::held;
  if (ContainsAny(reason, {"NodeNotAvail", "NodeDown", "DRAINED", "DOWN", "PartitionDown", "PartitionInactive"}))
    return PendingWhy::nodes_down;
  if (ContainsAny(reason, {"QOS", "Assoc", "Limit", "Licenses", "Max"})) return PendingWhy::limit;
  return PendingWhy::not_told;
}

bool IsJobId(std::string_view word) {
  return !word.empty() && IsDigit(word[0]) && word.find_first_not_of("0123456789_[]-%,+") == std::string_view::npos;
}

void TellSlurm(const LogLine& line, std::string_view job, std::string_view reason, RecordList& out) {
  TorchLogRecord& record = PendingRecord(line, "Slurm", job, out);
  Tell(record, line, WhyQueued(reason), reason);
  record.object = Capped(job, 60);
}

//   JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
//   88121       gpu train_ll     anna PD       0:00      4 (Resources)
// JobState=PENDING Reason=Resources Dependency=(null)
// srun: job 88121 queued and waiting for resources
// srun: job 88121 has been allocated resources
LineUse ReadQueued(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (auto reason = After(text, "JobState=PENDING Reason=")) {
    TellSlurm(line, "", TakeWord(*reason), out);
    return LineUse::understood;
  }
  for (const std::string_view tool : {"srun: job ", "salloc: job "}) {
    if (!text.starts_with(tool)) continue;
    std::string_view rest = text.substr(tool.size());
    const std::string_view job = TakeWord(rest);
    if (!IsJobId(job)) return LineUse::not_understood;
    if (Trim(rest) == "queued and waiting for resources") {
      TellSlurm(line, job, "Resources", out);
      return LineUse::understood;
    }
    if (Trim(rest) == "has been allocated resources")
      if (TorchLogRecord* record = out.Said(TorchLogKind::start_pending, line, "Slurm " + std::string(job)))
        record->file = kStarted;
    return LineUse::ignored;
  }
  std::string_view words[5];
  if (SplitWords(text, words) < 5 || !IsJobId(words[0]) || (words[4] != "PD" && words[4] != "PENDING"))
    return LineUse::not_understood;
  const size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return LineUse::not_understood;
  TellSlurm(line, words[0], text.substr(open + 1, text.size() - open - 2), out);
  return LineUse::understood;
}

}  // namespace

LineUse ReadPending(const LogLine& line, RecordList& out) {
  if (!line.has(Keyword::pending)) return LineUse::not_understood;
  if (const LineUse use = ReadRayPending(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadUnscheduledPod(line, out); use != LineUse::not_understood) return use;
  return ReadQueued(line, out);
}

void DropSettledWaits(TorchLog& log) {
  std::erase_if(log.records, [](TorchLogRecord& record) {
    if (record.kind != TorchLogKind::start_pending) return false;
    // How much of the cluster is used says nothing by itself.
    const bool waits = !record.function.empty() || !record.subject.empty() || !record.object.empty();
    return !waits || record.file == kStarted;
  });
}

}  // namespace tacet
