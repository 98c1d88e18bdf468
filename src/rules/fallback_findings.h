// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rules/told_finding.h"

namespace tacet {

// A slower transport than the hosts have, told by these events.
Finding FallbackFinding(const ToldEvents& told);

// Open MPI says so itself, and goes on over another transport.
Finding MpiFallbackFinding(const ToldEvents& told);

}  // namespace tacet
