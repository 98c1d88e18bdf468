// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "rules/rule.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Ranks that do something: whatever else waits, the job has begun.
bool HasBegun(const Case& facts) {
  if (!facts.incident.streams.empty() || !facts.incident.threads.empty()) return true;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    switch (event.kind) {
      case EventKind::progress:
      case EventKind::init_started:
      case EventKind::watchdog_timeout:
      case EventKind::process_finished: return true;
      default: return false;
    }
  });
}

bool IsAsked(const Event& event) { return event.kind == EventKind::start_pending; }

// The one that tells most: a reason before none, what cannot be helped by waiting before the rest.
const Event* LeadOf(const std::vector<const Event*>& events) {
  const auto weight = [](const Event* event) {
    const auto& pending = event->As<Pending>();
    return (pending.why != PendingWhy::not_told) * 2 + (!pending.reason.empty() || !pending.demand.empty());
  };
  const Event* lead = events.front();
  for (const Event* event : events)
    if (weight(event) > weight(lead)) lead = event;
  return lead;
}

std::string GpuWords(int64_t count) { return std::to_string(count) + (count == 1 ? " GPU" : " GPUs"); }

// "; 16 of 16 GPUs are free"
std::string FreeWords(const Pending& pending) {
  if (pending.gpus <= 0 || pending.gpus_used < 0) return "";
  const int64_t free = pending.gpus - pending.gpus_used;
  return "; " + std::to_string(free) + " of " + GpuWords(pending.gpus) + (free == 1 ? " is free" : " are free");
}

std::string RayWords(const Pending& pending) {
  const std::string wanted = pending.gpus_wanted > 0 ? GpuWords(pending.gpus_wanted) : std::string("its resources");
  if (pending.why == PendingWhy::unknown_node)
    return "Ray cannot place the job: it asks for the node '" + pending.who +
           "' by name, and Ray knows its nodes by their addresses" + FreeWords(pending);
  const std::string waits = pending.seconds > 0
                                ? "has waited " + DurationWords(int64_t{pending.seconds} * 1'000'000'000)
                                : std::string("waits");
  return "the job has not started: it " + waits + " for Ray to reserve " + wanted +
         (pending.who.empty()
              ? ""
              : (pending.gpus_wanted == 1 ? " on node " : ", at least one of them on node ") + pending.who) +
         FreeWords(pending);
}

std::string PodWords(const std::vector<const Event*>& events, const Pending& lead) {
  std::vector<std::string> pods;
  for (const Event* event : events)
    if (const auto& one = event->As<Pending>();
        one.by == lead.by && !one.who.empty() && std::find(pods.begin(), pods.end(), one.who) == pods.end())
      pods.push_back(one.who);
  const std::string who = pods.empty()       ? "a pod"
                          : pods.size() == 1 ? "pod " + pods[0]
                                             : std::to_string(pods.size()) + " pods (" + pods[0] + ", " + pods[1] +
                                                   (pods.size() > 2 ? ", ...)" : ")");
  if (lead.reason.empty())
    return who + (pods.size() > 1 ? " are" : " is") +
           " pending: Kubernetes has not started the job's processes there, and these lines do not say why";
  if (lead.gang > 0 && lead.gang_pending > 0 && pods.size() < 2)
    return std::to_string(lead.gang_pending) + " of the group's " + std::to_string(lead.gang) +
           " pods cannot be scheduled: " + lead.reason;
  return who + " cannot be scheduled: " + lead.reason;
}

std::string_view QueueMeaning(PendingWhy why) {
  switch (why) {
    case PendingWhy::no_resources: return "too few nodes are free";
    case PendingWhy::priority: return "other jobs come first";
    case PendingWhy::dependency: return "it depends on another job";
    case PendingWhy::limit: return "a limit of the user, the account or the partition is reached";
    case PendingWhy::held: return "it is held";
    case PendingWhy::begin_time: return "it is scheduled to start later";
    case PendingWhy::nodes_down: return "nodes that it needs are down, drained or reserved";
    case PendingWhy::no_match: return "no node has what it asks for";
    default: return "";
  }
}

std::string QueueWords(const std::vector<const Event*>& events, const Pending& lead) {
  const auto jobs = static_cast<size_t>(std::count_if(
      events.begin(), events.end(), [&](const Event* event) { return event->As<Pending>().by == lead.by; }));
  const std::string_view meaning = QueueMeaning(lead.why);
  const std::string who = lead.who.empty() ? "the job" : "job " + lead.who;
  if (lead.why == PendingWhy::never)
    return who + " will never start: the job that it depends on did not end as the dependency requires (" +
           lead.reason + ")";
  return who + " has not started: Slurm gives the reason " + lead.reason +
         (meaning.empty() ? "" : " (" + std::string(meaning) + ")") +
         (jobs > 1 ? "; " + std::to_string(jobs - 1) + (jobs == 2 ? " more is" : " more are") + " pending in this list"
                   : "");
}

// A queue is there to wait in.
bool IsOrdinary(const Pending& pending) {
  return pending.by == "Slurm" && (pending.why == PendingWhy::no_resources || pending.why == PendingWhy::priority ||
                                   pending.why == PendingWhy::begin_time || pending.why == PendingWhy::not_told);
}

std::vector<std::string> RaySteps(const Pending& pending) {
  if (pending.why == PendingWhy::unknown_node)
    return {
        "Set the address that Ray itself uses: ray status and ray list nodes show it; for vLLM set VLLM_HOST_IP to "
        "that address on every node, not to a name.",
        "Check that every node was started with that address: ray start --node-ip-address."};
  return {
      "ray status: are all nodes there with their GPUs, and what uses the GPUs that are not free?",
      "Release what an earlier run left over: ray list placement-groups, ray list actors; or restart the Ray cluster.",
      pending.who.empty()
          ? "Ask for no more GPUs than the cluster has (tensor and pipeline parallel size), or add nodes."
          : "Check that node " + pending.who +
                " has joined under this address (ray list nodes; for vLLM: set VLLM_HOST_IP on every node), and that "
                "its "
                "GPUs are free."};
}

std::vector<std::string> PodSteps(const Pending& pending) {
  const std::string pod = pending.who.empty() ? "POD" : pending.who;
  switch (pending.why) {
    case PendingWhy::no_resources:
      return {
          "Look at what is free: kubectl describe nodes | grep -E '^Name:|nvidia.com/gpu'; end or shrink whatever "
          "holds the GPUs.",
          "Check that the nodes offer the resource at all: kubectl get nodes -o json | grep nvidia.com/gpu; the device "
          "plugin must run on them.",
          "Start all pods of a job together or not at all (gang scheduling: Kueue, Volcano), or the pods that did "
          "start wait for the others until they time out."};
    case PendingWhy::no_match:
      return {"Add the toleration or the node label that the message names, or remove the selector from the pod.",
              "kubectl describe nodes | grep -E 'Taints|Labels' shows what the nodes have."};
    case PendingWhy::nodes_down:
      return {"Look at the nodes: kubectl get nodes, kubectl describe node NODE; uncordon or repair them."};
    case PendingWhy::volume:
      return {
          "Look at the claim: kubectl get pvc, kubectl describe pvc NAME; its storage class or volume is missing, or "
          "is in another zone."};
    default: break;
  }
  if (pending.gang > 0)
    return {"Free the GPUs for all " + std::to_string(pending.gang) +
                " pods at once: kubectl describe nodes | grep -E '^Name:|nvidia.com/gpu' shows what is in use.",
            "If the job can run with fewer pods: lower minAvailable of the group."};
  return {"Ask the scheduler why: kubectl describe pod " + pod + " (the events at its end)."};
}

std::vector<std::string> QueueSteps(const Pending& pending) {
  const std::string job = pending.who.empty() ? "JOBID" : pending.who;
  switch (pending.why) {
    case PendingWhy::dependency:
    case PendingWhy::never:
      return {"scontrol show job " + job +
              " shows the dependency. If the job that it names failed, afterok can never "
              "be satisfied: cancel job " +
              job + " (scancel) and submit it again."};
    case PendingWhy::held:
      return {"Find out why it is held (scontrol show job " + job + "), then scontrol release " + job + "."};
    case PendingWhy::limit:
      return {
          "Compare the request with the limits: sacctmgr show assoc user=$USER, sacctmgr show qos, scontrol show "
          "partition; ask for less, or for a higher limit."};
    case PendingWhy::nodes_down:
      return {"Look at the nodes: sinfo -R (why they are down or drained), scontrol show reservation.",
              "Do not ask for these nodes by name."};
    case PendingWhy::no_match:
      return {
          "Compare --constraint, --gres, memory and CPUs per task with what the nodes have: sinfo -N -l, scontrol "
          "show node NODE."};
    default: break;
  }
  return {"Nothing is wrong with the job itself; squeue --start -j " + job + " shows when it may begin."};
}

}  // namespace

