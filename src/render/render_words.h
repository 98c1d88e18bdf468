// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace tacet {

// The small phrases that more than one renderer writes.

// {0, 1, 3} -> "0-1,3". Sorts and drops repetitions itself. With `max_chars` a long list is cut at a comma and ends in
// "...".
std::string FoldRanks(std::vector<int> ranks, size_t max_chars = 0);
// "rank 2", "ranks 0-1,3", and for a long list "4096 ranks (0,2,4,...)"; empty for no rank.
std::string DescribeRanks(const std::vector<int>& ranks, size_t max_chars = 0);
// "all_reduce #33 (4.2 MB)"; what is unknown is left out.
std::string DescribeOperation(const OperationRef& operation);
// "mesh_tp (group 5)": people know the description, records the name; either alone where the other is missing.
std::string DescribeGroup(const ReportGroup& group);
// "all_reduce #33 (4.2 MB) on mesh_tp (group 5)", either half, or nothing.
std::string DescribePlace(const ReportFinding& finding);
// "nccl.log:12"; at an offset for binary files: "dump.bin@0x1f0"; empty without a file.
std::string DescribeSource(const CitedEvidence& evidence);
// The very line where it is known, else what the rules keep of it.
const std::string& QuoteOf(const CitedEvidence& evidence);
// What it says; with the record in words where the quoted line does not hold them.
std::string SaysOf(const CitedEvidence& evidence);
// Decimal units: 950 -> "950 B", 4198400 -> "4.2 MB".
std::string DescribeBytes(uint64_t bytes);
// 1 -> "1 file", 3 -> "3 files".
std::string Count(uint64_t n, std::string_view noun);

// The word over a verdict, in capitals: its status, or "NO FAULT FOUND" of a job that was seen to make progress while
// nothing tells its end, "STOPPED" of one that was ended from outside, "NOT STARTED" of one that waits for its
// resources.
std::string HeadingWord(const Report& report);
// In capitals.
std::string UpperCase(std::string_view text);

// What happened is known, the cause is not, and no finding names suspects: whoever lists findings has to say it beside
// them.
bool FailedForUnknownCause(const Report& report);

// One line made safe to print: like EscapeForTerminal, and characters that reorder what follows (U+202E and its kin)
// are shown as escapes too, since they let a log line lie about its own order.
std::string CleanLine(std::string_view text);
// The same for texts of several lines, which keep their line breaks.
std::string CleanText(std::string_view text);

}  // namespace tacet
