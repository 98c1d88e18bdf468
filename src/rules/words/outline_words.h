// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rules/diagnosis.h"
#include "rules/rule.h"

namespace tacet {

// "3 errors were reported, and the job continued (the first: '...')".
std::string SurvivedWords(int64_t errors, std::string_view first);

// What the first survived error says, with its type. There must be one.
std::string FirstSurvived(const Incident& incident);

// "no line reports a fault", or what was reported and passed, and how many errors were survived. `begins`: at the
// beginning of a sentence.
std::string FaultWords(const Incident& incident, bool begins = false);

// "no line reports a fault: 8 ranks (0-7) print these lines; the last one is '...'": of a log whose lines no reader
// knows. Empty where there is none, or where a line of it is marked as an error.
std::string OutlineWords(const Case& facts);

// "all 3 ranks say that they finished ('finished all 40 steps')", in the program's own words. Empty where no rank does.
std::string FinishedRanksWords(const Case& facts);

// What is said where nothing failed: what slows the job down, or a remark on it, though it answers nothing of how it
// ended. `trouble_told`: the text around the log tells of trouble.
std::string WordsWithoutFault(const Case& facts, const Diagnosis& diagnosis, bool trouble_told);

// What to make of PyTorch's warning at exit, where it was printed; empty where it was not.
std::string_view HarmlessAtExit(const Incident& incident);
// No line reports a fault, and the output shows that a process came to its end, or that a server answers.
bool ReachedItsEnd(const Case& facts);
// ... that as many processes as ranks are seen came to their end.
bool AllReachedTheirEnd(const Case& facts);

// A line is printed as its program exits, or tells how it ended: nobody need be asked whether it did.
bool TellsItsEnd(const Incident& incident);

// No finding is above a note.
bool HasNotesOnly(const Diagnosis& diagnosis);

// Sets the verdict to healthy where a line tells of an end with exit code 0 and nothing speaks against it.
void SettleToldEnd(const Case& facts, Diagnosis& diagnosis);

}  // namespace tacet
