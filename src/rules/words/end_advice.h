// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// What to do about a process that ended in this way: what fits its signal or code, and nothing about others.
// What would show why the job ended, with the means of the launcher that is seen.
std::string OutputToCapture(const Event* told);

// What is still to be asked about the end of a process whose rank is not told.
CannotTell QuestionAboutEnd(const Event& end);

std::vector<std::string> EndAdvice(const Event& end);

// A rank of which nothing is here but how its launcher saw it end: its own output is what is missing. Empty otherwise.
std::vector<std::string> LostOutputSteps(const Case& facts, const Event& end);

// "signal 9 (SIGKILL)", "exit code 3".
std::string HowItEnded(const Event& end);

// A program that exits with a code of its own after its communication library failed only reacts to that. Launchers
// name the first that exits, and on which rank that is says nothing: the same error may stand there of several hosts.
bool FollowsLibraryError(const Incident& incident, const Event& end);

// The launcher's daemon that was lost after this end; nullptr: none.
const Event* LostDaemonAfter(const Incident& incident, const Event& end);
void TellLostDaemon(const Event& daemon, Finding& finding);

// "a process on gpu7"; of a pod "a container of pod bert-master-0", whose name is none of a host.
std::string EndedSubjectWords(const Event& end, const Subject& subject);

}  // namespace tacet
