// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "analysis/analyses.h"

namespace tacet {

// One wait graph over all sources: every rank that some source names as the end of a wait, and that no better record
// shows waiting or keeping up. "Silent" in one source yields to any other source that saw the rank.
std::map<Rank, const WaitRoot*> FindWaitEnds(const Incident& incident, const Analyses& analyses);

}  // namespace tacet
