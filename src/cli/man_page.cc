// SPDX-License-Identifier: Apache-2.0
// Man pages from the commands' help, so that they cannot differ from it.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "cli/help_text.h"
#include "cli/option_table.h"

namespace tacet {
namespace {

// Text as troff shows it unchanged: no line of it begins a request, and a minus is one that can be pasted.
std::string Roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string Heading(const std::string& title, std::string_view what) {
  std::string name;
  for (const char c : title) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return ".TH " + Roff(name) + " 1 \"\" \"tacet " TACET_VERSION "\" \"Tacet\"\n.ad l\n.SH NAME\n" + Roff(title) +
         " \\- " + Roff(what) + "\n";
}

std::string OptionEntry(const OptionRow& row) {
  std::string out = ".TP\n";
  if (row.letter != 0) out += "\\fB\\-" + std::string(1, row.letter) + "\\fR, ";
  out += "\\fB" + Roff(row.name) + "\\fR";
  if (!row.value.empty()) out += " \\fI" + Roff(row.value) + "\\fR";
  return out + "\n" + Roff(row.text) + "\n";
}

bool IsOptionLine(std::string_view line) {
  return line.starts_with("      --") || (line.starts_with("  -") && line.size() > 6 && line.substr(4, 4) == ", --");
}

std::string_view TakeLine(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// A paragraph of the help: text, a table that keeps its columns, or a titled block.
std::string Paragraph(std::string_view block) {
  std::string_view rest = block;
  const std::string_view first = TakeLine(rest);
  const bool examples = first == "Examples:" || first == "Example:";
  if (examples)
    return ".SH EXAMPLES\n.nf\n" + [&] {
      std::string out;
      while (!rest.empty()) out += Roff(TakeLine(rest)) + "\n";
      return out;
    }() + ".fi\n";
  std::string out = ".PP\n";
  constexpr std::string_view kExit = "Exit code:";
  if (first.starts_with(kExit)) {
    out = ".SH EXIT STATUS\n";
    TakeLine(block);
  }
  for (bool table = false; !block.empty();) {
    const std::string_view line = TakeLine(block);
    if (line.starts_with(' ') != table) {
      table = !table;
      out += table ? ".nf\n" : ".fi\n";
    }
    out += Roff(line) + "\n";
    if (table && block.empty()) out += ".fi\n";
  }
  return out;
}

// The options of a block in one go, with the sentences between them.
std::string OptionBlock(std::string_view block) {
  std::string out;
  std::string_view rest = block;
  while (!rest.empty() && !IsOptionLine(rest.substr(0, rest.find('\n')))) out += Roff(TakeLine(rest)) + "\n";
  if (!out.empty()) out = ".PP\n" + out;
  for (const OptionRow& row : ReadOptionRows(rest)) out += OptionEntry(row);
  return out;
}

bool HoldsOptions(std::string_view block) {
  while (!block.empty())
    if (IsOptionLine(TakeLine(block))) return true;
  return false;
}

}  // namespace

std::string ManPage(const Command& command) {
  std::string_view help = command.help;
  const std::string title = "tacet-" + std::string(command.name);
  std::string out = Heading(title, command.summary) + ".SH SYNOPSIS\n.nf\n";
  while (!help.empty() && !help.starts_with('\n')) out += Roff(TakeLine(help)) + "\n";
  out += ".fi\n.SH DESCRIPTION\n";
  bool options = false;
  while (!help.empty()) {
    const size_t end = std::min(help.find("\n\n"), help.size());
    std::string_view block = help.substr(0, end);
    help.remove_prefix(std::min(end + 2, help.size()));
    while (block.starts_with('\n')) block.remove_prefix(1);
    if (block.empty()) continue;
    if (!HoldsOptions(block)) {
      out += Paragraph(block);
      continue;
    }
    if (!options) out += ".SH OPTIONS\n";
    options = true;
    out += OptionBlock(block);
  }
  return out + ".SH SEE ALSO\n.BR tacet (1)\n";
}

std::string ManPage() {
  std::string out =
      Heading("tacet", "names the rank that hangs, slows down or corrupts a distributed job, and says why");
  out += ".SH SYNOPSIS\n\\fBtacet\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n.SH COMMANDS\n";
  for (const Command* command : AllCommands())
    out += ".TP\n\\fB" + Roff(command->name) + "\\fR\n" + Roff(command->summary) + ".\n";
  out += ".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nlists the commands; after a command, its help\n";
  out += ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nversion, commit, compiler and architecture\n.SH ENVIRONMENT\n.nf\n";
  const std::string environment = EnvironmentText();
  std::string_view rest = environment;
  while (!rest.empty()) out += Roff(TakeLine(rest)) + "\n";
  out += ".fi\n.SH SEE ALSO\n";
  std::string pages;
  for (const Command* command : AllCommands())
    pages += (pages.empty() ? "" : " ,\n") + (".BR tacet\\-" + Roff(command->name) + " (1)");
  return out + pages + "\n";
}

}  // namespace tacet
