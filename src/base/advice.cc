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

std::string WithoutHints(std::string_view error) {
  std::string text(error);
  if (const size_t hint = text.find(" (run with "); hint != std::string::npos)
    if (const size_t end = text.find(')', hint); end != std::string::npos) text.erase(hint, end + 1 - hint);
  while (text.ends_with(' ') || text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace tacet
