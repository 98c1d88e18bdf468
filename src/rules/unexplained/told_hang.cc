// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_hang.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/process/stack_reading.h"
#include "analysis/timeouts/nameless_waits.h"
#include "model/events/event_witness.h"
#include "rules/unexplained/benchmark_verdict.h"
#include "rules/unexplained/open_calls.h"
#include "rules/unexplained/open_finding.h"
#include "rules/words/gpu_load_words.h"
#include "rules/words/hang_capture.h"
#include "rules/words/library_words.h"
#include "rules/words/message_words.h"
#include "rules/words/stack_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// "; the last progress line is for step 200": where it stood, for what it is worth. A step in the sentence that tells
// the hang is none.
std::string LastStepWords(const Incident& incident, const Event& told) {
  const Event* last = nullptr;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::progress && event.As<Progress>().step >= 0 &&
        !(event.source.file == told.source.file && event.source.line == told.source.line))
      last = &event;
  if (!last) return "";
  const auto& progress = last->As<Progress>();
  return "; the last progress line is for " + std::string(progress.of_epoch ? "epoch " : "step ") +
         std::to_string(progress.step);
}

// "; the last activity in the log is '...'": nothing that tells of the job comes behind that line.
std::string LastActivityWords(const Incident& incident) {
  constexpr size_t kMostQuoted = 120;
  const LogOutline* last = nullptr;
  for (const LogOutline& outline : incident.outlines)
    if (!outline.last.empty()) {
      if (last) return "";
      last = &outline;
    }
  if (!last) return "";
  const bool later = std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return WitnessOf(event) != Witness::reporter && event.source.file == last->last_source.file &&
           event.source.line > last->last_source.line;
  });
  return later ? "" : "; the last activity in the log is '" + MessageWords(last->last, kMostQuoted) + "'";
}

// "; process 51877 exited without an error, and the others may wait for it": of several one came to its end.
std::string FinishedWords(const Incident& incident) {
  const Event* finished = nullptr;
  for (const Event& event : incident.events) {
    const bool one = event.kind == EventKind::process_finished && !event.As<ProcessFinish>().of_job &&
                     (event.pid > 0 || event.rank.known()) && !event.Means(Meaning::in_prose);
    if (one && finished) return "";
    if (one) finished = &event;
  }
  if (!finished) return "";
  return "; " + (finished->rank.known() ? RankWords({finished->rank}) : "process " + std::to_string(finished->pid)) +
         " exited without an error, and the others may wait for it";
}

const Event* FirstInterruptedPlace(const Incident& incident) {
  const auto& events = incident.events;
  const auto found = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::exception && IsInterrupt(event) && !event.As<Raised>().place.function.empty();
  });
  return found == events.end() ? nullptr : &*found;
}

// "it was in main (finetune.py:61), waiting for data, when it was interrupted": Ctrl-C shows where the job stood.
std::string InterruptedWords(const Incident& incident) {
  const Event* event = FirstInterruptedPlace(incident);
  if (!event) return "";
  const auto& raised = event->As<Raised>();
  const std::string who = event->rank.known() ? RankWords({event->rank}) : "the process";
  return who + " was in " + raised.place.function + " (" + raised.place.file.substr(raised.place.file.rfind('/') + 1) +
         ":" + std::to_string(raised.place.line) + ")" +
         (raised.during == Activity::data ? ", where it waited for its data loader," : "") + " when it was interrupted";
}

// NCCL has chosen its network, and no communicator is ready.
bool EndsInSetup(const Case& facts) {
  bool begun = false;
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::init_completed || event.kind == EventKind::progress) return false;
    begun |= event.kind == EventKind::network || event.kind == EventKind::init_started;
  }
  const auto& streams = facts.incident.streams;
  return begun && std::all_of(streams.begin(), streams.end(), [](const CallStream& one) { return one.calls.empty(); });
}

// "at the first barrier" is a place in the run; "on two nodes", "without this setting" are not.
bool TellsPlace(const ToldPlace& place) {
  return !place.where.empty() && !place.where.starts_with("on ") && !place.where.starts_with("without ");
}

// The text says so, or the only stack that is shown waits for a queue that workers fill.
bool IsInLoader(const Case& facts, const ToldPlace& place) {
  const auto waits = [](const StackReading& one) {
    return one.errand.kind == StackErrand::Kind::next_batch || one.errand.kind == StackErrand::Kind::queue;
  };
  const std::vector<StackReading> nameless =
      facts.analyses.stacks.empty() ? ReadNamelessStacks(facts.incident) : std::vector<StackReading>();
  const Event* interrupted = FirstInterruptedPlace(facts.incident);
  return place.data_loader || (interrupted && interrupted->As<Raised>().during == Activity::data) ||
         std::any_of(facts.analyses.stacks.begin(), facts.analyses.stacks.end(), waits) ||
         std::any_of(nameless.begin(), nameless.end(), waits);
}

