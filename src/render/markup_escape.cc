// SPDX-License-Identifier: Apache-2.0
#include "render/markup_escape.h"

#include "render/render_words.h"

namespace tacet {

std::string EscapeForHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// XML 1.0 has no way to write control characters, U+FFFE or U+FFFF, not even as references; CleanText has made the
// former visible, the latter follow here.
std::string EscapeForXml(std::string_view raw, bool attribute) {
  const std::string text = CleanText(raw);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    switch (text[i]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += attribute ? "&#10;" : "\n"; break;  // a bare one in an attribute reads as a blank
      default:
        if (rest.starts_with("\xef\xbf\xbe") || rest.starts_with("\xef\xbf\xbf")) {
          out += text[i + 2] == '\xbe' ? "\\ufffe" : "\\uffff";
          i += 2;
        } else {
          out += text[i];
        }
    }
  }
  return out;
}

}  // namespace tacet
