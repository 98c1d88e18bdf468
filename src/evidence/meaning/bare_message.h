// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/fragment.h"

namespace tacet {

// Of lines that no reader knows: reads an error's message that stands by itself, without the type of the exception that
// carried it: what it means does not depend on that. Where there is none, and the file tells an end or nothing at all,
// the first line that says that something went wrong becomes an unread_error. Only where no other line of the file
// tells a reason, and where the job made no progress after it.
void AddBareMessages(std::string_view bytes, Fragment& fragment);

}  // namespace tacet
