// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <string>

#include "rules/findings/space_use_finding.h"
#include "rules/unexplained/told_finding.h"
#include "rules/unexplained/told_remedy.h"
#include "rules/words/words.h"

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

// The system says that there is no space, in that line or in one close to it: "Call to posix_fallocate failed: No space
// left on device". "Error while creating shared memory segment" alone has other reasons, too.
static bool ProvesNoSpace(const Case& facts, const Event& told) {
  if (told.kind == EventKind::shared_memory_full) return told.As<NoSpace>().limit != SpaceLimit::not_told;
  if (told.As<Warning>().number > 0) return true;
  constexpr uint32_t kCloseLines = 6;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    const uint32_t a = event.source.line, b = told.source.line;
    return event.kind == EventKind::disk_full && event.source.file == told.source.file &&
           std::max(a, b) - std::min(a, b) <= kCloseLines;
  });
}

// misc/shmutils.cc:103 NCCL WARN Cuda failure 'invalid argument'
// misc/shmutils.cc:114 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-k2 (size 9637888)
// The segment is there, and CUDA refuses to register it; so it is where the whole call ends as an error of CUDA, not of
// the system.
static bool IsRefusedByCuda(const Case& facts, const Event& told) {
  if (told.kind != EventKind::nccl_warning || told.As<Warning>().number > 0) return false;
  constexpr uint32_t kLinesBefore = 3, kLinesOfAnError = 8;
  constexpr int64_t kUnhandledCudaError = 1;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    if (event.source.file != told.source.file || event.speaker != told.speaker) return false;
    const uint32_t line = event.source.line, own = told.source.line;
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "cuda-failure")
      return line < own && own - line <= kLinesBefore;
    return event.kind == EventKind::nccl_error && event.As<NcclError>().code == kUnhandledCudaError && line <= own &&
           own - line <= kLinesOfAnError;
  });
}

// include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied
static bool IsDenial(const Event& event) {
  return event.kind == EventKind::nccl_warning && event.As<Warning>().id.starts_with("shm-") &&
         event.As<Warning>().number == EACCES;
}

// The system's answer stands in that line, or in one just above it: "Error while creating shared memory segment ...".
static bool IsDenied(const Case& facts, const Event& told) {
  if (IsDenial(told)) return true;
  if (told.kind != EventKind::nccl_warning || told.As<Warning>().number > 0) return false;
  constexpr uint32_t kLinesBefore = 3;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    return IsDenial(event) && event.source.file == told.source.file && event.speaker == told.speaker &&
           event.source.line < told.source.line && told.source.line - event.source.line <= kLinesBefore;
  });
}

// No cause of its own: there is space, and the process may not use it.
static Finding DeniedFinding(const Case& facts, const ToldEvents& denied) {
  Finding finding = ToldFinding(facts, "", denied, "the system refused it");
  finding.confidence = Confidence::likely;
  finding.headline = "NCCL is not allowed to create files in /dev/shm: permission denied for " + TellerWords(denied) +
                     HostUnknownWords(denied);
  finding.explanation =
      "NCCL creates a file in /dev/shm for each pair of ranks of a host. There is space, but the "
      "process may not write there.";
  finding.fix = {
      "On that host, and inside the container: ls -ld /dev/shm must show drwxrwxrwt (chmod 1777 /dev/shm); look at its "
      "mount options and at the user of the process.",
      "Look for files that another user left under the same name: ls -l /dev/shm/nccl-*.",
      "NCCL_SHM_DISABLE=1 works around it, but is slower."};
  return finding;
}

// No cause of its own: what CUDA refuses has many reasons.
static Finding RefusedFinding(const Case& facts, const ToldEvents& refused) {
  Finding finding = ToldFinding(facts, "", refused, "the segment could not be created");
  finding.confidence = Confidence::likely;
  const auto answer = std::find_if(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "cuda-failure";
  });
  std::string words;
  if (answer != facts.incident.events.end()) {
    finding.evidence.insert(finding.evidence.begin(), CiteEvent(*answer, "what CUDA answered"));
    if (const std::string& object = answer->As<Warning>().object; !object.empty()) words = " with '" + object + "'";
  }
  const bool placed = !refused.ranks.empty() || !refused.rankless.empty() || !refused.hosts.empty();
  finding.headline = "CUDA could not register NCCL's shared memory with the GPU" +
                     (placed ? " " + AtTellerWords(refused) : std::string()) +
                     (words.empty() ? "" : ": the call fails" + words) + HostUnknownWords(refused);
  finding.explanation =
      "NCCL creates a file in /dev/shm and registers it with CUDA as pinned memory. No line says that /dev/shm is "
      "full: "
      "the call of CUDA failed.";
  finding.fix = {"NCCL_SHM_DISABLE=1 works around it.",
                 "Check the limits on pinned memory: ulimit -l in the container; WSL limits pinned memory.",
                 "Compare the driver (nvidia-smi) with the CUDA version of NCCL; rule out space with df -h /dev/shm."};
  return finding;
}

