// SPDX-License-Identifier: Apache-2.0
#include "render/report/text_inputs.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "render/render_words.h"

namespace tacet {
namespace {

constexpr size_t kMostRemarks = 6, kMostFiles = 3;

std::string Share(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent < 0.1) return "under 0.1 %";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, percent < 10 ? "%.1f %%" : "%.0f %%", percent);
  return buffer;
}

// What people call a file of each format; `tacet formats` and --verbose tell its id.
struct FormatNoun {
  std::string_view format, one, several;
};
constexpr FormatNoun kFormatNouns[] = {
    {"torch_log", "job log", "job logs"},
    {"nccl_log", "NCCL log", "NCCL logs"},
    {"kernel_log", "kernel log", "kernel logs"},
    {"flight_recorder", "flight record", "flight records"},
    {"stacks", "stack file", "stack files"},
    {"black_box", "black box", "black boxes"},
    {"torch_trace", "PyTorch trace", "PyTorch traces"},
    {"host_table", "host or cluster listing", "host or cluster listings"},
    {"port_table", "network port listing", "network port listings"},
    {"nccl_tests", "nccl-tests output", "nccl-tests outputs"},
    {"ras", "NCCL RAS report", "NCCL RAS reports"},
    {"run_record", "run record", "run records"},
    {"nsys", "Nsight Systems export", "Nsight Systems exports"},
    {"pipeline_trace", "pipeline trace", "pipeline traces"},
    {"inspector", "NCCL Inspector file", "NCCL Inspector files"},
    {"nvidia_smi", "nvidia-smi topology table", "nvidia-smi topology tables"},
    {"topology_xml", "NCCL topology or graph file", "NCCL topology or graph files"},
    {"nvbandwidth", "nvbandwidth output", "nvbandwidth outputs"},
    {"p2p_latency", "p2pBandwidthLatencyTest output", "p2pBandwidthLatencyTest outputs"},
    {"iperf3", "iperf3 output", "iperf3 outputs"},
    {"perftest", "perftest output", "perftest outputs"},
    {"osu", "OSU benchmark output", "OSU benchmark outputs"},
    {"bench_table", "table of measured sizes and times", "tables of measured sizes and times"},
};

const FormatNoun* NounOf(std::string_view format) {
  const auto* found = std::find_if(std::begin(kFormatNouns), std::end(kFormatNouns),
                                   [&](const FormatNoun& one) { return one.format == format; });
  return found == std::end(kFormatNouns) ? nullptr : found;
}

// "1 NCCL log with nccl-tests output": the first of the formats of one file, and what else is in it.
std::string WordsOfParts(std::string_view format, size_t files) {
  std::string words;
  for (size_t parts = 0; !format.empty(); ++parts) {
    const std::string_view part = format.substr(0, format.find('+'));
    format.remove_prefix(std::min(part.size() + 1, format.size()));
    const FormatNoun* noun = NounOf(part);
    const std::string_view known = !noun ? part : parts == 0 && files > 1 ? noun->several : noun->one;
    words += (parts == 0 ? "" : parts == 1 ? " with " : " and ") + std::string(known);
  }
  return words;
}

// "4 NCCL logs"; of lines of several formats in one file: "2 job logs with NCCL lines".
std::string DescribeFormat(std::string_view format, size_t files) {
  const std::string number = std::to_string(files) + ' ';
  if (format.empty() || format == "unknown")
    return number + (files == 1 ? "file of unknown format" : "files of unknown format");
  if (const FormatNoun* noun = NounOf(format)) return number + std::string(files == 1 ? noun->one : noun->several);
  if (format.find('+') == std::string_view::npos) return number + CleanLine(format);
  if (format.find("torch_log") == std::string_view::npos) return number + WordsOfParts(format, files);
  std::string with;
  for (const auto& [part, words] : {std::pair<std::string_view, std::string_view>{"nccl_log", "NCCL lines"},
                                    {"kernel_log", "kernel lines"},
                                    {"stacks", "stacks"}})
    if (format.find(part) != std::string_view::npos) with += (with.empty() ? " with " : " and ") + std::string(words);
  return number + (files == 1 ? "job log" : "job logs") + with;
}

Ink InkOf(std::string_view severity) {
  if (severity == "error") return Ink::red;
  return severity == "warning" ? Ink::yellow : Ink::dim;
}

// Remarks of one kind: the first stands for all. Errors stand for themselves, since each needs something else done.
struct Remark {
  const ReportDiagnostic* first = nullptr;
  uint64_t times = 0;
  size_t places = 0;
};

std::vector<Remark> FoldRemarks(const std::vector<ReportDiagnostic>& diagnostics) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, size_t> index;
  std::vector<Remark> remarks;
  for (const ReportDiagnostic& diagnostic : diagnostics) {
    const std::string_view apart = diagnostic.severity == "error" ? std::string_view(diagnostic.message) : "";
    const auto [at, fresh] = index.try_emplace({diagnostic.severity, diagnostic.code, apart}, remarks.size());
    if (fresh) remarks.push_back({&diagnostic});
    remarks[at->second].times += diagnostic.count;
    ++remarks[at->second].places;
  }
  const auto order = [](const Remark& remark) {
    const std::string& severity = remark.first->severity;
    return severity == "error" ? 0 : severity == "warning" ? 1 : 2;
  };
  std::stable_sort(remarks.begin(), remarks.end(),
                   [&](const Remark& a, const Remark& b) { return order(a) < order(b); });
  return remarks;
}

