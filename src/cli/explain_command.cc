// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "base/text_scan.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/spelling.h"
#include "model/events/xid.h"
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

// "63", "Xid 63", "xid-63", "Xid: 63".
std::optional<int64_t> XidNumber(std::string_view asked) {
  const std::string lower = LowerCase(asked);
  std::string_view rest = lower;
  if (TakeLiteral(rest, "xid"))
    while (!rest.empty() && !IsDigit(rest.front()) && !std::isalpha(static_cast<unsigned char>(rest.front())))
      rest.remove_prefix(1);
  int64_t number = 0;
  if (!TakeNumber(rest, &number) || !rest.empty()) return std::nullopt;
  return number;
}

// By its number, or by words of its name: "row remapping".
std::vector<const XidMeaning*> XidsOf(std::string_view asked) {
  std::vector<const XidMeaning*> found;
  if (const auto number = XidNumber(asked)) {
    if (const XidMeaning* one = FindXid(*number)) found.push_back(one);
    return found;
  }
  constexpr size_t kLeastLetters = 4;
  const std::string words = LowerCase(asked);
  if (words.size() < kLeastLetters) return found;
  for (const XidMeaning& one : AllXids())
    if (LowerCase(one.name).find(words) != std::string::npos) found.push_back(&one);
  return found;
}

// Xids with the same explanation share one: a name and number each, then what holds for all of them.
std::string ExplainXids(const std::vector<const XidMeaning*>& alike) {
  const XidMeaning& xid = *alike.front();
  TextPage page(static_cast<size_t>(TerminalWidth()), false);
  for (const XidMeaning* one : alike)
    page.Paragraph("", "Xid " + std::to_string(one->code) + ": " + std::string(one->name));
  page.Blank();
  page.Paragraph("", xid.meaning);
  page.Heading("Where it comes from");
  page.Paragraph("  ", xid.origin == XidOrigin::consequence ? std::string("It is the consequence of something else.")
                                                            : "The " + std::string(Name(xid.origin)) + ".");
  page.Heading("What it does to the job");
  page.Paragraph("  ", xid.code == 94     ? "Only the process that used the bad memory is ended; others continue."
                       : xid.ends_process ? "Processes that use the GPU cannot continue."
                                          : "Processes that use the GPU continue.");
  page.Heading("What to do");
  page.Paragraph("  - ", xid.advice);
  return page.Take();
}

std::string ExplainAll(const std::vector<const XidMeaning*>& xids) {
  std::string out;
  std::vector<const XidMeaning*> alike;
  const auto flush = [&] {
    if (!alike.empty()) out += (out.empty() ? "" : "\n") + ExplainXids(alike);
    alike.clear();
  };
  for (const XidMeaning* xid : xids) {
    if (!alike.empty() && (alike.front()->meaning != xid->meaning || alike.front()->advice != xid->advice ||
                           alike.front()->origin != xid->origin || alike.front()->ends_process != xid->ends_process))
      flush();
    alike.push_back(xid);
  }
  flush();
  return out;
}

std::string Bullets(const std::vector<std::string_view>& items) {
  std::string out;
  for (const std::string_view item : items) out += "- " + std::string(item) + "\n";
  return out;
}

// One line each, in groups; the title begins in the same column everywhere.
std::string ListOfCauses() {
  TextPage page(ListWidth(), false);
  size_t widest = 0;
  for (const Rule* rule : AllRules()) widest = std::max(widest, rule->id.size());
  for (uint8_t group = 0; group <= static_cast<uint8_t>(kLastRuleGroup); ++group) {
    page.Heading(Name(RuleGroup{group}));
    for (const Rule* rule : RulesIn(RuleGroup{group})) {
      std::string id = "  " + std::string(rule->id);
      id.resize(widest + 4, ' ');
      page.Paragraph(id, rule->title);
    }
  }
  return page.Take();
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
    out = ListOfCauses();
  } else if (options->rest().empty()) {
    return Complain({"explain needs a cause", "tacet explain --list shows them all"});
  }
  const std::vector<std::string>& asked = options->rest();
  std::string all;
  for (const std::string& word : asked) all += (all.empty() ? "" : " ") + word;
  if (const auto xids = XidsOf(all); !xids.empty()) {  // its words may be arguments of their own: xid 63, row remapping
    out += ExplainAll(xids);
    return WriteOutput("", out) ? kHealthy : kUsage;
  }
  if (const auto number = XidNumber(all))
    return Complain({"Xid " + std::to_string(*number) + " is not known",
                     "NVIDIA's Xid catalog has all of them: https://docs.nvidia.com/deploy/xid-errors"});
  // "out of memory": words of a cause may be arguments of their own, too.
  std::string joined;
  for (const std::string& word : asked) joined += (joined.empty() ? "" : "-") + LowerCase(word);
  const bool are_words = asked.size() > 1 && std::none_of(asked.begin(), asked.end(), [](const std::string& word) {
                           return FindRule(word) || XidNumber(word);
                         });
  for (const std::string& id : are_words ? std::vector<std::string>{joined} : asked) {
    const Rule* rule = FindRule(id);
    if (!rule && XidNumber(id) && FindXid(*XidNumber(id))) {
      out += (out.empty() ? "" : "\n") + ExplainXids({FindXid(*XidNumber(id))});
      continue;
    }
    if (!rule) {
      std::vector<std::string_view> known;
      for (const Rule* one : AllRules()) known.push_back(one->id);
      return Complain(
          {"unknown cause '" + id + "'", DidYouMean(id, known) + "'tacet explain --list' lists all causes"});
    }
    out += (out.empty() ? "" : "\n") + ExplainText(*rule);
  }
  return WriteOutput("", out) ? kHealthy : kUsage;
}

}  // namespace

const Command kExplainCommand = {"explain", "Explain a cause: what it means, how to fix and how to prevent it",
                                 R"(tacet explain CAUSE... | xid NUMBER | WORDS... | --list | --markdown

Prints what a cause means, how it differs from its look-alikes, what to do, and how to prevent it. Also
explains an Xid (an error that NVIDIA's driver writes to the kernel log), given by its number or by words of its name.

  -l, --list       all causes, one line each
      --markdown   all causes as one document

Exit code:
  0  explained
  2  wrong usage or an unknown cause
  3  internal error

Examples:
  tacet explain rank-stuck-on-host
  tacet explain xid 63
  tacet explain row remapping
  tacet explain --list
)",
                                 RunExplain};

}  // namespace tacet
