// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/fragment.h"
#include "model/patience.h"
#include "report/report.h"

namespace tacet {

// From what the files say to the report: assemble, analyse, judge, order. Pure: the same fragments give the same report.
Report MakeReport(std::vector<Fragment> fragments, const Patience& patience = {});

}  // namespace tacet
