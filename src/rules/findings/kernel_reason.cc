// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/kernel_reason.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "model/assembly/event_ties.h"
#include "model/assembly/identity.h"
#include "model/events/event_witness.h"
#include "model/events/xid.h"
#include "model/job_times.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Clocks of a kernel and of a job drift apart by minutes (dmesg -T counts from boot).
constexpr int64_t kClockDriftNs = int64_t{15} * 60 * 1'000'000'000;
constexpr int64_t kSameMinuteNs = int64_t{60} * 1'000'000'000;

std::string HostOfKernelLine(const Case& facts, const Event& event) {
  const std::string host = SubjectOf(facts.incident, event).host;
  return host.empty() ? HostOfKernelLog(facts.incident, event.source.file) : host;
}

bool IsFaultOfADevice(const Event& event) {
  if (WitnessOf(event) != Witness::kernel || event.rank.known()) return false;
  const bool link = event.kind == EventKind::pcie_error && event.As<HardwareError>().severity == ErrorSeverity::fatal;
  return IsDeviceFault(event) || link;
}

// What was written last by the job itself.
int64_t LastWordOfTheJob(const Case& facts) {
  int64_t last = kNoTime;
  for (const Event& event : facts.incident.events)
    if (WitnessOf(event) != Witness::kernel && event.wall_ns != kNoTime) last = std::max(last, event.wall_ns);
  return last;
}

// The job went on for a while after it, or had ended before. What lies outside the job by days is set aside when the
// files are joined.
bool IsOfAnotherTime(const Case& facts, const Event& fault, const Event& error, int64_t last_word_ns) {
  if (fault.wall_ns == kNoTime) return false;
  if (error.wall_ns != kNoTime) return std::abs(fault.wall_ns - error.wall_ns) > kClockDriftNs;
  const int64_t progress = facts.analyses.life.last_progress_wall_ns;
  if (progress != kNoTime && fault.wall_ns < progress - kClockDriftNs) return true;
  return last_word_ns != kNoTime && fault.wall_ns > last_word_ns + kClockDriftNs;
}

// Which of two the other follows from: the hardware's own word, then the link below it, then what a program did.
int WeightOf(const Event& fault) {
  if (IsOfAProgram(fault)) return 0;
  return fault.kind == EventKind::pcie_error ? 1 : 2;
}

}  // namespace

bool IsOfForeignProcess(const Case& facts, const Event& event) {
  if (event.pid <= 0) return false;
  size_t known = 0;
  for (const Process& process : facts.incident.processes) {
    if (process.pid == event.pid) return false;
    known += process.rank.known() && process.pid > 0;
  }
  return known > 0 && known >= facts.analyses.life.ranks.size();
}

bool IsSameHost(const Case& facts, const Event& reason, const Event& error) {
  const std::string own = SubjectOf(facts.incident, error).host, other = HostOfKernelLine(facts, reason);
  return !own.empty() && !other.empty() && HostsAgree(own, other);
}

std::string WhenWords(const Case& facts, const Event& fault, const Event& error) {
  const JobTimes job(facts.incident);
  const int64_t at = job.TimeOf(fault), failed = job.TimeOf(error);
  if (at == kNoTime) return " (its log does not show when)";
  if (failed != kNoTime && std::abs(at - failed) <= kClockDriftNs) return " at that time";
  const bool ran = job.first_ns != kNoTime && job.last_ns != kNoTime && at >= job.first_ns - kClockDriftNs &&
                   at <= job.last_ns + kClockDriftNs;
  constexpr uint32_t kFewLines = 40;
  if (fault.source.file == error.source.file && fault.source.line < error.source.line &&
      error.source.line - fault.source.line <= kFewLines)
    return " just before, in the same log";
  return ran ? " while the job ran" : " (the logs do not show whether it was at that time)";
}

const Event* KernelReasonOf(const Case& facts, const Event& error) {
  if (error.kind != EventKind::cuda_error || error.Means(Meaning::device_assert)) return nullptr;
  const std::string own = SubjectOf(facts.incident, error).host;
  const int64_t last_word_ns = LastWordOfTheJob(facts);
  constexpr size_t kMostFaults = 1000;
  size_t seen = 0;
  const Event* best = nullptr;
  std::set<std::string> hosts;
  std::set<FileId> nameless;
  for (const Event& event : facts.incident.events) {
    if (!IsFaultOfADevice(event) || IsOfAnotherTime(facts, event, error, last_word_ns)) continue;
    if (++seen > kMostFaults) break;
    if (IsOfForeignProcess(facts, event)) continue;
    const std::string host = HostOfKernelLine(facts, event);
    if (!own.empty() && !host.empty() && !HostsAgree(own, host)) continue;
    if (host.empty())
      nameless.insert(event.source.file);
    else
      hosts.insert(host);
    if (!best || WeightOf(event) > WeightOf(*best)) best = &event;
  }
  return hosts.size() + nameless.size() == 1 ? best : nullptr;
}

Rank AwaitedOn(const Case& facts, const Event& told) {
  if (facts.standstill.ranks.size() != 1) return {};
  const Standstill& still = facts.standstill.ranks.front();
  if (still.kind == StandstillKind::explained || still.kind == StandstillKind::dead) return {};
  const std::string own = SubjectOf(facts.incident, still.rank).host, host = HostOfKernelLine(facts, told);
  if (!own.empty() && !host.empty() && !HostsAgree(own, host)) return {};
  return still.rank;
}

std::vector<const Event*> PcieErrorsBeside(const Case& facts, const Event& fault) {
  std::vector<const Event*> found;
  if (fault.kind != EventKind::xid || IsOfAProgram(fault)) return found;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::pcie_error || event.As<HardwareError>().severity < ErrorSeverity::uncorrected)
      continue;
    if (event.source.file != fault.source.file || event.wall_ns == kNoTime || fault.wall_ns == kNoTime) continue;
    if (std::abs(event.wall_ns - fault.wall_ns) <= kSameMinuteNs) found.push_back(&event);
  }
  return found;
}

void NoteMildXid(const Case& facts, RuleAnswer& answer) {
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::xid || event.Means(Meaning::in_prose) || IsDeviceFault(event)) continue;
    const auto& fault = event.As<Xid>();
    const XidMeaning* entry = FindXid(fault.number);
    if (!entry || entry->origin != XidOrigin::hardware || entry->advice.empty() || fault.pci.empty()) continue;
    const std::string host = HostOfKernelLine(facts, event);
    Finding finding;
    finding.cause = "gpu-fault";
    finding.status = Status::healthy;
    finding.severity = Severity::note;
    finding.confidence = Confidence::certain;
    std::string step(entry->advice.substr(0, entry->advice.find(". ")));
    if (step.ends_with('.')) step.pop_back();
    step[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(step[0])));
    finding.headline = "the GPU at PCI " + fault.pci + (host.empty() ? "" : " on " + host) + " reports Xid " +
                       std::to_string(fault.number) + " (" + std::string(entry->name) + "), which does not end a job";
    finding.evidence.push_back(CiteEvent(event, "what the driver reports"));
    finding.fix = {std::string(entry->advice)};
    answer.findings.push_back(std::move(finding));
    return;
  }
}

}  // namespace tacet
