// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// Adds what the programs around the job say (model/events/site_messages.h) in lines that no reader of a format
// understood.
void AddSiteMessages(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
