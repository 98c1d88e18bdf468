// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/memory_victim.h"

namespace tacet {

bool NamesVictim(const Event& kill) {
  const MemoryVictim& victim = kill.As<OomKill>().victim;
  return kill.kind == EventKind::oom_kill &&
         (victim.by == MemoryKiller::ray || victim.by == MemoryKiller::container_start || !victim.who.empty());
}

std::string VictimSentence(const Event& kill) {
  const MemoryVictim& victim = kill.As<OomKill>().victim;
  const std::string place = victim.host.empty() ? "" : " on " + victim.host;
  if (victim.by == MemoryKiller::systemd)
    return "the processes of " + victim.who + " were killed for lack of memory (as systemd reports)";
  if (victim.by == MemoryKiller::container_start)
    return "a container did not start: its memory limit is too low even for its first process, which was killed for "
           "lack of memory; no program had run in it";
  if (victim.by != MemoryKiller::ray)
    return "Kubernetes killed pod " + victim.who + place + " for lack of memory (OOMKilled" +
           (victim.amount.empty() ? ")" : "; its limit is " + victim.amount + ")");
  return "Ray's memory monitor killed " + (victim.who.empty() ? "a worker" : "actor " + victim.who) +
         (kill.pid > 0 ? " (pid " + std::to_string(kill.pid) + ")" : "") + place +
         " because the node ran low on memory" + (victim.amount.empty() ? "" : " (" + victim.amount + " used)");
}

std::vector<std::string> VictimSteps(const Event& kill) {
  if (kill.As<OomKill>().victim.by == MemoryKiller::systemd)
    return {
        "See what grew: journalctl -u systemd-oomd, systemctl status of the unit (Memory, and its limit MemoryMax), "
        "and what each rank keeps in host memory (data loader workers, cached datasets, pinned buffers).",
        "systemd-oomd kills a whole unit once memory is short for a few seconds, a login session with all that runs in "
        "it included: run the job in a unit of its own (systemd-run --scope -p ManagedOOMMemoryPressure=auto), or "
        "through the scheduler.",
        "Lower the use, or add memory or swap: otherwise the kernel's OOM killer is next."};
  if (kill.As<OomKill>().victim.by == MemoryKiller::container_start)
    return {
        "Raise the container's memory limit (resources.limits.memory; docker run --memory). Check its unit: in "
        "Kubernetes 512m is half a byte, and 512Mi is 512 MiB.",
        "kubectl describe pod POD shows the limit that is in effect; a LimitRange of the namespace may set one.",
        "If the limit is large enough: the node itself may be out of memory (kubectl describe node, dmesg -T)."};
  if (kill.As<OomKill>().victim.by == MemoryKiller::ray)
    return {
        "Look at what fills the host memory of that node: offloaded optimizer states and parameters, pinned buffers, "
        "Ray's object store, data loaders, checkpoint copies. Put fewer workers on the node, or offload less.",
        "Ray kills the newest task or actor once the node passes RAY_memory_usage_threshold (0.95 of the memory). "
        "Raise it, or switch the monitor off with RAY_memory_monitor_refresh_ms=0, only if memory is left: otherwise "
        "the kernel's OOM killer is next.",
        "See what each process used: ray logs raylet.out -ip NODE, ray memory."};
  return {
      "Raise the container's memory limit (resources.limits.memory), or lower what it uses: data loader workers, "
      "cached "
      "datasets, pinned buffers, checkpoint copies. Files in an emptyDir with medium Memory (/dev/shm) count as well.",
      "See how the use grew: kubectl top pod --containers, or container_memory_working_set_bytes in the monitoring.",
      "What ranks in other pods report (closed connections, timeouts) is a consequence: communication needs no fix."};
}

}  // namespace tacet
