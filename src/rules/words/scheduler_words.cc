// SPDX-License-Identifier: Apache-2.0
#include "rules/words/scheduler_words.h"

#include <string>

namespace tacet {
namespace {

enum class BatchSystem : uint8_t { not_told, slurm, pbs, lsf, kubernetes };

BatchSystem SystemOf(const Event& event) {
  if (event.kind == EventKind::process_exited && event.As<ProcessEnd>().of_pod) return BatchSystem::kubernetes;
  const auto& end = event.As<OutsideEnd>();
  if (event.kind == EventKind::scheduler_kill && end.why == SchedulerKill::evicted) return BatchSystem::kubernetes;
  if (event.kind == EventKind::scheduler_kill && end.why == SchedulerKill::unkillable) return BatchSystem::slurm;
  const std::string& by = event.kind == EventKind::job_time_limit ? event.As<TimeLimit>().scheduler : end.by;
  if (by == "Slurm" || by == "step") return BatchSystem::slurm;
  if (by == "PBS" || by == "Moab") return BatchSystem::pbs;
  if (by == "LSF") return BatchSystem::lsf;
  if (by == "Kubernetes" || by == "activeDeadlineSeconds") return BatchSystem::kubernetes;
  return BatchSystem::not_told;
}

constexpr SchedulerWords kOfAny = {
    "Slurm: sacct -j JOB -o State,Reason,Elapsed,Timelimit; Kubernetes: kubectl describe pod; LSF: bhist -l; PBS: "
    "tracejob",
    "--time, walltime, activeDeadlineSeconds", "Slurm --requeue, PBS -r y, LSF -r", "scancel, qdel, bkill"};
constexpr SchedulerWords kOfSlurm = {"sacct -j JOB -o State,Reason,Elapsed,Timelimit", "--time", "sbatch --requeue",
                                     "scancel"};
constexpr SchedulerWords kOfPbs = {"tracejob JOB, or qstat -xf JOB", "qsub -l walltime=HH:MM:SS", "qsub -r y", "qdel"};
constexpr SchedulerWords kOfLsf = {"bhist -l JOB", "bsub -W", "bsub -r", "bkill"};
constexpr SchedulerWords kOfKubernetes = {"kubectl describe pod POD, and kubectl get events",
                                          "activeDeadlineSeconds of the job", "backoffLimit of the job",
                                          "kubectl delete"};

}  // namespace

const SchedulerWords& WordsOfScheduler(const Incident& incident, const Event& kill) {
  BatchSystem system = SystemOf(kill);
  for (const Event& event : incident.events)
    if (system == BatchSystem::not_told) system = SystemOf(event);
  switch (system) {
    case BatchSystem::slurm: return kOfSlurm;
    case BatchSystem::pbs: return kOfPbs;
    case BatchSystem::lsf: return kOfLsf;
    case BatchSystem::kubernetes: return kOfKubernetes;
    case BatchSystem::not_told: break;
  }
  return kOfAny;
}

const Event* ProgressShortlyBefore(const Case& facts, const Event& kill) {
  if (kill.wall_ns == kNoTime || facts.analyses.end.kind == JobEnding::hung) return nullptr;
  const Event* last = nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::progress && event.wall_ns != kNoTime && event.wall_ns <= kill.wall_ns &&
        (!last || event.wall_ns >= last->wall_ns))
      last = &event;
  return last && kill.wall_ns - last->wall_ns <= facts.incident.patience.moved_ns ? last : nullptr;
}

}  // namespace tacet
