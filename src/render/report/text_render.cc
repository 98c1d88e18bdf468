// SPDX-License-Identifier: Apache-2.0
#include "render/report/text_render.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "render/quote_window.h"
#include "render/render_words.h"
#include "render/report/text_inputs.h"
#include "render/report/text_ranks.h"
#include "render/text_layout.h"

namespace tacet {
namespace {

constexpr size_t kBestEvidence = 3;
constexpr size_t kMostOthers = 6;
constexpr size_t kVerdictRankChars = 40;
constexpr std::string_view kUndecided = "undecided";  // the reading of a claim that speaks neither for nor against

Ink InkOf(Status status) {
  switch (status) {
    case Status::hang:
    case Status::crash:
    case Status::corrupt: return Ink::red;
    case Status::slow:
    case Status::degraded:
    case Status::undetermined: return Ink::yellow;
    case Status::healthy: return Ink::green;
  }
  return Ink::plain;
}

Ink InkOf(Severity severity) {
  if (severity == Severity::critical) return Ink::red;
  return severity == Severity::warning ? Ink::yellow : Ink::dim;
}

std::string HostsOf(const Report& report, std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::set<std::string_view> hosts;
  for (const ReportRank& row : report.ranks)
    if (!row.host.empty() && std::binary_search(ranks.begin(), ranks.end(), row.rank)) hosts.insert(row.host);
  if (hosts.empty() || hosts.size() > 4) return hosts.empty() ? "" : " on " + Count(hosts.size(), "host");
  std::string out;
  for (const std::string_view host : hosts) out += (out.empty() ? " on " : ", ") + CleanLine(host);
  return out;
}

// findings[0] carries the verdict, unless there is none to carry: a healthy or undetermined report may hold only notes.
const ReportFinding* CarriedFinding(const Report& report) {
  const bool carried = !report.findings.empty() && report.findings[0].cause == report.verdict.cause;
  return carried ? &report.findings[0] : nullptr;
}

void AddFact(TextPage& page, std::string_view label, const std::string& value, Ink ink = Ink::plain) {
  if (value.empty()) return;
  std::string first = "  " + std::string(label);
  first.resize(10, ' ');
  page.Paragraph(first, value, ink);
}

// Some of the affected ranks have failed, by the table: they wait no more.
bool SomeFailed(const Report& report, const ReportFinding& finding) {
  return std::any_of(report.ranks.begin(), report.ranks.end(), [&](const ReportRank& row) {
    return row.role.empty() && !row.doing.empty() &&
           std::find(finding.affected_ranks.begin(), finding.affected_ranks.end(), row.rank) !=
               finding.affected_ranks.end();
  });
}

// HANG  rank 2 on node-b
//   where   all_reduce #33 (4.2 MB) on default_pg
//   why     Rank 2 never issued all_reduce #33; it is in load_next_batch (train.py:124).
//   waits   ranks 0-1,3
//   cause   rank-stuck-on-host (certain): a rank is stuck on the host
// By the table below: a cause that is no wait itself has none of its own.
std::vector<int> RanksThatWait(const Report& report) {
  std::vector<int> ranks;
  if (report.verdict.status == Status::hang)
    for (const ReportRank& rank : report.ranks)
      if (rank.role == "waits") ranks.push_back(rank.rank);
  return ranks;
}

void AddVerdict(TextPage& page, const Report& report, bool verbose) {
  const ReportVerdict& verdict = report.verdict;
  const ReportFinding* finding = CarriedFinding(report);
  const size_t chars = verbose ? 0 : kVerdictRankChars;
  const std::string word = HeadingWord(report);
  std::string who = DescribeRanks(verdict.ranks, chars);
  if (!who.empty()) who = Cut(who + HostsOf(report, verdict.ranks), page.width() - 2 - word.size());
  page.Line(page.Paint(word, word == "NO FAULT FOUND" ? Ink::green : InkOf(verdict.status)) +
            (who.empty() ? "" : "  " + page.Paint(who, Ink::strong)));
  if (finding) AddFact(page, "where", CleanLine(DescribePlace(*finding)));
  AddFact(page, "why", CleanText(verdict.headline));
  if (finding)
    AddFact(page,
            AffectedWait(finding->status, finding->operation.has_value()) && !SomeFailed(report, *finding) ? "waits"
                                                                                                           : "affects",
            DescribeRanks(finding->affected_ranks, chars));
  if (finding && finding->affected_ranks.empty()) AddFact(page, "waits", DescribeRanks(RanksThatWait(report), chars));
  if (!verdict.cause.empty()) {
    const std::string title = finding && !finding->title.empty() ? ": " + finding->title : "";
    AddFact(page, "cause", CleanLine(verdict.cause + " (" + std::string(Name(verdict.confidence)) + ")" + title));
  }
  if (report.jobs.size() > 1)
    AddFact(page, "job",
            CleanLine(report.jobs[0].label) + (report.jobs.size() == 2 ? " (the worse of " : " (the worst of ") +
                Count(report.jobs.size(), "job") + " in this input)");
}

// Of several jobs the verdict is one's; a line for each says how the others fared.
void AddJobs(TextPage& page, const Report& report, bool verbose) {
  constexpr size_t kMostJobs = 40;
  if (report.jobs.size() < 2) return;
  std::vector<TextRow> rows = {{{"JOB", Ink::dim}, {"STATUS", Ink::dim}, {"RANK", Ink::dim}, {"CAUSE", Ink::dim}}};
  const size_t shown = verbose ? report.jobs.size() : std::min(report.jobs.size(), kMostJobs);
  for (size_t i = 0; i < shown; ++i) {
    const ReportJob& job = report.jobs[i];
    rows.push_back(
        {{CleanLine(job.label)},
         {std::string(Name(job.status)), InkOf(job.status)},
         {job.culprits.empty() && IsFailure(job.status) ? "unknown"
                                                        : FoldRanks(job.culprits, verbose ? 0 : kVerdictRankChars)},
         {job.cause.empty() && IsFailure(job.status) ? "unknown" : CleanLine(job.cause)}});
  }
  page.Heading("Jobs (" + std::to_string(report.jobs.size()) + ")");
  page.Table(rows, 2, verbose);
  if (shown < report.jobs.size())
    page.Line("  " +
              page.Paint("and " + std::to_string(report.jobs.size() - shown) + " more with --verbose", Ink::dim));
}

// What of a line is left behind its first piece; both have the same characters but for blanks.
std::string RestBehind(std::string_view line, std::string_view piece) {
  auto left = piece.size() - static_cast<size_t>(std::count(piece.begin(), piece.end(), ' '));
  size_t at = 0;
  for (; at < line.size() && left > 0; ++at) left -= line[at] != ' ';
  std::string rest;
  for (; at < line.size(); ++at)
    if (line[at] != ' ' || (!rest.empty() && rest.back() != ' ')) rest += line[at];
  return rest;
}

// One blank is enough between words, and the frame of a table needs none of the room.
std::string TidyRow(std::string_view row) {
  std::string line;
  for (const char c : row)
    if (c != ' ' || (!line.empty() && line.back() != ' ')) line += c;
  while (line.ends_with(' ')) line.pop_back();
  if (line.size() > 4 && line.starts_with("| ") && line.ends_with(" |")) line = line.substr(2, line.size() - 4);
  return line;
}

// A long line from where its message begins: what a logger puts before it is known from the place that is cited.
std::string BehindItsHead(const std::string& line, std::string_view excerpt) {
  constexpr size_t kLongHead = 24, kTelling = 24, kLeastTelling = 8;
  const size_t at = excerpt.size() < kLeastTelling ? std::string::npos : line.find(excerpt.substr(0, kTelling));
  return at == std::string::npos || at < kLongHead ? line : line.substr(at);
}

// Like Cut(), but not inside a word, unless the word is long: a path, a mangled name.
std::string CutAtWord(const std::string& text, size_t width) {
  constexpr size_t kLongWord = 24;
  if (DisplayWidth(text) <= width) return text;
  const std::string cut = Cut(text, width);
  const size_t end = cut.ends_with("...") ? cut.size() - 3 : cut.size();
  const size_t blank = cut.rfind(' ', end);
  const bool at_word = end < text.size() && text[end] == ' ';
  if (at_word || blank == std::string::npos || end - blank > kLongWord) return cut;
  return cut.substr(0, blank) + " ...";
}

// What a terminal shows of a line over which another one was written, as progress bars are: the part that is cited, or
// the last one.
std::string_view ShownPart(std::string_view line, std::string_view excerpt) {
  while (line.ends_with('\r') || line.ends_with('\n')) line.remove_suffix(1);
  if (line.find('\r') == std::string_view::npos || line.find('\n') != std::string_view::npos) return line;
  const size_t cited = excerpt.empty() ? std::string_view::npos : line.find(excerpt);
  const size_t begin = cited == std::string_view::npos ? line.rfind('\r') + 1 : line.rfind('\r', cited) + 1;
  return line.substr(begin, line.find('\r', begin) - begin);
}

// What it says first, then the quoted line in dim ink.
void AddEvidence(TextPage& page, const CitedEvidence& evidence, std::string_view first, bool verbose,
                 std::string_view about = {}) {
  const std::string indent(first.size(), ' ');
  const std::string says = SaysOf(evidence);
  const bool says_something = !says.empty();
  if (says_something) page.Paragraph(first, CleanText(says));
  const std::string_view lead = says_something ? std::string_view(indent) : first;
  const std::string source = CleanLine(DescribeSource(evidence));
  if (source.empty() && QuoteOf(evidence).empty()) return;
  const std::string quote = CleanText(ShownPart(QuoteOf(evidence), evidence.excerpt));
  const size_t room = page.width() > lead.size() ? page.width() - lead.size() : 0;
  if (verbose && !quote.empty()) {
    if (!source.empty()) page.Line(std::string(lead) + page.Paint(source, Ink::dim));
    page.Paragraph(indent + "  ", quote, Ink::dim);
    return;
  }
  // Two lines at most: the file from behind when it is long, the quote up to its first line break. The place of a call
  // stands at its end.
  const std::string place = CutFront(source, room / 2);
  const size_t begin = std::min(quote.find_first_not_of(" \n"), quote.size());
  std::string line = TidyRow(quote.substr(begin, quote.find('\n', begin) - begin));
  const std::string head = place.empty() || line.empty() ? place : place + "  ";
  const size_t left = room - std::min(room, DisplayWidth(head));
  if (DisplayWidth(line) <= left) {
    page.Line(std::string(lead) + page.Paint(head + line, Ink::dim));
    return;
  }
  constexpr size_t kLostByWrapping = 12, kShortHead = 48;
  const size_t both = left + room;
  // A short head may be the name of an error: it stays where the line fits into two.
  if (const std::string rest = BehindItsHead(line, evidence.excerpt);
      rest.size() < line.size() && DisplayWidth(rest) + 3 <= left &&
      (line.size() - rest.size() > kShortHead || DisplayWidth(line) + kLostByWrapping > both)) {
    page.Line(std::string(lead) + page.Paint(head + "..." + rest, Ink::dim));
    return;
  }
  if (both > 2 * kLostByWrapping && line.size() > both - kLostByWrapping) {
    std::string rest = BehindItsHead(line, evidence.excerpt);
    std::string part = QuoteWindow(rest, std::string(about) + " " + says, both - kLostByWrapping);
    line = rest.size() < line.size() && !part.starts_with("...") ? "..." + part : part;
  }
  std::string first_piece = Wrap(line, left).front();
  // A long path does not fit behind the place, and takes the room of what matters: a narrower part is looked for.
  const std::string whole = line;
  const bool lost = DisplayWidth(first_piece) + 2 * kLostByWrapping < left;
  for (size_t space = room; lost && DisplayWidth(RestBehind(line, first_piece)) > room && space > room / 2;
       space -= 8) {
    line = QuoteWindow(whole, std::string(about) + " " + says, space);
    first_piece = Wrap(line, left).front();
  }
  page.Line(std::string(lead) + page.Paint(head + first_piece, Ink::dim));
  if (const std::string rest = RestBehind(line, first_piece); !rest.empty())
    page.Line(indent + page.Paint(CutAtWord(rest, room), Ink::dim));
}

void AddEvidenceList(TextPage& page, const ReportFinding& finding, bool verbose) {
  if (finding.evidence.empty()) return;
  page.Heading("Evidence");
  const size_t shown = verbose ? finding.evidence.size() : std::min(finding.evidence.size(), kBestEvidence);
  for (size_t i = 0; i < shown; ++i)
    AddEvidence(page, finding.evidence[i], "  " + std::to_string(i + 1) + ". ", verbose, finding.headline);
  if (shown < finding.evidence.size())
    page.Line("  " +
              page.Paint("and " + std::to_string(finding.evidence.size() - shown) + " more with --verbose", Ink::dim));
}

void AddSteps(TextPage& page, std::string_view heading, const std::vector<std::string>& steps) {
  if (steps.empty()) return;
  page.Heading(heading);
  for (size_t i = 0; i < steps.size(); ++i) page.Paragraph("  " + std::to_string(i + 1) + ". ", CleanText(steps[i]));
}

void AddExplanation(TextPage& page, const ReportFinding& finding) {
  if (finding.explanation.empty()) return;
  page.Heading("What it means");
  page.Paragraph("  ", CleanText(finding.explanation));
}

bool IsKnownOf(const ReportRank& rank) {
  return rank.role != "silent" || !rank.host.empty() || !rank.last_operation.empty() || !rank.doing.empty() ||
         !rank.last_sign.empty();
}

// Ranks that are only known to exist: their table would say nothing else.
bool NothingIsKnownOf(const std::vector<ReportRank>& ranks) {
  return std::none_of(ranks.begin(), ranks.end(), IsKnownOf);
}

void AddRanks(TextPage& page, const Report& report, bool verbose) {
  if (report.ranks.empty() || NothingIsKnownOf(report.ranks)) return;
  const int64_t world = report.jobs.empty() ? -1 : report.jobs[0].world_size;
  const bool known = world >= static_cast<int64_t>(report.ranks.size());  // ranks may have another number in mind
  const bool told = report.jobs.empty() || report.jobs[0].world_told;
  const std::string of_all = known && told && world > 0 ? " of " + std::to_string(world) : "";
  int64_t least = std::max(world, static_cast<int64_t>(report.ranks.size()));
  if (const ReportFinding* finding = CarriedFinding(report))
    for (const int rank : finding->affected_ranks) least = std::max<int64_t>(least, int64_t{rank} + 1);
  for (const ReportRank& rank : report.ranks) least = std::max<int64_t>(least, int64_t{rank.rank} + 1);
  const auto seen = static_cast<size_t>(std::count_if(report.ranks.begin(), report.ranks.end(), IsKnownOf));
  const bool some = !of_all.empty() && seen < report.ranks.size();
  page.Heading("Ranks (" +
               (some   ? std::to_string(seen) + of_all + " seen"
                : told ? std::to_string(report.ranks.size()) + of_all
                       : "at least " + std::to_string(least)) +
               ")");
  const std::vector<TextRow> table =
      LayOutRanks(report.ranks, page.width() - 2, verbose, !HostsOf(report, report.verdict.ranks).empty());
  // In a narrow window nothing would be left of operations and frames.
  constexpr size_t kNarrow = 80;
  if (page.width() < kNarrow && !verbose)
    page.PartsTable(table, 2);
  else
    page.Table(table, 2, verbose);
}

void AddOther(TextPage& page, const ReportFinding& finding, bool several_jobs, bool verbose, bool said = false) {
  std::string facts = std::string(Name(finding.confidence));
  if (!finding.ranks.empty()) facts += ", " + DescribeRanks(finding.ranks, verbose ? 0 : kVerdictRankChars);
  if (const std::string place = DescribePlace(finding); !place.empty()) facts += ", " + place;
  if (several_jobs && !finding.job.empty()) facts += ", job " + finding.job;
  if (!finding.explained_by.empty() && finding.severity == Severity::critical)
    facts += ", a consequence of " + finding.explained_by;
  std::string severity(Name(finding.severity));
  severity.resize(10, ' ');
  const std::string cause = CleanLine(finding.cause), clean = CleanLine(facts);
  const std::string head = "  " + page.Paint(severity, InkOf(finding.severity)) + page.Paint(cause, Ink::strong) + "  ";
  const size_t taken = 2 + severity.size() + DisplayWidth(cause) + 2;
  // The facts beside the cause where they fit, else below it.
  if (taken + DisplayWidth(clean) <= page.width()) {
    page.Line(head + page.Paint(clean, Ink::dim));
  } else {
    page.Line(head.substr(0, head.size() - 2));
    page.Paragraph(std::string(12, ' '), clean, Ink::dim);
  }
  page.Paragraph(std::string(12, ' '), said ? "as said under 'why' above" : CleanText(finding.headline));
  if (!verbose) return;
  if (!finding.explanation.empty()) page.Paragraph(std::string(12, ' '), CleanText(finding.explanation), Ink::dim);
  for (const CitedEvidence& evidence : finding.evidence) AddEvidence(page, evidence, "          - ", true);
  for (const std::string& step : finding.fix) page.Paragraph("            do: ", CleanText(step));
  for (const std::string& step : finding.prevent) page.Paragraph("            prevent: ", CleanText(step));
}

// At its beginning, or behind "No fault found, and ...".
bool SaysAlready(std::string_view verdict, std::string_view headline) {
  return !headline.empty() && verdict.find(headline) != std::string_view::npos;
}

void AddOthers(TextPage& page, const Report& report, size_t from, bool verbose) {
  // Of other jobs the table of jobs tells enough.
  size_t all = report.findings.size();
  while (!verbose && report.jobs.size() > 1 && all > from && report.findings[all - 1].job != report.jobs[0].label)
    --all;
  // What the verdict says in the same words is not said again.
  const bool all_said = all == 1 && from == 0 && !verbose && report.findings[0].severity == Severity::note &&
                        SaysAlready(report.verdict.headline, report.findings[0].headline);
  if (all <= from || all_said) return;
  page.Heading(from > 0 ? "Also found" : "Found");
  const size_t end = verbose ? all : std::min(all, from + kMostOthers);
  for (size_t i = from; i < end; ++i) {
    const std::string& headline = report.findings[i].headline;
    const bool said = i == 0 && SaysAlready(report.verdict.headline, headline);
    AddOther(page, report.findings[i], report.jobs.size() > 1, verbose, said);
  }
  if (end < report.findings.size())
    page.Line("  " +
              page.Paint("and " + std::to_string(report.findings.size() - end) + " more with --verbose", Ink::dim));
}

void AddOpenQuestions(TextPage& page, const Report& report) {
  if (report.cannot_tell.empty()) return;
  page.Heading("Unknown; capture this next time");
  for (const CannotTell& open : report.cannot_tell) {
    page.Paragraph("  - ", CleanText(open.question));
    if (!open.missing.empty()) page.Paragraph("    ", CleanText(open.missing), Ink::dim);
  }
}

// The claims that only repeat the evidence above, which has numbers: " (evidence 1 to 3)".
size_t ClaimsShownAbove(const Report& report, bool verbose) {
  const ReportFinding* finding = CarriedFinding(report);
  if (!finding) return 0;
  const size_t shown = verbose ? finding->evidence.size() : std::min(finding->evidence.size(), kBestEvidence);
  const auto& claims = report.why->claims;
  size_t same = 0;
  while (same < std::min(shown, claims.size()) && claims[same].strength.empty() && claims[same].supports &&
         claims[same].because.says == finding->evidence[same].says &&
         claims[same].because.line == finding->evidence[same].line &&
         claims[same].because.file == finding->evidence[same].file)
    ++same;
  return same;
}

std::string HeadOf(const ReportClaim& claim) {
  std::string head = claim.rank < 0 ? "" : "rank " + std::to_string(claim.rank);
  if (!claim.reading.empty() && claim.reading != kUndecided) head += (head.empty() ? "" : ", ") + claim.reading;
  return head + (claim.strength.empty() ? "" : " (" + claim.strength + ")");
}

// Why this status, what speaks for the verdict and against it, and why each rival lost.
void AddWhy(TextPage& page, const Report& report, bool verbose) {
  if (!report.why) return;
  const ReportWhy& why = *report.why;
  page.Heading("Why this verdict");
  CitedEvidence status = why.status;
  const bool stopped = report.verdict.cause == "killed-by-scheduler" && report.verdict.status == Status::crash;
  status.says = (stopped ? "stopped" : std::string(Name(report.verdict.status))) + ": " + status.says;
  AddEvidence(page, status, "  status   ", verbose);
  const size_t above = ClaimsShownAbove(report, verbose);
  if (above > 0) {
    const std::string head = HeadOf(why.claims[0]);
    page.Paragraph("  for      ", CleanText(head + (head.empty() ? "" : ": ") + "the evidence above" +
                                            (above == 1   ? " (1)"
                                             : above == 2 ? " (1 and 2)"
                                                          : " (1 to " + std::to_string(above) + ")")));
  }
  for (size_t i = above; i < why.claims.size(); ++i) {
    const ReportClaim& claim = why.claims[i];
    CitedEvidence because = claim.because;
    const std::string head = HeadOf(claim);
    because.says = head + (head.empty() || because.says.empty() ? "" : ": ") + because.says;
    const char* side = claim.reading == kUndecided ? "  unclear  " : claim.supports ? "  for      " : "  against  ";
    AddEvidence(page, because, side, verbose);
  }
  for (const bool found : {true, false}) {
    bool first = true;
    for (const ReportRival& rival : why.rivals) {
      if (rival.found != found) continue;
      if (first)
        page.Heading(found ? "Found, but not the cause" : "Other causes considered; this input does not show them");
      first = false;
      const std::string ranks = rival.ranks.empty() ? "" : " (" + DescribeRanks(rival.ranks, kVerdictRankChars) + ")";
      page.Paragraph("  - ", CleanText(rival.cause + ranks + ": " + rival.because));
    }
  }
}

void AddAssumptions(TextPage& page, const Report& report) {
  if (report.assumptions.empty()) return;
  page.Heading("Assumed");
  for (const std::string& assumption : report.assumptions) page.Paragraph("  - ", CleanText(assumption));
}

void AddFooter(TextPage& page, const Report& report) {
  constexpr double kWorthTelling = 1;
  char took[48] = "";
  if (report.seconds >= kWorthTelling) std::snprintf(took, sizeof took, "Took %.2f s.", report.seconds);
  const std::string more = report.verdict.cause.empty() ? "" : "More on this cause:";
  const std::string command = more.empty() ? "" : "tacet explain " + CleanLine(report.verdict.cause);
  if (more.empty() && took[0] == '\0') return;
  if (report.verdict.status != Status::healthy) page.Blank();
  const std::string line =
      took + std::string(took[0] != '\0' && !more.empty() ? " " : "") + more + (more.empty() ? "" : " ") + command;
  if (line.size() <= page.width()) return page.Line(page.Paint(line, Ink::dim));
  // A command that is broken into two lines cannot be copied.
  page.Paragraph("", took + std::string(took[0] != '\0' ? " " : "") + more, Ink::dim);
  page.Line(page.Paint("  " + command, Ink::dim));
}

// Three lines, and one for each thing that still deserves a word.
void RenderHealthy(TextPage& page, const Report& report) {
  const size_t ranks =
      report.ranks.empty() && !report.jobs.empty() ? report.jobs[0].ranks_seen.size() : report.ranks.size();
  const bool told = report.jobs.empty() || report.jobs[0].world_told;
  page.Line(page.Paint("HEALTHY", Ink::green) +
            (ranks > 0 ? "  " + page.Paint((told ? "" : "at least ") + Count(ranks, "rank"), Ink::strong) : ""));
  page.Paragraph("  ", CleanText(report.verdict.headline.empty() ? "No fault found." : report.verdict.headline));
  for (const ReportFinding& finding : report.findings) {
    page.Paragraph("  " + std::string(Name(finding.severity)) + "  ",
                   CleanLine(finding.cause + ": " + finding.headline));
  }
  AddInputLine(page, "  ", report);
  std::string rest;
  const bool one = report.cannot_tell.size() + report.diagnostics.size() == 1;
  if (!report.cannot_tell.empty()) rest = Count(report.cannot_tell.size(), "open question");
  if (!report.diagnostics.empty())
    rest += (rest.empty() ? "" : ", ") + Count(report.diagnostics.size(), "remark") + " on the input";
  if (!rest.empty())
    page.Line("  " + page.Paint(rest + (one ? "; --verbose lists it" : "; --verbose lists them"), Ink::dim));
  AddFooter(page, report);
}

}  // namespace

std::string RenderText(const Report& report, const TextOptions& options) {
  TextPage page(static_cast<size_t>(std::clamp(options.width, 40, 1000)), options.colour);
  const bool verbose = options.verbose;
  if (report.verdict.status == Status::healthy && !verbose && !report.why) {
    RenderHealthy(page, report);
    return page.Take();
  }
  AddVerdict(page, report, verbose);
  AddJobs(page, report, verbose);
  const bool carried = CarriedFinding(report) != nullptr;
  if (carried) {
    if (verbose) AddExplanation(page, report.findings[0]);
    AddEvidenceList(page, report.findings[0], verbose);
    AddSteps(page, "What to do now", report.findings[0].fix);
    if (verbose) AddSteps(page, "How to prevent it", report.findings[0].prevent);
  } else {
    AddOpenQuestions(page, report);
  }
  AddRanks(page, report, verbose);
  AddOthers(page, report, carried ? 1 : 0, verbose);
  if (carried) AddOpenQuestions(page, report);
  AddWhy(page, report, verbose);
  AddAssumptions(page, report);
  AddInputs(page, report, verbose);
  AddFooter(page, report);
  return page.Take();
}

}  // namespace tacet
