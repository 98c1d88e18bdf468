// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/source_ref.h"
#include "model/fragment.h"

namespace tacet {

// Settings that a sentence says to be set already, or to have been tried in vain ("export NCCL_P2P_DISABLE=1 does not
// help", "I already set MASTER_PORT=29777", "runs with --shm-size=64g already"): as `environment` events that mean
// in_prose.
void AddToldTried(std::string_view line, const SourceRef& source, Fragment& fragment);

// "takes longer than 30 minutes, then an exception is thrown": a time limit, as a watchdog_timeout that means in_prose,
// where nothing else tells what failed.
void AddToldLimit(std::string_view line, const SourceRef& source, Fragment& fragment);

}  // namespace tacet
