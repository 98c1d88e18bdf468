// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/analyses.h"
#include "model/fragment.h"
#include "report/make_report.h"
#include "report/report.h"

namespace tacet {

// Rings, trees, transports and network devices of a job, with the findings that speak of them and no others.
Report MakeTopologyReport(std::vector<Fragment> fragments, const CitedLineReader& read_line = {}, bool redact = true);

// The picture of one job. `guilty` are the ranks that findings name.
TopologyReport DescribeTopology(const Incident& incident, const Analyses& analyses, const std::vector<int>& guilty);

}  // namespace tacet
