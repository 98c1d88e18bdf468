// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json_reader.h"
#include "golden_case.h"
#include "markup_check.h"
#include "recorded_files.h"
#include "render/render_words.h"
#include "render/report/html_render.h"
#include "render/report/json_render.h"
#include "render/report/junit_render.h"
#include "render/report/sarif_render.h"
#include "render/report/text_render.h"

namespace tacet {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Text is wrapped; what is looked for is not.
std::string Unwrap(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\n') {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  return out;
}

std::string FirstLine(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

JsonValue Parsed(const std::string& json) {
  JsonValue document;
  bool truncated = false;
  EXPECT_TRUE(ParseJson(json, &document, &truncated));
  EXPECT_FALSE(truncated);
  return document;
}

void ExpectKeys(const JsonValue& object, std::initializer_list<std::string_view> keys, std::string_view what) {
  for (const std::string_view key : keys) EXPECT_NE(object.Find(key), nullptr) << what << " has no '" << key << "'";
}

// The exit code the command derives from the findings unless --fail-on says otherwise.
int ExitCodeOf(const Report& report) {
  const Status status = report.verdict.status;
  if (status == Status::hang || status == Status::crash || status == Status::corrupt) return 1;
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const ReportFinding& finding) { return finding.severity != Severity::note; });
}

// A citation must lead somewhere: the file is there, and has that line.
void ExpectCitationsLeadSomewhere(const GoldenCase& golden, const Report& report) {
  for (const ReportFinding& finding : report.findings) {
    EXPECT_FALSE(finding.evidence.empty()) << finding.cause << " cites nothing";
    for (const CitedEvidence& evidence : finding.evidence) {
      if (evidence.file.empty()) continue;
      const auto path = golden.input / evidence.file;
      ASSERT_TRUE(std::filesystem::is_regular_file(path)) << evidence.file;
      if (evidence.file.ends_with(".gz") || evidence.file.ends_with(".zst")) continue;
      const std::string bytes = ReadWhole(path);
      EXPECT_LE(evidence.offset, bytes.size()) << evidence.file;
      EXPECT_LE(evidence.line, std::count(bytes.begin(), bytes.end(), '\n') + 1) << evidence.file;
    }
  }
}

void ExpectAnswer(const GoldenCase& golden, const Report& report) {
  EXPECT_EQ(Name(report.verdict.status), golden.status);
  EXPECT_EQ(report.verdict.cause, golden.cause);
  EXPECT_EQ(report.verdict.ranks, golden.ranks);
  EXPECT_EQ(report.jobs.size(), golden.jobs);
  EXPECT_EQ(ExitCodeOf(report), golden.exit_code);
  for (const std::string& word : golden.headline)
    EXPECT_TRUE(Has(report.verdict.headline, word)) << report.verdict.headline;
  if (golden.seq) {
    ASSERT_FALSE(report.findings.empty());
    ASSERT_TRUE(report.findings[0].operation.has_value());
    EXPECT_EQ(report.findings[0].operation->seq, *golden.seq);
  }
  for (const std::string& cause : golden.not_found)
    for (const ReportFinding& finding : report.findings) EXPECT_NE(finding.cause, cause) << finding.headline;
  for (const std::string& code : golden.remarks)
    EXPECT_TRUE(std::any_of(report.diagnostics.begin(), report.diagnostics.end(), [&](const ReportDiagnostic& remark) {
      return remark.code == code;
    })) << code;
  for (const ReportInput& input : report.inputs)
    EXPECT_EQ(input.understood + input.ignored + input.not_understood, input.bytes) << input.file;
  ExpectCitationsLeadSomewhere(golden, report);
}

void ExpectJson(const GoldenCase& golden, const Report& report) {
  const std::string json = RenderJson(report);
  EXPECT_EQ(FindByteError(json), "");
  const JsonValue document = Parsed(json);
  ExpectKeys(document, {"schema", "verdict", "findings", "job", "inputs", "cannot_tell"}, "the report");
  ASSERT_TRUE(document.Find("schema") && document.Find("verdict") && document.Find("findings"));
  EXPECT_EQ(document.Find("schema")->Text(), "tacet.report.v1");
  const JsonValue& verdict = *document.Find("verdict");
  ExpectKeys(verdict, {"status", "cause", "ranks", "confidence", "headline"}, "the verdict");
  EXPECT_EQ(verdict.Find("status")->Text(), golden.status);
  EXPECT_EQ(verdict.Find("cause")->kind, golden.cause.empty() ? JsonValue::Kind::null : JsonValue::Kind::string);
  EXPECT_EQ(verdict.Find("ranks")->items.size(), golden.ranks.size());
  for (const JsonValue& finding : document.Find("findings")->items) {
    ExpectKeys(finding,
               {"cause", "severity", "confidence", "ranks", "affected_ranks", "group", "operation", "headline",
                "explanation", "evidence", "fix", "prevent"},
               "a finding");
    for (const JsonValue& evidence : finding.Find("evidence")->items)
      ExpectKeys(evidence, {"file", "line", "offset", "excerpt", "says"}, "evidence");
  }
  ExpectKeys(*document.Find("job"), {"world_size", "ranks_seen", "hosts", "groups", "versions"}, "the job");
  for (const JsonValue& input : document.Find("inputs")->items)
    ExpectKeys(input, {"file", "format", "rank", "bytes", "understood", "ignored", "not_understood"}, "an input");
}

