// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// An exception without a name ended a thread of one process, which went on without it: of the one that alone did not
// reach the call in which all others waited in vain. False where that does not tell whose it is.
bool TellOwnerOfThread(const Case& facts, const Event& exception, Finding& finding);

}  // namespace tacet
