// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// "Rank 2 is stuck and has not issued ...; ranks 0 and 1 wait for it" as a postmortem tells it: "was stuck and had not
// issued", "waited for it". What is in brackets or quotes, and what is said of the evidence, stays as it is.
std::string InPastTense(std::string_view text);

}  // namespace tacet
