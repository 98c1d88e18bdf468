// SPDX-License-Identifier: Apache-2.0
#include "rules/testing/judged_case.h"

namespace tacet {

JudgedCase::JudgedCase(JobSketch& sketch) : JudgedCase(sketch.Finish()) {}

JudgedCase::JudgedCase(Incident incident)
    : incident_(std::make_unique<Incident>(std::move(incident))),
      analyses_(std::make_unique<Analyses>(Analyse(*incident_))),
      standstill_(std::make_unique<StandstillView>(FindStandstills(*incident_, *analyses_))) {}

RuleAnswer JudgedCase::Ask(std::string_view id) const {
  const Rule* rule = FindRule(id);
  if (rule == nullptr) return {};
  return rule->judge({*incident_, *analyses_, *standstill_});
}

Finding JudgedCase::Only(std::string_view id) const {
  RuleAnswer answer = Ask(id);
  if (answer.findings.size() == 1) return std::move(answer.findings.front());
  Finding none;
  none.cause = std::to_string(answer.findings.size()) + " findings of " + std::string(id);
  return none;
}

Diagnosis JudgedCase::Verdict() const { return Diagnose(*incident_, *analyses_, *standstill_); }

std::string PlaceName(const FaultPlace& place) {
  return "Rank" + std::to_string(place.rank) + "Of" + std::to_string(place.world) + "After" +
         std::to_string(place.rounds);
}

}  // namespace tacet
