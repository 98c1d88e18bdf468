// SPDX-License-Identifier: Apache-2.0
#include "base/test_result.h"

#include "base/text_scan.h"

namespace tacet {

bool IsPassedTest(std::string_view line) {
  const size_t name = line.find(".py::");
  return name != std::string_view::npos && ContainsAny(line.substr(name), {" PASSED", " XFAIL", " SKIPPED", " XPASS"});
}

}  // namespace tacet
