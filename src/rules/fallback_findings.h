// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/told_finding.h"

namespace tacet {

// A slower transport than the hosts have, told by these events.
Finding FallbackFinding(const ToldEvents& told);

// Open MPI says so itself, and goes on over another transport.
Finding MpiFallbackFinding(const ToldEvents& told);

// No adapter is named, so none is there, and the program prints on behind the note: nothing is lost. MPI may carry
// none of its data at all.
bool IsNoteOfNoAdapter(const Case& facts, const ToldEvents& told);

}  // namespace tacet
