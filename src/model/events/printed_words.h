// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// The words of a line that a program printed, and what kind of value each is. Nothing here compares ranks.
using PrintedWords = std::vector<std::string>;

PrintedWords WordsIn(std::string_view text);
// The value of "name=value", or the word; without punctuation around it.
std::string_view ValueIn(std::string_view word);
// The name of the value: "lr" of "lr=0.1" and of "lr 0.1"; empty: it has none.
std::string NameOf(const PrintedWords& words, size_t at);

bool IsNumber(std::string_view word);
// A date or a time of day.
bool IsTime(std::string_view word);
// "took 3 s", "3ms": measured, and no setting.
bool IsMeasured(const PrintedWords& words, size_t at);
// What differs between processes by its nature: host, pid, seed.
bool IsOfTheProcess(const std::string& name);
// "480 sentences", "batches=30": how much data a rank has is no setting.
bool IsOfData(const PrintedWords& words, size_t at, const std::string& name);
// "on gpu21", "at 10.0.0.3".
bool IsPlace(const std::string& name, std::string_view value);
// What all ranks of a job must have in common.
bool MustAgree(const std::string& name);

}  // namespace tacet
