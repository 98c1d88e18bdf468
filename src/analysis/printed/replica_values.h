// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "model/incident.h"

namespace tacet {

// One rank's loss was NaN or infinite at a step at which the others' was finite, and theirs followed.
struct FirstNonFinite {
  Rank rank;
  std::string word;   // "nan"
  std::string at;     // "step 30"
  SourceRef source;   // of the first such value
  size_t finite = 0;  // ranks whose loss was finite at that step
};
std::optional<FirstNonFinite> FindFirstNonFinite(const Incident& incident);

// One rank's parameters have another norm or checksum than those of all others, which have one: since a step before
// which all were equal, or as long as the job prints them. Or its loss has, where the losses of all ranks were equal in
// many digits before: a loss that is averaged over the ranks, or that equal replicas have on equal data.
struct DriftedReplica {
  const RankValue *odd = nullptr, *usual = nullptr;  // at the first step at which they differ
  const RankValue* agreed = nullptr;                 // of the odd one, at the last step before that; null: never
  const RankValue *setting = nullptr, *usual_setting = nullptr;  // a learning rate that only the odd one has
  size_t ranks = 0, steps = 0;                                   // compared; at which they differ
  bool which() const { return ranks > 2; }                       // of two, nobody knows which one is right
};
std::optional<DriftedReplica> FindDriftedReplica(const Incident& incident);

// Some of the parameters are equal on all ranks at each step, and others, which have a norm or checksum of their own,
// are on none two: what keeps replicas equal does not know these.
struct UnsharedParameters {
  const RankValue *one = nullptr, *other = nullptr;  // at the first step at which they differ
  const RankValue* equal = nullptr;                  // at that step, of the parameters that are equal
  size_t ranks = 0, steps = 0;
};
std::optional<UnsharedParameters> FindUnsharedParameters(const Incident& incident);

}  // namespace tacet
