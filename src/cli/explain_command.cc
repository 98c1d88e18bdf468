// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/spelling.h"
#include "render/text_layout.h"
#include "rules/rule.h"

namespace tacet {

extern const Command kExplainCommand;
namespace {

void AddList(TextPage& page, std::string_view title, const std::vector<std::string_view>& items) {
  page.Heading(title);
  for (const std::string_view item : items) page.Paragraph("  - ", item);
}

std::string ExplainText(const Rule& rule) {
  TextPage page(static_cast<size_t>(TerminalWidth()), false);
  page.Paragraph("", std::string(rule.id) + ": " + std::string(rule.title));
  page.Blank();
  page.Paragraph("", rule.meaning);
  page.Heading("How it differs from its look-alikes");
  page.Paragraph("  ", rule.look_alikes);
  AddList(page, "What to do", rule.fix);
  AddList(page, "How to prevent it", rule.prevent);
  page.Heading("Evidence it needs");
  page.Paragraph("  ", rule.needs);
  return page.Take();
}

std::string Bullets(const std::vector<std::string_view>& items) {
  std::string out;
  for (const std::string_view item : items) out += "- " + std::string(item) + "\n";
  return out;
}

// docs/causes.md is written from here, so that it cannot differ from what the tool says.
std::string CausesAsMarkdown() {
  std::string out = "# Causes\n\nWritten by `tacet explain --markdown`; edit the rule files instead.\n";
  for (const Rule* rule : AllRules()) {
    out += "\n## " + std::string(rule->id) + "\n\n**" + std::string(rule->title) + ".** " + std::string(rule->meaning) +
           "\n\n*Look-alikes.* " + std::string(rule->look_alikes) + "\n\n*What to do*\n\n" + Bullets(rule->fix) +
           "\n*How to prevent it*\n\n" + Bullets(rule->prevent) + "\n*Evidence.* " + std::string(rule->needs) + "\n";
  }
  return out;
}

int RunExplain(const std::vector<std::string>& arguments) {
  auto options = Options::Parse(arguments, kExplainCommand.help);
  if (!options) return Complain(options.error());
  std::string out;
  if (options->Has("--markdown")) {
    out = CausesAsMarkdown();
  } else if (options->Has("--list")) {
    TextPage page(ListWidth(), false);
    for (const Rule* rule : AllRules()) {
      std::string id(rule->id);
      id.resize(std::max<size_t>(id.size() + 1, 32), ' ');
      page.Paragraph(id, rule->title);
    }
    out = page.Take();
  } else if (options->rest().empty()) {
    return Complain({"explain needs a cause", "tacet explain --list shows them all"});
  }
  for (const std::string& id : options->rest()) {
    const Rule* rule = FindRule(id);
    if (!rule) {
      std::vector<std::string_view> known;
      for (const Rule* one : AllRules()) known.push_back(one->id);
      return Complain({"unknown cause '" + id + "'", DidYouMean(id, known) + "'tacet explain --list' lists them"});
    }
    out += (out.empty() ? "" : "\n") + ExplainText(*rule);
  }
  return WriteOutput("", out) ? kHealthy : kUsage;
}

}  // namespace

const Command kExplainCommand = {"explain", "Explain a cause: what it means, how to fix and how to prevent it",
                                 R"(tacet explain CAUSE... | --list | --markdown

Prints what a cause means, how it differs from its look-alikes, what to do, and how to prevent it.

  -l, --list       all causes, one line each
      --markdown   all causes as one document

Examples:
  tacet explain rank-stuck-on-host
  tacet explain --list
)",
                                 RunExplain};

}  // namespace tacet
