// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/incident.h"

namespace tacet {

// A place where one rank's sequence of calls, over all its groups, leaves that of the ranks that play the same role.
struct Divergence {
  CallSource source{};
  std::vector<Rank> odd;    // usually one
  std::vector<Rank> usual;  // the majority it is compared with
  enum class Kind {
    skipped,   // the odd one left out a call and goes on as the others
    extra,     // it issued one more and goes on as the others
    swapped,   // it issued two calls in the opposite order
    different  // it issued another call, or its record ends there
  } kind = Kind::different;
  const Call* odd_call = nullptr;    // what the odd one issued at that place
  const Call* usual_call = nullptr;  // what the others issued there
  const CallStream* odd_stream = nullptr;
  const CallStream* usual_stream = nullptr;
  size_t count = 1;         // how many calls it left out or issued too many from there on
  size_t shared_calls = 0;  // length of the common history before
};

// Ranks play the same role as long as their calls agree in kind of group, operation and direction; call sites decide
// between equal-looking calls. Roles that differ from the beginning (pipeline stages) are told apart, not blamed.
std::vector<Divergence> CompareProgramOrder(const Incident& incident, CallSource source);

}  // namespace tacet
