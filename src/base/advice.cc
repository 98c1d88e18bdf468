// SPDX-License-Identifier: Apache-2.0
#include "base/advice.h"

#include "base/text_scan.h"

namespace tacet {

bool IsAdvice(std::string_view sentence) {
  sentence = Trim(sentence);
  for (const std::string_view begin :
       {"If you ", "If this ", "To avoid ", "To fix ", "In case ", "When you ", "You may ", "You might ", "Note that "})
    if (sentence.starts_with(begin)) return true;
  return false;
}

}  // namespace tacet
