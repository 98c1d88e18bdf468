// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// "If you see `CUDA out of memory` ...": a sentence about what may happen, or is over, tells of no failure.
bool IsAdvice(std::string_view sentence);

// An error without what a library adds to its words: "(run with NCCL_DEBUG=INFO for details)", and the " / " behind
// which the last error stands where there is one.
std::string WithoutHints(std::string_view error);

}  // namespace tacet
