// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_writer.h"
#include "report/topology_report.h"

namespace tacet {

// The value of the key "topology" in a report.
void WriteTopology(JsonWriter& json, const TopologyReport& topology);

}  // namespace tacet
