// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "evidence/torch_log/errors/torch_log_traceback.h"

namespace tacet {

// Parts what an exception says from what followed from it, in the text of a record.
constexpr std::string_view kChainLedTo = "\nwhich led to ";

ChainLink ChainLinkOf(std::string_view text);

// Which of two joined exceptions tells what went wrong: the first, unless the second is the same in better words.
bool FirstTellsMore(const RaisedException& first, ChainLink link, const RaisedException& later);

}  // namespace tacet
