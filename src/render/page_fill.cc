// SPDX-License-Identifier: Apache-2.0
#include "render/page_fill.h"

#include <cassert>

#include "render/markup_escape.h"

namespace tacet {
namespace {

// In a script element only "</script" and "<!--" end or bend the data, but an escape for every angle bracket is simpler
// to trust. They can only stand inside strings, where JSON knows the escape. U+2028 and U+2029 (e2 80 a8, e2 80 a9)
// break lines in old JavaScript.
std::string EscapeForScript(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      case '\xe2':
        if (json.substr(i, 2) == "\xe2\x80" && i + 2 < json.size() &&
            (json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
          out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
          i += 2;
          break;
        }
        [[fallthrough]];
      default: out += json[i];
    }
  }
  return out;
}

// Copies the page up to the mark and leaves the rest in *page. What was filled in before is never searched again, so a
// report that holds a mark itself changes nothing.
void Fill(std::string_view* page, std::string_view mark, std::string_view value, std::string* out) {
  const size_t at = page->find(mark);
  assert(at != std::string_view::npos);
  out->append(page->substr(0, at)).append(value);
  page->remove_prefix(at + mark.size());
}

}  // namespace

std::string FillPage(std::string_view page, const PageContent& content) {
  const std::string json = EscapeForScript(content.json);
  const std::string plain = EscapeForHtml(content.plain);
  std::string out;
  out.reserve(page.size() + json.size() + plain.size() + 256);
  Fill(&page, "{{connect}}", content.asks_server ? "connect-src 'self'; " : "", &out);
  Fill(&page, "{{title}}", EscapeForHtml(content.title), &out);
  Fill(&page, "{{plain}}", plain, &out);
  Fill(&page, "{{report}}", json, &out);
  out += page;
  return out;
}

}  // namespace tacet
