// SPDX-License-Identifier: Apache-2.0
#include "rules/words/hang_capture.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/timeouts/timeout_census.h"
#include "rules/words/timeout_words.h"

namespace tacet {

// Gloo keeps no record of calls; a job may use both.
static bool UsesGlooAlone(const Incident& incident) {
  const auto any = [&](auto test) { return std::any_of(incident.events.begin(), incident.events.end(), test); };
  return incident.streams.empty() &&
         any([](const Event& one) { return one.Means(Meaning::gloo_timeout) || one.Means(Meaning::gloo_loss); }) &&
         !any([](const Event& one) {
           return one.kind == EventKind::watchdog_timeout || one.kind == EventKind::nccl_warning ||
                  one.kind == EventKind::nccl_error || one.kind == EventKind::init_started;
         });
}

bool MayHaveFlightRecords(const Incident& incident) {
  if (UsesGlooAlone(incident)) return false;
  return std::none_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return (event.kind == EventKind::desync_report && !event.As<DesyncReport>().tensor.empty()) ||
           event.As<MismatchReport>().aspect == "tensor";
  });
}

bool HasAllStacks(const Case& facts) {
  const SignsOfLife& life = facts.analyses.life;
  return !life.ranks.empty() && static_cast<size_t>(life.stacks) >= life.ranks.size();
}

bool HasAllRecords(const Case& facts) {
  const SignsOfLife& life = facts.analyses.life;
  return !life.ranks.empty() && static_cast<size_t>(life.records) >= life.ranks.size();
}

// A benchmark, or a process whose stacks were shown and have no frame of Python.
static bool IsNativeProgram(const Incident& incident) {
  const auto& threads = incident.threads;
  if (!threads.empty())
    return std::none_of(threads.begin(), threads.end(), [](const ThreadStack& one) { return one.has_python; });
  return std::any_of(incident.benchmark_runs.begin(), incident.benchmark_runs.end(),
                     [](const BenchmarkRun& run) { return run.tool == "nccl-tests"; });
}

std::string StackCommand(const Incident& incident) {
  return IsNativeProgram(incident) ? "gdb -p PID -batch -ex 'thread apply all bt'" : "py-spy dump --pid PID";
}

// Settings of NCCL are of no use for a library made in its likeness.
static bool UsesAnotherLibrary(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::watchdog_timeout && event.library == Library::other;
  });
}

std::string HangCapture(const Case& facts) {
  if (std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
        return event.kind == EventKind::watchdog_timeout && event.library == Library::nvshmem;
      }))
    return "stacks of all ranks (py-spy dump --native --pid PID), and their output with NVSHMEM_DEBUG=INFO";
  if (UsesAnotherLibrary(facts.incident))
    return "stacks of all ranks (py-spy dump --pid PID), and the log of the collective library, if it writes one";
  const SignsOfLife& life = facts.analyses.life;
  const size_t world = life.ranks.size();
  const auto lacks = [&](int count) { return world == 0 || static_cast<size_t>(count) < world; };
  struct Kind {
    std::string_view name;
    std::string how;
  };
  std::vector<Kind> wanted;
  if (lacks(life.records) && MayHaveFlightRecords(facts.incident))
    wanted.push_back({"flight records", " (TORCH_NCCL_ENABLE_TIMING=1 and " + std::string(kRecorderSetting) + ")"});
  const bool native = std::any_of(facts.incident.events.begin(), facts.incident.events.end(),
                                  [](const Event& event) { return event.kind == EventKind::heartbeat_stuck; });
  if (lacks(life.stacks))
    wanted.push_back(
        {"stacks", native ? " (py-spy dump --native --pid PID)" : " (" + StackCommand(facts.incident) + ")"});
  if (lacks(life.nccl_logs) && !UsesGlooAlone(facts.incident)) wanted.push_back({"NCCL logs", " (NCCL_DEBUG=INFO)"});
  if (wanted.empty())
    return "stacks of all ranks, taken twice, a few seconds apart, while the job hangs; black boxes (tacet run) show "
           "what each GPU has started";
  const TimeoutCensus census = CountTimeouts(facts.incident);
  const bool of_group = census && !census.outside.empty() && census.calls.size() == 1;
  const std::string whose = of_group ? " of all members of " + GroupInWords(census) : " of all ranks";
  std::string words;
  for (size_t i = 0; i < wanted.size(); ++i)
    words += (i == 0                   ? ""
              : i + 1 == wanted.size() ? " and "
                                       : ", ") +
             std::string(wanted[i].name) + (i == 0 ? whose : "") + wanted[i].how;
  return words;
}

}  // namespace tacet
