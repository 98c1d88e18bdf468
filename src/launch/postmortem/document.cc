// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem/document.h"

#include <algorithm>

#include "render/markup_escape.h"

namespace tacet {
namespace {

bool IsWordChar(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// What would begin a construct of Markdown stands behind a backslash; lines stay lines.
std::string EscapeForMarkdown(std::string_view text, bool cell) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (c == '\n' && cell) {
      out += ' ';
      continue;
    }
    // Within a word an underscore means nothing: NCCL_DEBUG can be copied as it stands.
    const bool joins = c == '_' && i > 0 && i + 1 < text.size() && IsWordChar(text[i - 1]) && IsWordChar(text[i + 1]);
    const bool special = (std::string_view("\\`*_[]<>|").find(c) != std::string_view::npos && !joins) ||
                         (line_begins && (c == '#' || c == '+' || c == '-' || c == '='));
    if (special) out += '\\';
    out += c;
  }
  return out;
}

// A fence that is longer than any run of backticks in the text.
std::string Fence(std::string_view text) {
  size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

void AddCode(const std::string& text, std::string& out) {
  const std::string fence = Fence(text);
  out += fence + "text\n" + text + (text.ends_with('\n') ? "" : "\n") + fence + "\n\n";
}

void AddMarkdown(const DocumentBlock& block, std::string& out) {
  using Kind = DocumentBlock::Kind;
  switch (block.kind) {
    case Kind::paragraph: out += EscapeForMarkdown(block.items.front(), false) + "\n\n"; break;
    case Kind::code: AddCode(block.items.front(), out); break;
    case Kind::list:
    case Kind::numbered: {
      int number = 0;
      for (const std::string& item : block.items)
        out +=
            (block.kind == Kind::list ? "- " : std::to_string(++number) + ". ") + EscapeForMarkdown(item, true) + "\n";
      out += "\n";
      break;
    }
    case Kind::table:
      for (size_t row = 0; row < block.rows.size(); ++row) {
        out += "|";
        for (const std::string& cell : block.rows[row]) out += " " + EscapeForMarkdown(cell, true) + " |";
        out += "\n";
        if (row != 0) continue;
        out += "|";
        for (size_t i = 0; i < block.rows[row].size(); ++i) out += " --- |";
        out += "\n";
      }
      out += "\n";
      break;
    case Kind::side_by_side:
      for (const auto& [title, text] : block.columns) {
        out += "**" + EscapeForMarkdown(title, true) + "**\n\n";
        AddCode(text, out);
      }
      break;
  }
}

// Facts have no head: the first cell of a row names the second. On a phone a row becomes a block of named lines.
void AddHtmlTable(const std::vector<std::vector<std::string>>& rows, std::string& out) {
  if (rows.empty()) return;
  const std::vector<std::string>& head = rows.front();
  const bool facts = std::all_of(head.begin(), head.end(), [](const std::string& cell) { return cell.empty(); });
  out += facts ? "<table class=\"facts\">\n" : "<table>\n<thead><tr>";
  for (const std::string& cell : facts ? std::vector<std::string>() : head)
    out += "<th scope=\"col\">" + EscapeForHtml(cell) + "</th>";
  out += facts ? "<tbody>\n" : "</tr></thead>\n<tbody>\n";
  for (size_t row = 1; row < rows.size(); ++row) {
    out += "<tr>";
    for (size_t i = 0; i < rows[row].size(); ++i) {
      const std::string text = EscapeForHtml(rows[row][i]);
      if (facts && i == 0)
        out += "<th scope=\"row\">" + text + "</th>";
      else
        out += "<td data-label=\"" + EscapeForHtml(i < head.size() ? head[i] : "") + "\">" + text + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table>\n";
}

void AddHtml(const DocumentBlock& block, std::string& out) {
  using Kind = DocumentBlock::Kind;
  switch (block.kind) {
    case Kind::paragraph: out += "<p>" + EscapeForHtml(block.items.front()) + "</p>\n"; break;
    case Kind::code: out += "<pre>" + EscapeForHtml(block.items.front()) + "</pre>\n"; break;
    case Kind::list:
    case Kind::numbered: {
      const std::string tag = block.kind == Kind::list ? "ul" : "ol";
      out += "<" + tag + ">\n";
      for (const std::string& item : block.items) out += "<li>" + EscapeForHtml(item) + "</li>\n";
      out += "</" + tag + ">\n";
      break;
    }
    case Kind::table: AddHtmlTable(block.rows, out); break;
    case Kind::side_by_side:
      out += "<div class=\"columns\">\n";
      for (const auto& [title, text] : block.columns)
        out += "<div><h3>" + EscapeForHtml(title) + "</h3><pre>" + EscapeForHtml(text) + "</pre></div>\n";
      out += "</div>\n";
      break;
  }
}

// Readable in a mail program, on paper, and in the dark.
constexpr std::string_view kStyle = R"(<style>
:root{color-scheme:light dark;--paper:#faf9f7;--surface:#fff;--sunken:#f3f1ed;--ink:#1d1c1a;--ink-2:#55524c;--line:#e3dfd7}
@media screen and (prefers-color-scheme:dark){:root{--paper:#131315;--surface:#1b1b1e;--sunken:#232327;--ink:#eceae5;--ink-2:#b3afa7;--line:#323136}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 -apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,system-ui,sans-serif}
main{max-width:66rem;margin:0 auto;padding:24px 28px 48px;overflow-wrap:anywhere}
h1{font-size:24px;line-height:1.35;margin:0 0 20px}h2{font-size:19px;margin:36px 0 12px}h3{font-size:14px;margin:0 0 8px}
p,li{max-width:60rem}li+li{margin-top:4px}
pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;padding:10px 14px;margin:8px 0 14px;background:var(--surface);border:1px solid var(--line);border-radius:7px;white-space:pre-wrap}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:13.5px;background:var(--surface);border:1px solid var(--line);border-radius:10px;margin:8px 0 14px}
th,td{text-align:left;vertical-align:top;padding:7px 14px}tr+tr>*,thead+tbody>tr:first-child>*{border-top:1px solid var(--line)}
th{font-weight:600;color:var(--ink-2)}table.facts th{width:9em}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:14px}
.columns>div{min-width:0}
@media(max-width:640px){main{padding:16px}h1{font-size:20px}
table:not(.facts) thead{position:absolute;left:-9999px}
table:not(.facts),table:not(.facts) tbody,table:not(.facts) tr,table:not(.facts) td{display:block}
table:not(.facts) tr{padding:8px 14px}table:not(.facts) td{display:grid;grid-template-columns:112px 1fr;padding:2px 0;border:0}
table:not(.facts) tr+tr{border-top:1px solid var(--line)}table:not(.facts) tr+tr>*,table:not(.facts) tr:first-child>*{border:0}
td[data-label]::before{content:attr(data-label);color:var(--ink-2)}table.facts td::before{content:none}td:empty{display:none!important}
table.facts th{width:7em}}
@media print{:root{--paper:#fff;--surface:#fff}pre,tr{break-inside:avoid}}
</style>
)";

}  // namespace

std::string RenderMarkdown(const Document& document) {
  std::string out = "# " + EscapeForMarkdown(document.title, true) + "\n\n";
  for (const DocumentSection& section : document.sections) {
    if (section.blocks.empty()) continue;
    out += "## " + EscapeForMarkdown(section.title, true) + "\n\n";
    for (const DocumentBlock& block : section.blocks) AddMarkdown(block, out);
  }
  return out;
}

std::string RenderDocumentHtml(const Document& document) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>Tacet: " +
      EscapeForHtml(document.title) + "</title>\n" + std::string(kStyle) + "</head><body><main>\n<h1>" +
      EscapeForHtml(document.title) + "</h1>\n";
  for (const DocumentSection& section : document.sections) {
    if (section.blocks.empty()) continue;
    out += "<section><h2>" + EscapeForHtml(section.title) + "</h2>\n";
    for (const DocumentBlock& block : section.blocks) AddHtml(block, out);
    out += "</section>\n";
  }
  return out + "</main></body></html>\n";
}

}  // namespace tacet
