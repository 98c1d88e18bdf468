// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "analysis/testing/job_sketch.h"
#include "rules/diagnosis.h"

namespace tacet {

// A sketched job with all its analyses, ready to be asked.
class JudgedCase {
 public:
  explicit JudgedCase(JobSketch& sketch);
  explicit JudgedCase(Incident incident);

  RuleAnswer Ask(std::string_view rule) const;  // one rule alone
  bool Fires(std::string_view rule) const { return !Ask(rule).findings.empty(); }
  // The one finding of a rule; an empty one, and a failed test, when there is none or more than one.
  Finding Only(std::string_view rule) const;
  Diagnosis Verdict() const;

  const Incident& incident() const { return *incident_; }
  const Analyses& analyses() const { return *analyses_; }
  const StandstillView& standstill() const { return *standstill_; }

 private:
  std::unique_ptr<Incident> incident_;  // analyses point into it
  std::unique_ptr<Analyses> analyses_;
  std::unique_ptr<StandstillView> standstill_;
};

// Where and when a fault strikes: other world sizes, ranks and moments than any recording has.
struct FaultPlace {
  int32_t world, rank;
  int rounds;  // that went well before
};
std::string PlaceName(const FaultPlace& place);  // "Rank517Of1024After5"

}  // namespace tacet
