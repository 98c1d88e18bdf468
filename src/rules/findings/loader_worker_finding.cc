// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/loader_worker_finding.h"

#include <utility>

#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Who ends the job kills the children, too: a worker that was killed after somebody else had failed says nothing.
bool IsKilledLater(const Case& facts, const Event& event) {
  const Outcome& outcome = facts.analyses.outcome;
  for (const Event* first : {outcome.first_failure, outcome.first_timeout, outcome.first_end})
    if (first && first != &event && (first->rank != event.rank || !event.rank.known()) && CameBefore(*first, event))
      return true;
  return false;
}

}  // namespace

void JudgeKilledLoaderWorker(const Case& facts, RuleAnswer& answer) {
  if (facts.analyses.outcome.ended_in_order) return;
  const Event* first = nullptr;
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::exception && IsKilledLoaderWorker(event) && !IsKilledLater(facts, event) &&
        (!first || CameBefore(event, *first)))
      first = &event;
  if (!first) return;
  Finding finding;
  finding.cause = "rank-dead";
  finding.status = facts.analyses.outcome.hangs() ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  if (first->rank.known()) finding.ranks = {first->rank};
  finding.affected_ranks = facts.standstill.waiters;
  std::erase(finding.affected_ranks, first->rank);
  finding.headline = LoaderWorkerWords(*first, first->rank.known() ? RankWords(finding.ranks) : "a rank") +
                     "; the usual reason is lack of host memory" +
                     (first->rank.known() ? "" : "; the log does not say which rank it belongs to");
  finding.evidence.push_back(CiteEvent(*first, "a child of the rank was killed"));
  finding.fix = {
      "Check whether the kernel killed it for lack of memory: dmesg -T | grep -i 'killed process'. Also check the "
      "memory limit of the container or job.",
      "Lower num_workers, prefetch_factor and what each worker caches, or raise the job's memory limit; worker memory "
      "counts once for each worker of each rank.",
      "Check /dev/shm (df -h /dev/shm): batches travel through it, and it counts as memory of the container."};
  if (facts.standstill.operation) finding.operation = RefOf(*facts.standstill.operation);
  answer.open.push_back({"What killed the data loader's worker?",
                         "the kernel log of its host (dmesg -T), and the memory limit of the job or container"});
  answer.findings.push_back(std::move(finding));
}

void TellLoaderWorker(const Event& event, const std::string& who, Finding& finding) {
  finding.headline = LoaderWorkerWords(event, who);
  finding.fix = {
      "Run with num_workers=0: the same code then raises, or crashes, in the rank itself, where the traceback shows "
      "the line.",
      "A segmentation fault or an abort comes from a native library of the data code (decoders, OpenCV, HDF5): set "
      "PYTHONFAULTHANDLER=1, and start the workers with multiprocessing_context='spawn' if the library is not safe "
      "to fork.",
      "An exit without a signal is an error or sys.exit in the worker: read its own output, above the traceback."};
}

}  // namespace tacet
