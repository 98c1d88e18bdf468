// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// unit/test_memory.py::test_limit[r1] PASSED (OutOfMemoryError: CUDA out of memory): a runner of tests tells an error
// that the test expects.
bool IsPassedTest(std::string_view line);

}  // namespace tacet
