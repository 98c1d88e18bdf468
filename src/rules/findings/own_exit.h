// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// A process that ends with an exit code of the program's own, behind a line that no other rank prints, ended itself and
// said why: it did not die. Turns a finding of rank-dead into one of application-exception; false where it does not.
bool TellOwnExit(const Case& facts, Finding& finding);

}  // namespace tacet
