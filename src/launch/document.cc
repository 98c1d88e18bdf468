// SPDX-License-Identifier: Apache-2.0
#include "launch/document.h"

#include <algorithm>

#include "render/markup_escape.h"

namespace tacet {
namespace {

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
    const bool special = std::string_view("\\`*_[]<>|").find(c) != std::string_view::npos ||
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
    case Kind::table:
      out += "<table>\n";
      for (size_t row = 0; row < block.rows.size(); ++row) {
        out += "<tr>";
        const char* tag = row == 0 ? "th" : "td";
        for (const std::string& cell : block.rows[row])
          out += std::string("<") + tag + ">" + EscapeForHtml(cell) + "</" + tag + ">";
        out += "</tr>\n";
      }
      out += "</table>\n";
      break;
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
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #8886}h3{font-size:1rem;margin:.5rem 0}
pre{overflow-x:auto;padding:.7rem;border:1px solid #8886;border-radius:4px;font-size:.85rem;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{text-align:left;vertical-align:top;padding:.25rem .7rem;border:1px solid #8886;overflow-wrap:anywhere}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}
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
