// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "model/incident.h"

namespace tacet {

// The way from one rank to another on which an operation's data makes the least progress.
struct StalledFlow {
  Rank from, to;
  Rank suspect;  // the end that does not do its part
  FlowWait waiting = FlowWait::nothing;
  int32_t steps_done = 0, steps_total = 0;
  const InFlight* flight = nullptr;  // whose record shows it
};

// A sender with nothing left to send has done its part: then the receiver does not take what was sent.
// Among the network transfers of one operation that every member is in. Whoever waits for its own GPU waits for data of
// somebody before it, so only ways that wait for the network, for a receiver or for a sender count.
std::optional<StalledFlow> FindStalledFlow(const Incident& incident, GroupIndex group, uint32_t seq);

}  // namespace tacet