extern const Rule kSharedMemoryFullRule;

static RuleAnswer JudgeToldSharedMemory(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents refused =
      CollectTold(facts, [&](const Event& event) { return TellsSharedMemory(event) && IsRefusedByCuda(facts, event); });
  if (refused) answer.findings.push_back(RefusedFinding(facts, refused));
  const ToldEvents denied = CollectTold(facts, IsDenial);
  if (denied) answer.findings.push_back(DeniedFinding(facts, denied));
  const ToldEvents told = CollectTold(facts, [&](const Event& event) {
    return TellsSharedMemory(event) && !IsRefusedByCuda(facts, event) && !IsDenied(facts, event);
  });
  if (!told) {
    if (auto full = refused || denied ? std::nullopt : FullSpaceFinding(facts, true))
      answer.findings.push_back(std::move(*full));
    return answer;
  }
  const bool proven = std::any_of(told.events.begin(), told.events.end(),
                                  [&](const Event* event) { return ProvesNoSpace(facts, *event); });
  const bool nccl = told.events.front()->kind == EventKind::nccl_warning;
  const bool loader = std::any_of(told.events.begin(), told.events.end(),
                                  [](const Event* event) { return event->Means(Meaning::loader_worker); });
  Finding finding = ToldFinding(facts, "shared-memory-full", told,
                                proven ? "/dev/shm has no space left"
                                : nccl ? "shared memory could not be created"
                                       : "a worker of the data loader got SIGBUS (bus error)");
  const auto& steps = kSharedMemoryFullRule.fix;
  finding.fix = {std::string(steps[0]), std::string(steps[1])};
  if (loader || !nccl) finding.fix.emplace_back(steps[2]);
  if (nccl) finding.fix.emplace_back(steps[3]);
  finding.headline = (proven ? "/dev/shm is full: " + TellerWords(told) + " could not allocate shared memory" +
                                   (nccl ? " for NCCL" : "")
                      : nccl ? "NCCL could not create shared memory for " + TellerWords(told) +
                                   ": /dev/shm is probably full, but the log does not give the reason"
                             : "/dev/shm is most likely full: a data loader worker of " + TellerWords(told) +
                                   " was killed by SIGBUS, as happens when shared memory runs out") +
                     HostUnknownWords(told);
  if (!proven && finding.confidence == Confidence::certain) finding.confidence = Confidence::likely;
  AskWhichHost(told, answer);
  answer.findings.push_back(std::move(finding));
  return answer;
}

static RuleAnswer JudgeSharedMemory(const Case& facts) {
  RuleAnswer answer = JudgeToldSharedMemory(facts);
  if (auto finding = RemedyFinding(facts, "shared-memory-full"); finding && answer.findings.empty())
    answer.findings.push_back(std::move(*finding));
  return answer;
}

const Rule kSharedMemoryFullRule = {
    "shared-memory-full",
    "/dev/shm is full",
    "the rank's output (data loader, PyTorch), its NCCL log (WARN), or df -h",
    "NCCL and data loader workers exchange data through files in /dev/shm, and there is no space left. A container has "
    "64 MiB there by default. A process that writes beyond it gets an error, or is killed by SIGBUS.",
    "The host or the cgroup may have plenty of memory: this limit belongs to one file system. 'Too many open files' in "
    "the same place is the limit on file descriptors. SIGBUS alone may also come from a file that was truncated while "
    "it was mapped.",
    {"Container: --shm-size=16g or --ipc=host; Kubernetes: an emptyDir with medium: Memory mounted at /dev/shm.",
     "On the host: df -h /dev/shm; remove nccl-* and torch_* files that dead jobs left there.",
     "Data loaders: fewer workers, a smaller prefetch_factor, or smaller batches: prepared batches are kept in "
     "/dev/shm.",
     "If only NCCL is affected: NCCL_SHM_DISABLE=1 avoids it, but is slower."},
    {"Check df -h /dev/shm at the start of the job: 1 GiB or more per GPU is common."},
    JudgeSharedMemory};

}  // namespace tacet
