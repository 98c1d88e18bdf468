// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "evidence/format.h"

namespace tacet {

// Every format the tool reads. Order has no meaning: a tie between formats is told to the user.
std::span<const Format* const> AllFormats();

}  // namespace tacet
