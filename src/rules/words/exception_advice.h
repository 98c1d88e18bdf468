// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/events/event.h"
#include "rules/finding.h"

namespace tacet {

// "std::runtime_error": a C++ exception that nobody caught ended the process, and there is no traceback of Python.
bool IsNativeType(std::string_view type);

// What helps with errors of this type, whoever raises them: a server that does not answer, a path, a damaged file.
// Empty for types that tell nothing by themselves (ValueError, RuntimeError).
std::string AdviceForType(std::string_view type, bool relative = false);

// For an error that says that something did not answer in time.
std::string_view TimeoutAdvice();

// What was read is damaged, incomplete or of another format.
bool IsUnreadableContent(std::string_view type);

// ... and it came from other ranks.
std::vector<std::string> ReceivedContentSteps();

// The error ended a thread and not the process: the others then wait for what that thread should have done.
void TellEndedThread(bool many, Finding& finding);

// "Fix the error in check_grads (buffer.py:171), the last frame in the program's own code."
std::string PlaceToFix(const Event& raised);

}  // namespace tacet