static RuleAnswer JudgeResourcesPending(const Case& facts) {
  RuleAnswer answer;
  std::vector<const Event*> events;
  for (const Event& event : facts.incident.events)
    if (IsAsked(event)) events.push_back(&event);
  if (events.empty() || HasBegun(facts)) return answer;
  const Event* lead = LeadOf(events);
  Pending pending = lead->As<Pending>();
  // Its table and its warnings tell different parts.
  for (const Event* event : events) {
    const auto& other = event->As<Pending>();
    if (other.by != pending.by) continue;
    if (pending.gpus < 0) pending.gpus = other.gpus, pending.gpus_used = other.gpus_used;
    pending.gpus_wanted = std::max(pending.gpus_wanted, other.gpus_wanted);
    pending.seconds = std::max(pending.seconds, other.seconds);
  }
  Finding finding;
  finding.cause = "resources-pending";
  const bool ordinary = IsOrdinary(pending);
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  finding.status = facts.analyses.end.kind == JobEnding::crashed ? Status::crash : Status::hang;
  if (ordinary) finding.severity = Severity::warning, finding.status = Status::undetermined;
  const bool ray = pending.by == "Ray", slurm = pending.by == "Slurm";
  finding.headline = ray ? RayWords(pending) : slurm ? QueueWords(events, pending) : PodWords(events, pending);
  finding.fix = ray ? RaySteps(pending) : slurm ? QueueSteps(pending) : PodSteps(pending);
  finding.evidence.push_back(CiteEvent(*lead, "what " + pending.by + " says"));
  for (const Event* event : events)
    if (event != lead && finding.evidence.size() < 3)
      finding.evidence.push_back(CiteEvent(*event, "what " + event->As<Pending>().by + " says"));
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kResourcesPendingRule;
const Rule kResourcesPendingRule = {
    "resources-pending",
    "The job waits for its resources",
    "ray status, kubectl get pods and events, squeue, or the output of the launcher",
    "The scheduler has not started the job, or a part of it: too little is free, or what it asks for does not exist. "
    "No rank runs yet, and NCCL is not involved.",
    "Pending tasks of a job that makes progress are normal (Ray Data queues them). A pod that is pending for a few "
    "seconds is being started. A pod that crashes after it was scheduled is rank-dead.",
    {"Look at what is free and what uses the rest: ray status; kubectl describe nodes; squeue, sinfo.",
     "Compare what the job asks for with what a single node has."},
    {"Start all processes of a job together or not at all.", "Watch the queue, not only the job."},
    JudgeResourcesPending};

}  // namespace tacet
