// SPDX-License-Identifier: Apache-2.0
#include "rules/words/xla_words.h"

#include <utility>

#include "rules/words/words.h"

namespace tacet {
namespace {

std::string SecondWords(int64_t seconds) { return seconds < 0 ? "" : " " + DurationWords(seconds * 1'000'000'000); }

std::string XlaPlaceWords(const XlaWait& wait) {
  if (wait.name.empty()) return " for other threads";
  return " in '" + wait.name + "'" + (wait.devices > 1 ? " (" + std::to_string(wait.devices) + " devices)" : "");
}

std::string ArrivalWords(const XlaWait& wait) {
  if (wait.all_joined)
    return "; all " + std::to_string(wait.expected) +
           " threads have arrived, but the one that works for them does not "
           "finish";
  if (wait.expected <= 0) return "";
  return "; " + (wait.arrived >= 0 ? "only " + std::to_string(wait.arrived) : std::string("not all")) + " of the " +
         std::to_string(wait.expected) + " expected threads " + (wait.arrived == 1 ? "has" : "have") + " arrived";
}

}  // namespace

std::string XlaWaitWords(const Event& event) {
  const auto& wait = event.As<XlaWait>();
  return (wait.gave_up       ? "XLA ended the process after threads had waited" + SecondWords(wait.seconds)
          : wait.seconds < 0 ? std::string("an XLA thread waits")
                             : "an XLA thread has waited" + SecondWords(wait.seconds)) +
         XlaPlaceWords(wait) + ArrivalWords(wait);
}

std::string XlaProof(const Event& event) {
  const auto& wait = event.As<XlaWait>();
  return wait.gave_up ? "XLA gave up waiting" : "XLA warns that a thread waits";
}

std::vector<std::string> XlaSteps(const Event& event) {
  const auto& wait = event.As<XlaWait>();
  std::vector<std::string> steps;
  if (wait.all_joined)
    steps.push_back(
        "Take the stacks of this process with native frames (py-spy dump --native --pid PID): all threads have "
        "arrived, so the one that runs the operation, usually inside NCCL, is what the others wait for.");
  else if (wait.expected > 1)
    steps.push_back(
        "Look at the threads of this process first: each of its devices has one, and not all have reached the "
        "operation (py-spy dump --native --pid PID); one that compiles, reads data or failed makes the others wait.");
  if (!wait.all_joined)
    steps.push_back(
        "Check that every process runs the same program: each must call the same compiled function, with the same "
        "shapes and in the same order. A host that skips it, fails before it or is still compiling or reading data "
        "makes the others wait.");
  steps.push_back(
      "Take the stacks of all processes of all hosts (py-spy dump --native --pid PID): the one outside this operation "
      "is what the others wait for.");
  if (wait.gave_up)
    steps.push_back(
        "If a host is only slow: raise --xla_gpu_executable_terminate_timeout_seconds in XLA_FLAGS (on CPU "
        "--xla_cpu_collective_call_terminate_timeout_seconds).");
  else
    steps.push_back(
        "Look for 'Thread is unstuck!' below it: then the wait ended, and a thread was only slow, which is normal "
        "while a program is compiled.");
  return steps;
}

void SettleXlaWait(const Event& event, Diagnosis& diagnosis) {
  const auto& wait = event.As<XlaWait>();
  if (!wait.gave_up) {
    // A warning, which is often taken back a minute later.
    diagnosis.confidence = Confidence::possible;
    diagnosis.headline = "the job may hang: " + XlaWaitWords(event);
  }
  diagnosis.headline += wait.all_joined ? "; the log does not show why" : "; the log does not show which are missing";
  diagnosis.open.push_back(
      {wait.all_joined ? "Why does the operation not finish?" : "Which process or device has not arrived?",
       "the output of every process from the start with NCCL_DEBUG=INFO, and the stacks of all of them (py-spy dump "
       "--native --pid PID)"});
}

bool QuoteSlowXla(const Case& facts, Diagnosis& diagnosis) {
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::xla_wait) continue;
    const auto& wait = event.As<XlaWait>();
    Finding finding;
    finding.severity = Severity::note;
    finding.headline =
        "no line reports a fault; " +
        (wait.compiling
             ? "XLA " + (wait.seconds < 0 ? "takes long" : "took" + SecondWords(wait.seconds)) + " to compile " +
                   (wait.name.empty() ? "a program" : wait.name)
             : (wait.waited_s > 0 ? "an XLA thread waited about" + SecondWords(wait.waited_s)
                                  : "XLA threads waited" +
                                        (wait.seconds < 0 ? std::string() : " more than" + SecondWords(wait.seconds))) +
                   XlaPlaceWords(wait) + " and continued");
    finding.explanation =
        wait.compiling ? "XLA compiles a program before its first run, and says so when that takes long."
                       : "XLA warns after a few seconds of waiting, and withdraws the warning once all have arrived.";
    finding.evidence.push_back(
        CiteEvent(event, wait.compiling ? "XLA's remark on a slow compilation" : "the warning that was withdrawn"));
    if (wait.passed_line > 0)
      finding.evidence.push_back({SourceRef{event.source.file, wait.passed_line, 0}, "", "the thread continued"});
    finding.fix = {wait.compiling
                       ? "Keep compiled programs between runs (jax_compilation_cache_dir), and keep shapes constant: "
                         "each new shape is compiled again."
                       : "Nothing, unless it recurs at every step: then find out which process is late."};
    diagnosis.headline = finding.headline;
    diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
    return true;
  }
  return false;
}

}  // namespace tacet
