// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/setup_stack.h"

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/process/stack_reading.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/words.h"

namespace tacet {

std::optional<Finding> FindWaitInSetup(const Case& facts) {
  const Event* told = FindToldWords(facts.incident, EventKind::told_hang);
  if (!told || !facts.incident.streams.empty()) return std::nullopt;
  // What an output tells of the setup, or of a step behind it, says more than a stack.
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::progress || event.kind == EventKind::init_completed) return std::nullopt;
  const std::vector<StackReading> readings =
      facts.analyses.stacks.empty() ? ReadNamelessStacks(facts.incident) : facts.analyses.stacks;
  const StackReading* waits = nullptr;
  int64_t waiting = 0;
  for (const StackReading& one : readings) {
    if (one.errand.kind != StackErrand::Kind::communicator_setup || !one.thread) continue;
    if (!waits) waits = &one;
    ++waiting;
  }
  // Of how many ranks the communicator is must be known: where all of them wait there, none is missing.
  if (!waits || waits->thread->group_ranks < 2 || waiting >= waits->thread->group_ranks ||
      waiting != static_cast<int64_t>(readings.size()))
    return std::nullopt;
  const std::string ranks = std::to_string(waits->thread->group_ranks);
  Finding finding;
  finding.cause = "init-rank-missing";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  finding.headline = "the job hangs in NCCL's setup: " +
                     (waits->thread->group_rank >= 0 ? "rank " + std::to_string(waits->thread->group_rank)
                                                     : std::string("a process")) +
                     " of a communicator of " + ranks +
                     " waits for the others to join; they did not start, or cannot reach it";
  finding.evidence.push_back(CiteStack(facts.incident, *waits->thread, "the stack of the process that waits"));
  finding.evidence.push_back(CiteEvent(*told, "the text around the log says that the job hangs"));
  finding.fix = {
      "Look at the other processes: do they run (ps), and what does their output say last? Take their stacks, too.",
      "If they run: see from each of their hosts that the waiting process can be reached (nc -zv ADDRESS PORT; the "
      "firewall), and set NCCL_SOCKET_IFNAME to the interface that connects the hosts.",
      "NCCL_DEBUG=INFO shows in its Bootstrap line which address each process announces."};
  return finding;
}

bool DaemonCannotConnect(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::connect_failed && event.library == Library::mpi &&
           !event.As<ConnectFailure>().address.empty();
  });
}

}  // namespace tacet
