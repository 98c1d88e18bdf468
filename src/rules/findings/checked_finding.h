// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/rule.h"

namespace tacet {

// ": 4 bytes on rank 3, 1844 bytes on another rank", of a check that names at most one side. Empty where it tells no
// sizes.
std::string SidesOfCheck(const Event& report);

// Gloo's check stopped one rank, and the others show who was in another operation: names it. False where nothing shows
// it; then the finding keeps its words.
bool TellCheckedStranger(const Case& facts, Finding& finding);

// Where one side has exactly twice as many bytes as the other, the type may differ and not the shape.
void TellWiderType(const Event& report, Finding& finding);

}  // namespace tacet
