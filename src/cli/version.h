// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tacet {

// "tacet 0.1.0 (commit 020c411a9b3c, GCC 12.2.0, x86_64)": what a report of a fault in the tool should quote.
std::string VersionLine();

}  // namespace tacet
