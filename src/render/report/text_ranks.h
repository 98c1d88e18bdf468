// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "render/text_layout.h"
#include "report/report.h"

namespace tacet {

// The table of ranks, head first. Ranks that stand alike share a row; guilty ones come first. With `verbose` rows
// differ as soon as anything shown differs; otherwise there are never more than kMostRankRows, however many ranks, and
// columns that tell least are left out where they do not fit into `width`.
inline constexpr size_t kMostRankRows = 24;
std::vector<TextRow> LayOutRanks(const std::vector<ReportRank>& ranks, size_t width, bool verbose,
                                 bool host_named = false);

}  // namespace tacet
