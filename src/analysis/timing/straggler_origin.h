// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/timing/straggler.h"
#include "analysis/timing/time_budget.h"

namespace tacet {

// Says why each straggler of a report is late, from the traces: in every operation in which it came late, what it did
// since the operation before, against what the other members did in their time since then. More compute than theirs is
// GPU work, more idle time is the host, or data loading where the host was in a loader.
void ExplainFromTraces(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                       StragglerReport& report);

// The same from enter times: a host that issued in time leaves the GPU. When the host issued late nothing is claimed,
// except where starts tell (`starts_tell`) that it had waited for its GPU. In a job that synchronises in every step a
// host that sleeps and one that waits for its GPU start their kernels alike.
void ExplainFromEnters(const std::vector<CollectiveRound>& rounds, StragglerReport& report, bool starts_tell);

// Ranks whose GPU computes longer than the others' in most steps while these wait in communication, although the starts
// of the operations do not show it (ranks that share a GPU slow each other down). Adds them to the report as persistent
// stragglers with GPU work as origin. Without such a rank, looks for steps in which now this and now that rank computes
// much longer than the others: uneven input.
void AddUnevenWork(const std::vector<CollectiveRound>& rounds, std::span<const Timeline> timelines,
                   StragglerReport& report);

}  // namespace tacet
