// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/fragment.h"
#include "model/patience.h"
#include "report/report.h"

namespace tacet {

struct ReportOptions {
  bool redact = true;  // secrets of the evidence are taken out of every text
  bool why = false;    // also how the verdict came about
};

// From what the files say to the report: assemble, analyse, judge, order. Pure: the same fragments give the same report.
Report MakeReport(std::vector<Fragment> fragments, const Patience& patience = {}, const ReportOptions& options = {});

}  // namespace tacet
