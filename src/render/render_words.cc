// SPDX-License-Identifier: Apache-2.0
#include "render/render_words.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"

namespace tacet {

std::string FoldRanks(std::vector<int> ranks, size_t max_chars) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string out;
  size_t room = 0;  // where the list could end in ",..." and keep within max_chars
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] - 1 == ranks[last]) ++last;
    if (i > 0) out += ',';
    out += std::to_string(ranks[i]);
    if (last > i) out += '-' + std::to_string(ranks[last]);
    if (i == 0 || out.size() + 4 <= max_chars) room = out.size();
    i = last + 1;
  }
  if (max_chars == 0 || out.size() <= max_chars || room == out.size()) return out;
  return out.substr(0, room) + ",...";
}

std::string DescribeRanks(const std::vector<int>& ranks, size_t max_chars) {
  if (ranks.empty()) return "";
  const std::string folded = FoldRanks(ranks, max_chars);
  if (folded.ends_with("...")) return std::to_string(ranks.size()) + " ranks (" + folded + ")";
  const bool one = std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return rank == ranks[0]; });
  return (one ? "rank " : "ranks ") + folded;
}

std::string DescribeOperation(const OperationRef& operation) {
  std::string out(operation.kind == OpKind::unknown ? "operation" : Name(operation.kind));
  if (operation.seq >= 0) out += " #" + std::to_string(operation.seq);
  if (operation.bytes >= 0) out += " (" + DescribeBytes(static_cast<uint64_t>(operation.bytes)) + ")";
  return out;
}

std::string DescribeGroup(const ReportGroup& group) {
  // PyTorch names groups "0", "1", ...; a bare number needs a noun.
  const bool numeric = !group.name.empty() && group.name[0] >= '0' && group.name[0] <= '9';
  // Groups made by a mesh are named by a hash of their members: its beginning tells them apart.
  const bool hashed = group.name.size() > 16 && group.name.find_first_not_of("0123456789abcdef") == std::string::npos;
  const std::string shown = hashed ? group.name.substr(0, 8) : group.name;
  std::string name = numeric || hashed ? "group " + shown : shown;
  // "undefined" is what PyTorch writes for a group without a description.
  if (group.description.empty() || group.description == group.name || group.description == "undefined") return name;
  return group.description + (name.empty() ? "" : " (" + name + ")");
}

std::string DescribePlace(const ReportFinding& finding) {
  std::string out = finding.operation ? DescribeOperation(*finding.operation) : "";
  if (finding.group) {
    if (!out.empty()) out += " on ";
    out += DescribeGroup(*finding.group);
  }
  return out;
}

std::string DescribeSource(const CitedEvidence& evidence) {
  if (evidence.file.empty()) return "";
  if (evidence.line > 0) return evidence.file + ':' + std::to_string(evidence.line);
  if (evidence.offset == 0) return evidence.file;
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "@0x%llx", static_cast<unsigned long long>(evidence.offset));
  return evidence.file + buffer;
}

const std::string& QuoteOf(const CitedEvidence& evidence) {
  return evidence.quote.empty() ? evidence.excerpt : evidence.quote;
}

// "... of NCCL library.\nLast error: ..." in one line.
static std::string JoinLines(std::string_view text) {
  constexpr size_t kMostLines = 3;
  size_t lines = 0;
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (++lines > kMostLines) return out + " ...";
    if (!out.empty()) out.append(std::string_view(".,:;!?").find(out.back()) != std::string_view::npos ? " " : "; ");
    out.append(line);
  }
  return out;
}

std::string SaysOf(const CitedEvidence& evidence) {
  // The quoted line holds the record's words; what was counted (" (3 times)") or cut ("...") is no part of it.
  std::string_view words = evidence.excerpt, count;
  if (const size_t at = words.rfind(" ("); at != std::string_view::npos && words.ends_with(" times)")) {
    count = words.substr(at);
    words = words.substr(0, at);
  }
  if (words.size() > 20 && words.ends_with("...")) words.remove_suffix(3);
  if (evidence.quote.empty() || evidence.excerpt.empty()) return evidence.says;
  if (evidence.quote.find(words) != std::string::npos) return evidence.says + std::string(count);
  if (evidence.says.starts_with(words)) return evidence.says + std::string(count);  // "NCCL_ALGO=Ring: ..."
  // Of a message of several lines the first is the quoted one; the others follow, unless they were cut.
  const std::string_view first = words.substr(0, words.find('\n'));
  if (first.size() > 20 && first.size() < words.size() && evidence.quote.find(first) != std::string::npos) {
    // "CUDA kernel errors might be asynchronously reported ...": what every error of CUDA or HIP has behind it.
    const bool general = words.substr(first.size() + 1).find(" kernel errors might be ") < 6;
    const bool whole = !evidence.excerpt.ends_with("...") && !evidence.says.empty() && !general;
    const std::string_view more = words.substr(first.size() + 1);
    // "the exception of rank 3, which led to ..."
    const std::string_view joint = more.starts_with("which ") || more.starts_with("while ") ? ", " : ": ";
    return evidence.says + std::string(count) + (whole ? std::string(joint) + JoinLines(more) : "");
  }
  return evidence.says.empty() ? JoinLines(evidence.excerpt) : evidence.says + ": " + JoinLines(evidence.excerpt);
}

std::string UpperCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::string HeadingWord(const Report& report) {
  const ReportVerdict& verdict = report.verdict;
  const bool noted = std::all_of(report.findings.begin(), report.findings.end(),
                                 [](const ReportFinding& one) { return one.severity == Severity::note; });
  if (verdict.status == Status::undetermined && verdict.progresses && noted) return "NO FAULT FOUND";
  if (verdict.status == Status::crash && verdict.cause == "killed-by-scheduler") return "STOPPED";
  if (verdict.status == Status::hang && verdict.cause == "resources-pending") return "NOT STARTED";
  return UpperCase(Name(verdict.status));
}

std::string DescribeBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value < 99.95 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return buffer;
}

std::string Count(uint64_t n, std::string_view noun) {
  std::string out = std::to_string(n);
  out += ' ';
  out += noun;
  if (n != 1) out += 's';
  return out;
}

bool FailedForUnknownCause(const Report& report) {
  const bool suspects = !report.findings.empty() && report.findings[0].cause.empty();
  return IsFailure(report.verdict.status) && report.verdict.cause.empty() && !suspects;
}

std::string CleanLine(std::string_view text) { return EscapeForTerminal(text); }

std::string CleanText(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out += CleanLine(line);
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace tacet
