// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// Somebody's time was up, and this error, which ends its process, came before: the first fatal event decides that the
// job crashed.
bool EndedBeforeTimeouts(const Case& facts, const Event& error);

}  // namespace tacet