// Only some thread is shown, as gdb shows the one that it was told to.
bool LacksMainThread(const Incident& incident) {
  return !incident.threads.empty() && std::none_of(incident.threads.begin(), incident.threads.end(),
                                                   [](const ThreadStack& thread) { return thread.is_main; });
}

std::vector<std::string> LoaderSteps(const Incident& incident) {
  if (LacksMainThread(incident))
    return {
        "Take the stacks of all threads of the process (gdb: thread apply all py-bt; or py-spy dump --pid PID): the "
        "main thread shows whether it waits for data or for other ranks.",
        "If it waits for data: take the stacks of the loader's workers, the children of the process, and test with "
        "num_workers=0 and pin_memory=False."};
  return {
      "Take the stacks of the loader's workers, the children of the process (py-spy dump --pid PID): what they wait "
      "for "
      "is the reason.",
      "Test with num_workers=0. If that runs: pin_memory=False, or multiprocessing_context='spawn', since workers that "
      "are forked from a process with threads can deadlock.",
      "Check that /dev/shm has space (df -h /dev/shm), and that the storage answers (ls, iostat -x 5)."};
}

std::vector<std::string> TensorFlowSteps() {
  return {
      "From each host: nc -zv to the host and port of every other task in TF_CONFIG's cluster; open the ports in the "
      "firewall.",
      "TF_CONFIG must hold the same cluster on all hosts, and a different index on each.",
      "Look at the output of every task: one that ended, or was never started, keeps the others waiting."};
}

// The run of a benchmark whose table ends before the last size. Null where none does.
const BenchmarkRun* StoppedBenchmark(const Incident& incident) {
  const auto& runs = incident.benchmark_runs;
  const auto found = std::find_if(runs.begin(), runs.end(), [](const BenchmarkRun& run) {
    return run.tool == "nccl-tests" && !run.concluded && !run.reached_largest && run.failure.empty();
  });
  return found == runs.end() ? nullptr : &*found;
}

std::string StoppedBenchmarkWords(const Incident& incident) {
  const BenchmarkRun* run = StoppedBenchmark(incident);
  if (!run) return "";
  if (run->lines.empty()) return "the benchmark's table has no line, so its first operation did not complete";
  return "the benchmark's table ends after " + tacet::SizeWords(run->lines.back().bytes);
}

// A benchmark runs no code of the user: what hangs is the path that the data takes.
std::vector<std::string> BenchmarkSteps(const Incident& incident, const BenchmarkRun& run) {
  std::set<std::string> hosts;
  for (const BenchmarkDevice& device : run.devices)
    if (!device.host.empty()) hosts.insert(device.host);
  for (const Process& process : incident.processes)  // NCCL's lines name them where the list of devices is cut off
    if (run.devices.empty() && !process.host.empty()) hosts.insert(process.host);
  std::vector<std::string> steps;
  if (hosts.size() > 1)
    steps.push_back(
        "Run it on each host by itself first, then on two: if one host alone hangs, the path between its GPUs is at "
        "fault; otherwise test with NCCL_IB_DISABLE=1, which leaves the adapters out.");
  steps.push_back(
      "Run it with NCCL_P2P_DISABLE=1 before the command (after the program's name it is an argument and has no "
      "effect; with mpirun: -x NCCL_P2P_DISABLE=1). If that helps, the direct path between GPUs is broken: the IOMMU "
      "or "
      "ACS of the host (iommu=pt, ACS off), or cards and drivers that do not support it.");
  steps.push_back(
      "Find the pair: CUDA_VISIBLE_DEVICES=0,1 and so on, with two GPUs each; p2pBandwidthLatencyTest shows pairs "
      "that hang or are slow.");
  steps.push_back("While it hangs: dmesg -T on the host (Xid, IO_PAGE_FAULT, DMAR), and the stacks (" +
                  StackCommand(incident) + ").");
  return steps;
}

