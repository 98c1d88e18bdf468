// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/fragment.h"
#include "model/patience.h"
#include "report/report.h"

namespace tacet {

// The line of a file that is cited, by the path in the report, its number and an offset in it; empty: cannot be told.
using CitedLineReader = std::function<std::string(const std::string& file, uint32_t line, uint64_t offset)>;

struct ReportOptions {
  bool redact = true;  // secrets of the evidence are taken out of every text
  bool why = false;    // also how the verdict came about
  CitedLineReader read_line;  // none: nothing is quoted beyond what the rules keep of it
};

// From what the files say to the report: assemble, analyse, judge, order. Pure: the same fragments give the same report.
Report MakeReport(std::vector<Fragment> fragments, const Patience& patience = {}, const ReportOptions& options = {});

void QuoteLines(const CitedLineReader& read_line, Report& report);

}  // namespace tacet
