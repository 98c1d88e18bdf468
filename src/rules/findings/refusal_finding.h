// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// What is wrong, and with what: the detail that the message names stands in the place of the general one.
std::string RefusalWithObject(const Event& exception);

// The sentence of this refusal says all that the message does.
bool SaysAll(const Event& exception);

// " in main (train.py:12)", where the code of all of them is known; of others ", rank 1 in main (train.py:12)".
std::string PlacesOfRanks(const std::vector<const Event*>& events, const Event& sample);

// How often a line was told that is kept once: 3 of "... (3 times)".
size_t TimesTold(std::string_view text);

// A launcher or a scheduler refuses the job: no process of it has run.
bool IsRefusedStart(const Event& exception);
// In place of the title of the cause: what a refusal says of the setup is no failure of the program. Empty: none.
std::string TitleOfRefusal(const Event& exception);

// "sbatch: error: Batch job submission failed", "mpirun: ...": who reports it, and what. A name is not said twice.
std::string ReportedWords(const Event& exception, const std::string& text);

// A value that cannot be right was looked at again by running its step once more.
bool IsOfARepeatedStep(const Event& exception);

// What is wrong with how the job was started, built or configured, where the error is a well-known one; empty: it is
// not.
std::string RefusalWords(const Event& exception);
std::vector<std::string> RefusalSteps(const Event& exception);
// What its message names, as a clause; empty: nothing.
std::string ObjectWords(const Event& exception);
// "ranks 0 and 1 refused their command line: unrecognized arguments: --lrr" where the error is one of the arguments;
// empty: it is another one. Without ranks those are named that ended with the exit code of such errors.
std::string CommandLineWords(const Case& facts, const Event& exception, std::vector<Rank> ranks);
// It is about one file, which other ranks may not use.
bool IsOfOneFile(const Event& exception);
// A mistake in the program, at the line that raises it.
bool IsOfTheProgram(const Event& exception);

// One rank fails, and others, whose output is here, do not: it differs from them. Otherwise no rank is special.
bool IsOddOne(const Case& facts, Rank rank);

// Ranks of whose tracebacks nothing but frames was kept: they failed as well.
std::vector<Rank> RanksCutOff(const Case& facts);

// One colon per sentence: where what was refused holds one, what was raised is a sentence of its own.
std::string JoinToRefusal(const std::string& refusal, bool has_object, const std::string& raised);

// Several threads of one process fail where it may open no more files, and the first of them says only which call
// failed: then the one behind it, which tells the reason.
const Event& ReasonOf(const Case& facts, const Event& first);

// All others raised the same, and this one reports nothing.
Rank OnlyRankWithoutError(const Case& facts, const std::vector<Rank>& raised);

}  // namespace tacet