// A thread of the kernel or a daemon of a file system that is blocked on the same host: the disk, or a driver, does not
// answer, and the job may wait for the same.
void CiteBlockedService(const Case& facts, Finding& finding) {
  const auto& events = facts.incident.events;
  const auto task = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::hung_task && event.Means(Meaning::of_service);
  });
  if (task == events.end()) return;
  const std::string& name = task->As<HungTask>().process;
  finding.evidence.push_back(CiteEvent(*task, "the kernel reports " + name + " as blocked"));
  finding.fix.insert(finding.fix.begin(),
                     "Look at what " + name + " waits for in the kernel (cat /proc/" +
                         (task->pid > 0 ? std::to_string(task->pid) : std::string("PID")) +
                         "/stack, dmesg -T before the cited line): a disk, a file system or a driver does not answer. "
                         "Processes in state D usually need a reboot of the host.");
}

// RCCL's advice on the host may be the reason where the job hangs.
void AddHostAdvice(const Case& facts, Finding& finding) {
  const auto& events = facts.incident.events;
  const auto advice = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::nccl_warning && event.As<Warning>().id == "rccl-host-setting";
  });
  if (advice == events.end()) return;
  finding.evidence.push_back(CiteEvent(*advice, "RCCL warns: " + MessageWords(advice->text)));
  finding.evidence.back().excerpt.clear();
  finding.fix.insert(finding.fix.begin(), "Set what RCCL's warning names (above), and test again.");
}

}  // namespace

void SettleToldHang(const Case& facts, const Event& told, Diagnosis& diagnosis) {
  diagnosis.confidence = Confidence::possible;
  const auto& place = told.As<ToldPlace>();
  const OpenCalls calls = FindOpenCalls(facts);
  std::string where = StackWords(facts);
  if (where.empty()) where = calls.words;
  if (where.empty()) where = InterruptedWords(facts.incident);
  if (where.empty()) where = StoppedBenchmarkWords(facts.incident);
  if (where.empty()) where = ReadGpuLoads(facts.incident, true).words;
  std::string last = LastStepWords(facts.incident, told);
  if (last.empty()) last = LastActivityWords(facts.incident);
  const bool placed = TellsPlace(place) || last.starts_with("; the last activity");
  diagnosis.headline =
      std::string("the text around the log says that the job ") + (place.stopped ? "stops" : "hangs") +
      (place.where.empty() ? "" : " " + place.where) + "; " +
      (!where.empty() ? where
       : EndsInSetup(facts)
           ? std::string("the log ends during NCCL's setup, and does not show which rank is responsible")
           : std::string("no log line shows ") + (placed ? "" : "where, or ") + "which rank caused it" + last +
                 FinishedWords(facts.incident));
  if (!calls.number.empty())
    diagnosis.open = {{"Which rank makes the others wait?",
                       "the NCCL logs of the other ranks from the same time: a rank that has not issued " +
                           calls.number + " is waited for; stacks (py-spy dump --pid PID) of all ranks"}};
  if (IsInLoader(facts, place))
    diagnosis.open = {{"What do the loader's workers wait for?",
                       "the stacks of the process and of its children (py-spy dump --pid PID), twice, a minute apart"}};
  else if (StoppedBenchmark(facts.incident))
    diagnosis.open = {{"Which path does the operation that hangs use?",
                       "the whole output of the benchmark with NCCL_DEBUG=INFO, and dmesg -T of the hosts"}};
  else if (told.library != Library::not_told)
    diagnosis.open = {{"Which process keeps the others waiting?", LibraryCapture(told.library)}};
}

void FinishToldHang(const Case& facts, const Event& told, Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) return;
  Finding& finding = diagnosis.findings.front();
  const auto& place = told.As<ToldPlace>();
  const GpuLoadView gpus = ReadGpuLoads(facts.incident, true);
  if (const Event* interrupted = FirstInterruptedPlace(facts.incident); interrupted && StackWords(facts).empty())
    finding.evidence.push_back(CiteEvent(*interrupted, "where the interrupt met it"));
  for (const Event* row : gpus.cited)
    if (!row->Means(Meaning::in_prose)) finding.evidence.push_back(CiteEvent(*row, GpuLoadWords(*row)));
  if (IsInLoader(facts, place)) {
    finding.fix = LoaderSteps(facts.incident);
  } else if (told.library == Library::tensorflow) {
    finding.fix = TensorFlowSteps();
  } else if (const BenchmarkRun* run = StoppedBenchmark(facts.incident); run) {
    finding.fix = BenchmarkSteps(facts.incident, *run);
  }
  CiteBlockedService(facts, finding);
  if (!gpus.idle.empty())
    finding.fix.insert(finding.fix.begin(), "Look first at the process that uses " + gpus.idle +
                                                " (nvidia-smi lists it): the others wait while it runs nothing.");
  AddHostAdvice(facts, finding);
}

}  // namespace tacet
