// SPDX-License-Identifier: Apache-2.0
#include "preflight/preflight.h"

#include <thread>

#include "launch/run_folder.h"
#include "preflight/coordinator.h"

namespace tacet {
namespace {

int CodeOf(PreflightVerdict verdict) {
  return verdict == PreflightVerdict::go ? 0 : verdict == PreflightVerdict::no_go ? 1 : 2;
}

// Where nobody else can come, this host is still worth a look.
void AddOwnHost(const PreflightOptions& options, PreflightEvidence& evidence) {
  PreflightHost& host = evidence.hosts.emplace_back();
  host.facts = CollectHostFacts(options.member.facts);
  host.name = host.facts.Value("host");
  host.ranks = {options.member.place.rank};
  host.interface_problem = InterfaceProblem(host.facts);
  GivenEnvironment& environment = evidence.environments.emplace_back();
  environment.host = host.name;
  for (const auto& [name, value] : host.facts.variables) environment.variables.push_back({name, value});
}

PreflightOutcome Finish(PreflightEvidence evidence, int64_t began_ms) {
  evidence.seconds = static_cast<double>(MonotonicMs() - began_ms) / 1e3;
  PreflightOutcome outcome;
  outcome.report = JudgePreflight(std::move(evidence));
  outcome.exit_code = CodeOf(outcome.report->verdict);
  return outcome;
}

}  // namespace

PreflightOutcome RunPreflight(const PreflightOptions& options) {
  const int64_t began_ms = MonotonicMs();
  const JobPlace& place = options.member.place;
  if (place.rank > 0) {
    auto code = TakePart(options.member);
    if (code) return {*code, std::nullopt, "", ""};
    return {1, std::nullopt, code.error().message, code.error().hint};
  }
  Coordinator coordinator({place, options.wait_ms, options.measure, options.progress});
  const bool open = coordinator.Open();
  if (!open || place.size == 1) {
    AddOwnHost(options, coordinator.evidence());
    return Finish(std::move(coordinator.evidence()), began_ms);
  }
  std::thread self([&] {
    MemberOptions member = options.member;
    member.place.meet_host = "127.0.0.1";
    (void)TakePart(member);  // what it could not do shows in the evidence
  });
  coordinator.Gather();
  coordinator.Measure();
  PreflightOutcome outcome = Finish(std::move(coordinator.evidence()), began_ms);
  coordinator.End(outcome.exit_code);
  self.join();
  return outcome;
}

}  // namespace tacet