// "a.log:3", "a.log and b.log", "a.log, b.log and 5 more".
std::string DescribeFiles(const ReportDiagnostic& diagnostic, bool verbose) {
  CitedEvidence place;
  place.file = diagnostic.file;
  place.line = diagnostic.line;
  std::string text = CleanLine(DescribeSource(place));
  const size_t files = diagnostic.files.size();
  if (files < 2) return text;
  const size_t shown = verbose ? files : std::min(files, kMostFiles);
  // As many as there are remarks, since a file says such a thing of itself once.
  const uint64_t all = std::max<uint64_t>(files, files == ReportDiagnostic::kMostFiles ? diagnostic.count : files);
  for (size_t i = 1; i < shown; ++i) text += (i + 1 == all ? " and " : ", ") + CleanLine(diagnostic.files[i]);
  if (all > shown) text += " and " + std::to_string(all - shown) + " more";
  return text;
}

void AddRemark(TextPage& page, const ReportDiagnostic& diagnostic, uint64_t times, size_t places, bool verbose) {
  std::string text = CleanText(diagnostic.message);
  if (!diagnostic.file.empty()) text = DescribeFiles(diagnostic, verbose) + ": " + text;
  if (places > 1) {
    text += " (and " + std::to_string(places - 1) + " more like it)";
  } else if (times > 1 && diagnostic.files.size() < 2) {
    text += " (" + std::to_string(times) + " times)";
  }
  std::string first = "  " + CleanLine(diagnostic.severity);
  first.resize(std::max<size_t>(first.size() + 2, 11), ' ');
  const auto lines = Wrap(text, page.width() > first.size() ? page.width() - first.size() : 0);
  for (size_t i = 0; i < lines.size(); ++i)
    page.Line((i == 0 ? page.Paint(first, InkOf(diagnostic.severity)) : std::string(first.size(), ' ')) + lines[i]);
  if ((verbose || diagnostic.severity == "error") && !diagnostic.hint.empty())
    page.Paragraph(std::string(first.size(), ' '), CleanText(diagnostic.hint), Ink::dim);
}

void AddRemarks(TextPage& page, const Report& report, bool verbose) {
  if (verbose) {
    for (const ReportDiagnostic& diagnostic : report.diagnostics)
      AddRemark(page, diagnostic, diagnostic.count, 1, true);
    return;
  }
  std::vector<Remark> remarks = FoldRemarks(report.diagnostics);
  // The line above says that all files are empty.
  if (std::all_of(report.inputs.begin(), report.inputs.end(), [](const ReportInput& one) { return one.bytes == 0; }))
    std::erase_if(remarks, [](const Remark& one) { return one.first->code == "empty-file"; });
  for (size_t i = 0; i < std::min(remarks.size(), kMostRemarks); ++i)
    AddRemark(page, *remarks[i].first, remarks[i].times, remarks[i].places, false);
  if (remarks.size() > kMostRemarks)
    page.Line("  " + page.Paint("and " + std::to_string(remarks.size() - kMostRemarks) + " other kinds with --verbose",
                                Ink::dim));
}

void AddFiles(TextPage& page, const Report& report) {
  std::vector<TextRow> rows = {{{"FILE", Ink::dim},
                                {"FORMAT", Ink::dim},
                                {"RANK", Ink::dim},
                                {"SIZE", Ink::dim},
                                {"UNDERSTOOD", Ink::dim},
                                {"NOT NEEDED", Ink::dim},
                                {"NOT UNDERSTOOD", Ink::dim}}};
  for (const ReportInput& input : report.inputs)
    rows.push_back({{CleanLine(input.file)},
                    {input.format.empty() ? "unknown" : CleanLine(input.format)},
                    {input.rank < 0 ? "" : std::to_string(input.rank)},
                    {DescribeBytes(input.bytes)},
                    {Share(input.understood, input.bytes)},
                    {Share(input.ignored, input.bytes)},
                    {Share(input.not_understood, input.bytes)}});
  page.Table(rows, 2, true);
}

// A file without a byte is told by a remark of its own; any other one is about content.
bool IsAboutUnreadContent(const ReportDiagnostic& one) { return !one.file.empty() && one.code != "empty-file"; }

}  // namespace

void AddInputLine(TextPage& page, std::string_view first, const Report& report) {
  uint64_t bytes = 0, not_understood = 0;
  size_t files_read = 0;
  std::map<std::string_view, size_t> formats;
  for (const ReportInput& input : report.inputs) {
    if (input.format == "unreadable") continue;  // a remark says why
    ++files_read;
    bytes += input.bytes;
    not_understood += input.not_understood;
    ++formats[input.format];
  }
  std::string kinds;
  for (const auto& [format, files] : formats) {
    kinds += (kinds.empty() ? ": " : ", ") + DescribeFormat(format, files);
  }
  std::string unused = Share(not_understood, bytes);
  unused.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(unused.front())));  // a sentence begins
  std::string words = "Read " + Count(files_read, "file") + ", " + DescribeBytes(bytes) + kinds + "." +
                      (unused == "0 %" || unused == "100 %" ? "" : " " + unused + " of the bytes were not recognized.");
  if (files_read == 0)
    words = "No file was read.";
  else if (bytes == 0 && std::any_of(report.diagnostics.begin(), report.diagnostics.end(), IsAboutUnreadContent))
    words = files_read == 1 ? "Read 1 file. Nothing in it could be used."
                            : "Read " + Count(files_read, "file") + ". Nothing in them could be used.";
  else if (bytes == 0)
    words = files_read == 1 ? "Read 1 file. It is empty." : "Read " + Count(files_read, "file") + ". All are empty.";
  page.Paragraph(first, words);
}

void AddInputs(TextPage& page, const Report& report, bool verbose) {
  page.Heading("Inputs");
  AddInputLine(page, "  ", report);
  if (verbose) AddFiles(page, report);
  AddRemarks(page, report, verbose);
}

}  // namespace tacet
