// SPDX-License-Identifier: Apache-2.0
#include "render/report/junit_render.h"

#include <cstdio>
#include <map>
#include <string_view>

#include "render/markup_escape.h"
#include "render/render_words.h"

namespace tacet {
namespace {

struct TestCase {
  std::string group, name;
  std::string_view outcome;  // "failure", "error", "skipped"; empty when it passes
  std::string type, message, body;
};

std::string DescribeFinding(const ReportFinding& finding) {
  std::string out = finding.headline + "\n\n";
  const auto add = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) out += std::string(label) + ": " + value + "\n";
  };
  add("guilty", DescribeRanks(finding.ranks));
  add(AffectedWait(finding.status) ? "waiting" : "affected", DescribeRanks(finding.affected_ranks));
  add("where", DescribePlace(finding));
  add("confidence", std::string(Name(finding.confidence)));
  add("a consequence of", finding.explained_by);
  if (!finding.meaning.empty())
    out +=
        "\nIn general\n" + finding.meaning + "\n\nHow it differs from its look-alikes\n" + finding.look_alikes + "\n";
  else if (!finding.explanation.empty())
    out += "\n" + finding.explanation + "\n";
  if (!finding.evidence.empty()) out += "\nEvidence\n";
  for (const CitedEvidence& evidence : finding.evidence) {
    out += "- " + SaysOf(evidence) + "\n";
    const std::string source = DescribeSource(evidence);
    const std::string& quote = QuoteOf(evidence);
    if (!source.empty() || !quote.empty())
      out += "  " + source + (source.empty() || quote.empty() ? "" : "  ") + quote + "\n";
  }
  if (!finding.fix.empty()) out += "\nWhat to do now\n";
  for (const std::string& step : finding.fix) out += "- " + step + "\n";
  return out;
}

std::string DescribeQuestions(const Report& report) {
  std::string out;
  for (const CannotTell& question : report.cannot_tell) out += "- " + question.question + " " + question.missing + "\n";
  return out;
}

// What happened is known, the cause is not: a gate must not pass on it.
void AddOpenVerdict(const Report& report, std::vector<TestCase>* cases) {
  if (!FailedForUnknownCause(report)) return;
  const ReportVerdict& verdict = report.verdict;
  cases->push_back({"tacet." + std::string(Name(verdict.status)), "cause unknown", "failure",
                    std::string(Name(verdict.status)), verdict.headline,
                    verdict.headline + "\n" + DescribeQuestions(report)});
}

void AddFindings(const Report& report, std::vector<TestCase>* cases) {
  AddOpenVerdict(report, cases);
  for (const ReportFinding& finding : report.findings) {
    if (finding.severity == Severity::note) continue;
    const std::string ranks = DescribeRanks(finding.ranks, 40);
    cases->push_back(
        {"tacet." + std::string(Name(finding.status)),
         (finding.cause.empty() ? "cause unknown" : finding.cause) + (ranks.empty() ? "" : " (" + ranks + ")"),
         "failure", finding.cause.empty() ? std::string(Name(finding.status)) : finding.cause, finding.headline,
         DescribeFinding(finding) + (finding.cause.empty() && !report.cannot_tell.empty()
                                         ? "\nCannot tell\n" + DescribeQuestions(report)
                                         : "")});
  }
  if (!cases->empty()) return;
  TestCase verdict{"tacet", "diagnosis", "", "", report.verdict.headline, report.verdict.headline};
  if (report.verdict.status != Status::healthy)
    verdict.outcome = "skipped";  // nothing found is not the same as healthy
  cases->push_back(std::move(verdict));
}

void AddInputProblems(const Report& report, std::vector<TestCase>* cases) {
  std::map<std::string, std::vector<const ReportDiagnostic*>> by_file;
  for (const ReportDiagnostic& diagnostic : report.diagnostics)
    if (diagnostic.severity != "note") by_file[diagnostic.file].push_back(&diagnostic);
  for (const auto& [file, diagnostics] : by_file) {
    TestCase problem{"tacet.input",        file.empty() ? "input" : file, "skipped",
                     diagnostics[0]->code, diagnostics[0]->message,       ""};
    for (const ReportDiagnostic* diagnostic : diagnostics) {
      if (diagnostic->severity == "error") problem.outcome = "error";
      problem.body += diagnostic->severity + " " + diagnostic->code;
      if (diagnostic->line > 0) problem.body += " at line " + std::to_string(diagnostic->line);
      if (diagnostic->count > 1) problem.body += ", " + std::to_string(diagnostic->count) + " times";
      problem.body += ": " + diagnostic->message + (diagnostic->hint.empty() ? "" : " " + diagnostic->hint) + "\n";
    }
    cases->push_back(std::move(problem));
  }
}

void WriteCase(const TestCase& test, std::string* out) {
  const auto add = [&](std::string_view name, std::string_view value) {
    *out += ' ' + std::string(name) + "=\"" + EscapeForXml(value, true) + '"';
  };
  *out += "    <testcase";
  add("classname", test.group);
  add("name", test.name);
  const std::string element(test.outcome.empty() ? "system-out" : test.outcome);
  *out += " time=\"0\">\n      <" + element;
  if (test.outcome == "failure" || test.outcome == "error") add("type", test.type);
  if (!test.outcome.empty()) add("message", test.message);
  *out += ">" + EscapeForXml(test.body, false) + "</" + element + ">\n    </testcase>\n";
}

}  // namespace

std::string RenderJunit(const Report& report) {
  std::vector<TestCase> cases;
  AddFindings(report, &cases);
  AddInputProblems(report, &cases);
  const auto count = [&](std::string_view outcome) {
    size_t n = 0;
    for (const TestCase& test : cases) n += test.outcome == outcome;
    return std::to_string(n);
  };
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", report.seconds);
  const std::string totals = " tests=\"" + std::to_string(cases.size()) + "\" failures=\"" + count("failure") +
                             "\" errors=\"" + count("error") + "\" time=\"" + seconds + "\"";
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tacet\"" + totals + ">\n";
  out += "  <testsuite name=\"tacet diagnose\"" + totals + " skipped=\"" + count("skipped") + "\">\n";
  for (const TestCase& test : cases) WriteCase(test, &out);
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace tacet
