// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "live/state_json.h"
#include "render/prometheus_render.h"

namespace tacet {

// What a scrape shows of the present: processes by state, operations in flight, waits, drops, the hang verdict.
//
//     label sets <= boxes * 23 + jobs * 2 + 13
void AppendStateMetrics(const AgentState& state, std::vector<MetricFamily>& families);

}  // namespace tacet
