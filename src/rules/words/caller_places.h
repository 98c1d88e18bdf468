// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/timeouts/timeout_census.h"

namespace tacet {

// Where the ranks issued an operation in which they timed out, by the stacks that PyTorch prints below the timeouts:
// "log_loss (train.py:44)" and the ranks that are there.
using CallerPlaces = std::map<std::string, std::vector<Rank>>;
CallerPlaces FindCallerPlaces(const Incident& incident, const TimedOutCall& call);

// ", issued in log_loss (train.py:44)"; ": rank 0 issued it in log_loss (train.py:44), rank 1 in save (ckpt.py:90), so
// the ranks run different code"; empty without a stack.
std::string CallerPlaceWords(const CallerPlaces& places);

// What to do where ranks issued the same number at different places; empty where they did not.
std::string CallerPlaceStep(const CallerPlaces& places);

}  // namespace tacet
