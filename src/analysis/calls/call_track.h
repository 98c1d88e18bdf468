// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "model/incident.h"

namespace tacet {

// All calls of one rank, over all its groups, in a form that can be compared with other ranks.
struct Track {
  const CallStream* stream = nullptr;
  std::vector<uint32_t> calls;    // indices, coalesced members left out
  std::vector<uint64_t> symbols;  // what each call looks like, comparable across ranks
};

// One for every rank with a record, all lined up where records lost their beginning.
std::vector<Track> CollectTracks(const Incident& incident, CallSource source);

}  // namespace tacet
