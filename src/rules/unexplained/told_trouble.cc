// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_trouble.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "model/events/event_witness.h"
#include "rules/unexplained/benchmark_verdict.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kMostOfNote = 2;  // lines of a note that are cited with it

// Between two pauses nothing is slow: what happens at each of them is looked for.
std::vector<std::string> StepsOfPauses(const ToldPlace& told) {
  const std::string every = std::to_string(told.every) + " " + told.steps;
  return {"Look for what the program does once every " + every +
              ": logging, evaluation, a checkpoint, gradient accumulation, the prefetching of the data loader.",
          "Record at least " + std::to_string(told.every + 1) +
              " steps in a row on all ranks with torch.profiler, so that a pause is among them, and read the traces "
              "with tacet profile."};
}

// The text says what the fast and the slow case differ in: that is looked at first. `differs` is SlowCondition's.
std::vector<std::string> StepsOfDifference(const std::string& differs) {
  if (differs == "the number of nodes")
    return {
        "Look at the network between the nodes first: NCCL_DEBUG=INFO must show 'Using network IB' (or the name of the "
        "plugin), not Socket, and NET/IB with GDRDMA for the connections between nodes.",
        "Measure it without the program: all_reduce_perf of nccl-tests on one node, then on two; ib_write_bw or iperf3 "
        "between two hosts. Compare with what a step must send: the gradients once or twice per step."};
  if (differs == "the number of GPUs")
    return {
        "Look at the path between the GPUs first: nvidia-smi topo -m (NVLink, PCIe, or across sockets), and "
        "NCCL_DEBUG=INFO, which shows P2P or SHM for each pair; all_reduce_perf of nccl-tests measures it.",
        "Then at what the processes share: CPU cores (OMP_NUM_THREADS, loader workers for each rank), storage, and the "
        "batch size for each GPU, which must stay the same."};
  return {
      "Compare the two versions with the same script and data: pip list of both, torch.__config__.show(), the NCCL "
      "version that NCCL_DEBUG=VERSION prints, and a profile of one step each (torch.profiler).",
      "Go back to the fast version until the difference is found, and try the versions between them one by one."};
}

// Some GPUs run nothing, and those at 100 % most likely wait for them inside of a collective.
std::vector<std::string> StepsOfIdleGpus() {
  return {
      "Look first at the processes of the GPUs at 0 % (nvidia-smi lists them): take their stacks when it is slow "
      "(py-spy dump --pid PID). The GPUs at 100 % most likely wait for them: NCCL's kernels keep a GPU busy while they "
      "wait.",
      "If they wait for their next batch: more loader workers, the data on a local disk, and the free memory of the "
      "host (free -g), since a full page cache slows down a job that has read for a while."};
}

// The GPU is idle between steps: what a step waits for is on the host, most often its data.
std::vector<std::string> StepsOfIdleSteps() {
  return {
      "Measure the time until the next batch arrives against the whole step (two time stamps around the loader's "
      "next(), "
      "or torch.profiler): if it fills the gap, the data is late.",
      "Then: copy the data to a local disk (network storage such as NFS is often the limit: iostat -x 5, nfsiostat), "
      "use "
      "more loader workers, pin_memory=True and a larger prefetch_factor.",
      "If the next batch is there at once: look for what synchronizes on each step (.item(), printing, saving, "
      "validation)."};
}

std::vector<std::string> StepsOfSlowness(const Incident& incident) {
  const auto& runs = incident.benchmark_runs;
  if (!runs.empty() && std::all_of(runs.begin(), runs.end(), MeasuresNetwork))
    return {
        "Try several streams (iperf3 -P 8), and watch the cores meanwhile (top, then 1): one stream is limited by one "
        "core.",
        "Check the MTU on both hosts (ip link), the adapters' speed (ethtool INTERFACE) and their PCIe link (lspci "
        "-vv, LnkSta).",
        "If the adapters can do RDMA, measure it as well: ib_write_bw --report_gbits; NCCL uses it instead of TCP."};
  if (!runs.empty())
    return {
        "Compare with what the hardware allows, and with an earlier run: tacet bandwidth, tacet compare BEFORE AFTER.",
        "Run it with NCCL_DEBUG=INFO: the log shows which adapters and how many channels NCCL uses."};
  return {
      "Compare with a run that is fast: the same lines of its log, and the settings of both (batch size, parallel "
      "sizes, precision, data-loader workers, versions).",
      "Find out what a step waits for: record one or two steps on all ranks with torch.profiler, and read the traces "
      "with tacet profile."};
}

