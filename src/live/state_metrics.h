// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "http/http_message.h"
#include "live/state_json.h"
#include "render/report/prometheus_render.h"

namespace tacet {

// What a scrape shows of the present: processes by state, operations in flight, waits, drops, the hang verdict.
//
//     label sets <= min(boxes, users * 128) * 24 + jobs * 2 + 13
void AppendStateMetrics(const AgentState& state, const Viewer& viewer, std::vector<MetricFamily>& families);

}  // namespace tacet