void ExpectText(const GoldenCase& golden, const Report& report) {
  const std::string text = RenderText(report, {});
  EXPECT_EQ(FindByteError(text), "");
  const std::string first = FirstLine(text);
  // Of a job that was seen to run, and of one that was ended from outside, the heading says more than the status.
  const std::string heading = HeadingWord(report);
  const bool more = heading == "NO FAULT FOUND" || heading == "STOPPED";
  EXPECT_TRUE(more || heading == Upper(golden.status)) << heading;
  EXPECT_TRUE(first.starts_with(heading)) << first;
  if (!golden.ranks.empty()) {
    const std::string who = (golden.ranks.size() == 1 ? "rank " : "ranks ") + std::to_string(golden.ranks[0]);
    EXPECT_TRUE(Has(first, who)) << first;
  }
  const std::string unwrapped = Unwrap(text);
  for (const std::string& word : golden.headline) EXPECT_TRUE(Has(unwrapped, word)) << text;
  const bool has_pointer = Has(unwrapped, "tacet explain " + golden.cause);
  EXPECT_TRUE(golden.cause.empty() || has_pointer) << text;
  const std::string coloured = RenderText(report, {.colour = true});
  EXPECT_TRUE(Has(FirstLine(coloured), "\x1b[")) << "colour is asked for, and the verdict has none";
  EXPECT_GE(RenderText(report, {.verbose = true}).size(), text.size());
}

// Everything a report brings into the page is escaped, so the page has as many tags with it as without.
void ExpectHtml(const Report& report) {
  const std::string html = RenderHtml(report), bare = RenderHtml(Report());
  EXPECT_EQ(FindByteError(html), "");
  EXPECT_EQ(std::count(html.begin(), html.end(), '<'), std::count(bare.begin(), bare.end(), '<'));
  std::string headline;
  for (const char c : report.verdict.headline)
    headline += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  const std::string start = headline.substr(0, 40);  // behind it the page's text may cut or escape
  EXPECT_TRUE(Has(Unwrap(html), start)) << start;
}

// The job failed, and no finding says why: gates get a result all the same.
bool FailedWithoutCause(const Report& report) {
  const Status status = report.verdict.status;
  const bool failed = status == Status::hang || status == Status::crash || status == Status::corrupt;
  const bool suspects = !report.findings.empty() && report.findings[0].cause.empty();
  return failed && report.verdict.cause.empty() && !suspects;
}

void ExpectJunit(const Report& report) {
  const std::string xml = RenderJunit(report);
  EXPECT_EQ(FindByteError(xml), "");
  EXPECT_EQ(FindXmlError(xml), "") << xml;
  const bool found = std::any_of(report.findings.begin(), report.findings.end(),
                                 [](const ReportFinding& finding) { return finding.severity != Severity::note; });
  EXPECT_EQ(Has(xml, "<failure"), found || FailedWithoutCause(report));
}

void ExpectSarif(const Report& report) {
  const std::string sarif = RenderSarif(report);
  EXPECT_EQ(FindByteError(sarif), "");
  const JsonValue document = Parsed(sarif);
  ASSERT_TRUE(document.Find("version") && document.Find("runs") && document.Find("runs")->items.size() == 1);
  EXPECT_EQ(document.Find("version")->Text(), "2.1.0");
  const JsonValue& run = document.Find("runs")->items[0];
  ASSERT_TRUE(run.Find("results"));
  EXPECT_EQ(run.Find("results")->items.size(), report.findings.size() + FailedWithoutCause(report));
}

class Golden : public testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, IsAnsweredRightByEveryRenderer) {
  const GoldenCase& golden = GetParam();
  const Report report = DiagnoseFolder(golden.input);
  ExpectAnswer(golden, report);
  ExpectJson(golden, report);
  ExpectText(golden, report);
  ExpectHtml(report);
  ExpectJunit(report);
  ExpectSarif(report);
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(AllGoldenCases()),
                         [](const auto& info) { return info.param.name; });

TEST(MarkupCheck, KnowsWellFormedXml) {
  EXPECT_EQ(FindXmlError("<?xml version=\"1.0\"?>\n<a b=\"&lt;&#10;\"><c/>x &amp; y<!-- <z> --></a>\n"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a/><b/>", "<a b=\"<\"/>", "<a>&</a>", "<a>&nbsp;</a>", "<a>]]></a>",
                          "x<a/>", "<a b=c/>", "<a b=\"1\" b=\"2\"/>", "<a", ""})
    EXPECT_NE(FindXmlError(bad), "") << bad;
}

TEST(MarkupCheck, KnowsBytesNobodyShouldPrint) {
  EXPECT_EQ(FindByteError("a\tb\nc \xc3\xa9"), "");
  for (const std::string bad : {"\x1b[31m", "\xff", "\xc2\x9b", "\r", "\x7f"}) EXPECT_NE(FindByteError(bad), "");
}

}  // namespace
}  // namespace tacet
