// SPDX-License-Identifier: Apache-2.0
#include "rules/told_finding.h"

namespace tacet {

// Error: failed to extend /dev/shm/nccl-k2 to 9637892 bytes, error: No space left on device (28)
// Other numbers mean that the file exists already, or that somebody may not write there.
static bool TellsSharedMemory(const Event& event) {
  if (event.kind == EventKind::shared_memory_full) return true;
  if (!IsFatalWarning(event, {"shm-extend-failed"})) return false;
  constexpr int64_t kNotTold = -1, kNoMemory = 12, kNoSpace = 28;
  const int64_t error = event.As<Warning>().number;
  return error == kNotTold || error == kNoMemory || error == kNoSpace;
}

static RuleAnswer JudgeSharedMemory(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, TellsSharedMemory);
  if (!told) return answer;
  Finding finding = ToldFinding(facts, "shared-memory-full", told, "/dev/shm has no space left");
  const bool nccl = told.events.front()->kind == EventKind::nccl_warning;
  finding.headline = "/dev/shm is full for " + TellerWords(told) + ": " +
                     (nccl ? "NCCL could not get shared memory" : "shared memory could not be allocated") +
                     RankUnknownWords(told);
  AskWhichRank(told, answer);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kSharedMemoryFullRule;
const Rule kSharedMemoryFullRule = {
    "shared-memory-full",
    "/dev/shm is full",
    "the rank's output (data loader, PyTorch) or NCCL log (WARN)",
    "NCCL and data loader workers exchange data through files in /dev/shm, and there is no space left. A container has "
    "64 MiB there by default. A process that writes beyond it gets an error, or is killed by SIGBUS.",
    "The host or the cgroup may have plenty of memory: this limit belongs to one file system. 'Too many open files' in "
    "the same place is the limit on file descriptors. SIGBUS alone may also come from a file that was truncated while "
    "it was mapped.",
    {"Container: --shm-size=16g or --ipc=host; Kubernetes: an emptyDir with medium: Memory mounted at /dev/shm.",
     "On the host: df -h /dev/shm; remove nccl-* and torch_* files that dead jobs left there.",
     "Data loaders: fewer workers, a smaller prefetch_factor, or torch.multiprocessing.set_sharing_strategy"
     "('file_system').",
     "NCCL alone: NCCL_SHM_DISABLE=1 works around it, but is slower."},
    {"Check df -h /dev/shm at the start of the job: 1 GiB per GPU or more is usual."},
    JudgeSharedMemory};

}  // namespace tacet
