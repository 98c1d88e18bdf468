// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/process_state.h"

#include <algorithm>

namespace tacet {
namespace {

// Whether a claim for `value` is beaten, or held in check, by one against it.
template <class Value>
bool IsDenied(const std::vector<Claim>& claims, Value value, Strength strength) {
  return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
    const Value* denied = std::get_if<Value>(&claim.says);
    return denied && !claim.holds && *denied == value && claim.strength <= strength;
  });
}

bool IsLater(Liveness value, Liveness than) { return value > than; }
template <class Place>
bool IsLater(Place, Place) {
  return false;
}

template <class Value>
void JoinPart(const std::vector<Claim>& claims, StatePart<Value>& part) {
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    const Value* value = std::get_if<Value>(&claim.says);
    if (!value || !claim.holds || *value == Value::unknown) continue;
    if (IsDenied(claims, *value, claim.strength)) {
      part.disputed |= part.by == SIZE_MAX;
      continue;
    }
    const bool first = part.by == SIZE_MAX;
    if (!first && (claim.strength > claims[part.by].strength ||
                   (claim.strength == claims[part.by].strength && !IsLater(*value, part.value))))
      continue;
    part = {*value, i, false};
  }
}

}  // namespace

ProcessState JoinClaims(const std::vector<Claim>& claims) {
  ProcessState state;
  JoinPart(claims, state.process);
  JoinPart(claims, state.host);
  JoinPart(claims, state.gpu);
  return state;
}

}  // namespace tacet
