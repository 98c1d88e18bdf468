// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// "If you see `CUDA out of memory` ...": a sentence about what may happen, or is over, tells of no failure.
bool IsAdvice(std::string_view sentence);

}  // namespace tacet
