// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/rule.h"

namespace tacet {

// Headline and steps where the ranks could not come together since they were not all started: the launcher could not
// start them, torchrun's agents of other nodes did not come, or the program runs on some hosts of a TPU slice only.
void TellLauncher(const Rendezvous& told, Finding& finding);
void TellNodes(Finding& finding);
void TellSlice(Finding& finding);

}  // namespace tacet