std::vector<std::string> StepsOfAStop() {
  return {
      "Find out whether the processes still run (ps). If they do, take their stacks (py-spy dump --pid PID).",
      "If they do not: look for the exit code in the launcher's last lines, and at dmesg -T, free memory and free disk "
      "space on the hosts."};
}

// A note whose words are the headline is no longer said a second time.
void TakeNote(Diagnosis& diagnosis, Finding& finding) {
  if (diagnosis.findings.empty()) return;
  const Finding& note = diagnosis.findings.front();
  if (note.severity != Severity::note || note.headline.empty() || !diagnosis.headline.starts_with(note.headline))
    return;
  const auto cited = std::min(note.evidence.size(), kMostOfNote);
  finding.evidence.insert(finding.evidence.end(), note.evidence.begin(),
                          note.evidence.begin() + static_cast<std::ptrdiff_t>(cited));
  finding.fix.insert(finding.fix.begin(), note.fix.begin(), note.fix.end());
  diagnosis.findings.erase(diagnosis.findings.begin());
}

}  // namespace

const Event* FindToldWords(const Incident& incident, EventKind kind) {
  const auto found = std::find_if(incident.events.begin(), incident.events.end(),
                                  [&](const Event& event) { return event.kind == kind; });
  return found == incident.events.end() ? nullptr : &*found;
}

bool IsTroubleTold(const Incident& incident) {
  return FindToldWords(incident, EventKind::told_slow) || FindToldWords(incident, EventKind::told_stop);
}

void AddToldTrouble(const Case& facts, Diagnosis& diagnosis) {
  if (diagnosis.status != Status::healthy && diagnosis.status != Status::undetermined) return;
  const Event* slow = FindToldWords(facts.incident, EventKind::told_slow);
  const Event* told = slow ? slow : FindToldWords(facts.incident, EventKind::told_stop);
  if (!told) return;
  Finding finding;
  finding.status = slow ? Status::slow : Status::undetermined;
  finding.severity = Severity::warning;
  finding.confidence = Confidence::possible;
  finding.explanation = "The lines show no fault; only the text around them says that something is wrong.";
  finding.evidence.push_back(CiteEvent(*told, "said in the text around the log"));
  const ToldPlace& pauses = slow ? slow->As<ToldPlace>() : kEmptyDetail<ToldPlace>;
  finding.fix = pauses.every > 0        ? StepsOfPauses(pauses)
                : !slow                 ? StepsOfAStop()
                : pauses.others_wait    ? StepsOfIdleGpus()
                : pauses.data_loader    ? StepsOfIdleSteps()
                : !pauses.where.empty() ? StepsOfDifference(pauses.where)
                                        : StepsOfSlowness(facts.incident);
  TakeNote(diagnosis, finding);
  diagnosis.status = finding.status;
  diagnosis.confidence = finding.confidence;
  if (diagnosis.headline.ends_with('.')) diagnosis.headline.pop_back();
  const auto is_told = [](const Event& event) { return WitnessOf(event) == Witness::reporter; };
  const auto& events = facts.incident.events;
  if (slow && facts.incident.streams.empty() && facts.incident.benchmark_runs.empty() &&
      std::all_of(events.begin(), events.end(), is_told) && facts.incident.outlines.empty())
    diagnosis.headline = "there is no log here; the text says that the job is slow";
  else
    diagnosis.headline +=
        pauses.every > 0 ? "; the text around the log says that the job pauses once every " +
                               std::to_string(pauses.every) + " " + pauses.steps
        : slow ? std::string("; the text around the log says that the job is slow")
               : std::string(
                     "; the text around the log says that the job stops; the lines do not show whether it "
                     "ended or hangs");
  if (pauses.every <= 0 && !pauses.where.empty()) diagnosis.headline += ", and that it depends on " + pauses.where;
  if (slow && pauses.others_wait) diagnosis.headline += ", and that some GPUs are idle while others are at 100 %";
  if (slow && !pauses.others_wait && pauses.data_loader)
    diagnosis.headline += ", and that the GPUs are idle between steps, as when they wait for data";
  finding.headline = diagnosis.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
}

}  // namespace tacet
