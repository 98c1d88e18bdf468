// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace tacet {

// A thread that holds no line of a log by itself, but repeats one inside a sentence: 'it stopped with "slurmstepd:
// error:
// *** JOB 12 ON n1 CANCELLED ... ***" after two days'.
bool IsTold(const std::vector<std::string_view>& lines);

// The repeated line, or the sentence itself where there is none in it.
std::string_view LineInSentence(std::string_view sentence);

}  // namespace tacet
