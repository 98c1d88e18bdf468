// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/space_use_finding.h"

#include <string>

#include "rules/words/words.h"

namespace tacet {
namespace {

// A loader takes shared memory in pieces of a batch, so that 90 % may be all there is. Large disks are kept nearly full
// on purpose: only what is full counts.
constexpr int32_t kNearlyFullShm = 90, kFullDisk = 99;
constexpr int32_t kGrowth = 20;

bool IsShm(const SpaceUse& use) { return use.mount == "/dev/shm"; }

}  // namespace

std::optional<Finding> FullSpaceFinding(const Case& facts, bool shared_memory) {
  const Event* fullest = nullptr;
  for (const Event& event : facts.incident.events) {
    const auto& use = event.As<SpaceUse>();
    if (event.kind != EventKind::space_use || IsShm(use) != shared_memory) continue;
    if (use.percent < (shared_memory ? kNearlyFullShm : kFullDisk)) continue;
    if (!fullest || use.percent > fullest->As<SpaceUse>().percent) fullest = &event;
  }
  if (!fullest) return std::nullopt;
  const auto& use = fullest->As<SpaceUse>();
  Finding finding;
  finding.cause = shared_memory ? "shared-memory-full" : "disk-full";
  finding.status = Status::degraded;
  finding.severity = Severity::warning;
  finding.confidence = use.percent >= kFullDisk ? Confidence::likely : Confidence::possible;
  if (use.percent < kFullDisk) finding.title = use.mount + " is nearly full";
  const bool grows = use.rows > 1 && use.percent - use.first_percent >= kGrowth;
  finding.headline =
      use.mount + (use.host.empty() ? "" : " on " + use.host) + " is " + std::to_string(use.percent) + " % full (" +
      use.used + " of " + use.size + (use.inodes ? " inodes)" : ")") +
      (grows ? "; it has grown from " + std::to_string(use.first_percent) + " % and is still filling up" : "") +
      (use.percent >= kFullDisk ? "; a process that writes there gets an error"
       : shared_memory && grows ? "; when it is full, a process that writes there gets an error or SIGBUS"
                                : "");
  finding.evidence.push_back(CiteEvent(*fullest, "its usage"));
  const std::string where = use.host.empty() ? "On that host: " : "On " + use.host + ": ";
  if (!shared_memory)
    finding.fix = {where + (use.inodes ? "du --inodes -x --max-depth=1 " : "du -xh --max-depth=1 ") + use.mount +
                       (use.inodes ? " | sort -n" : " | sort -h") +
                       " shows what fills it; remove old checkpoints, core dumps and caches.",
                   "Write checkpoints elsewhere, and keep only the last few (save_total_limit, keep_last)."};
  if (shared_memory && grows)
    finding.fix = {
        "Find out what fills it: ls -l /dev/shm, lsof /dev/shm. Files of a data loader that keep growing are batches "
        "that "
        "are never released, or too many that are prepared ahead.",
        "Keep no references to batches, and use fewer workers and a smaller prefetch_factor.",
        "Give it more space: --shm-size=64g or --ipc=host; Kubernetes: an emptyDir with medium: Memory."};
  return finding;
}

}  // namespace tacet
