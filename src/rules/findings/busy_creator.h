// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// The first collective creates the communicator, and the others wait for the rank that creates it (the peer of `wait`).
// Where that one had joined the process group, and its process was alive to the end, its own code kept it from there.
void TellMissingCreator(const Case& facts, const Event& wait, Finding& finding);

}  // namespace tacet
