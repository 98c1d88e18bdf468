// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_parse.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/nccl_tests/nccl_tests_row.h"
#include "evidence/nccl_tests/nccl_tests_separate.h"

namespace tacet {
namespace {

// #  Rank  0 Group  0 Pid   4020 on      node0 device  0 [0000:00:06] NVIDIA H200
// #   Rank  0 Pid 112424 on localhost device  0 [0x00] A100-SXM4-40GB
// #   Rank  0 on     node14 device  0 [0x06] Tesla V100-SXM2-32GB      before 2.4
bool ParseDevice(std::string_view line, NcclTestsDevice* out) {
  const auto number = [&](std::string_view key, int64_t* value) {
    std::string_view rest = line;
    if (TakeWord(rest) != key) return false;
    SkipBlanks(rest);
    if (!TakeNumber(rest, value)) return false;
    line = rest;
    return true;
  };
  if (!number("Rank", &out->rank)) return false;
  number("Group", &out->group);
  const bool told = number("Pid", &out->pid);
  if (TakeWord(line) != "on" || (!told && !Contains(line, " device "))) return false;
  out->host = TakeWord(line);
  if (!number("device", &out->device)) return false;
  SkipBlanks(line);
  if (TakeLiteral(line, "[")) {
    out->bus = TakeUntil(line, ']');
    TakeLiteral(line, "]");
  }
  out->name = Trim(line);
  return out->rank >= 0;
}

// host: Test NCCL failure common.cu:958 'unhandled system error / socketStartConnect: ...'
// host: Test CUDA failure common.cu:892 'out of memory'
// host: Test timeout (30s) common.cu:316
// Cuda failure common.cu:734 'invalid device ordinal'      before 2.10; NCCL's own warnings say no more than the words
std::string_view FailureIn(std::string_view line) {
  if (Trim(line).starts_with("Cuda failure common.cu:") || Trim(line).starts_with("NCCL failure common.cu:")) {
    std::string_view text = line;
    TakeUntil(text, '\'');
    if (TakeLiteral(text, "'")) return text.substr(0, text.rfind('\''));
  }
  // The same without the host, or in the marks of somebody's page.
  for (const std::string_view key : {"Test NCCL failure ", "Test CUDA failure "})
    if (std::string_view text = line.substr(std::min(line.find_first_not_of(" \t`*"), line.size()));
        TakeLiteral(text, key)) {
      TakeUntil(text, '\'');
      if (TakeLiteral(text, "'") && Contains(text, "'")) return text.substr(0, text.rfind('\''));
    }
  for (const std::string_view key : {": Test NCCL failure ", ": Test CUDA failure ", ": Test timeout "}) {
    const auto rest = After(line, key);
    if (!rest) continue;
    std::string_view text = *rest;
    if (key.starts_with(": Test timeout")) return line.substr(line.find(key) + 2);
    TakeUntil(text, '\'');
    if (!TakeLiteral(text, "'")) return Trim(*rest);
    return text.substr(0, text.rfind('\''));
  }
  return {};
}

// What a script says before a run: the newest command line and what it sets. A script echoes it without a label.
struct Announced {
  std::string_view program;
  std::string_view algorithm, protocol;                    // of the newest command line
  std::string_view exported_algorithm, exported_protocol;  // "export NCCL_ALGO=Ring": for all that follow
  NcclTestsSettings settings;
  uint32_t command = 0;  // which command line of the text it is, from 1
};

// "Out of bounds values : 56 FAILED", of which a web page took the mark in front.
bool IsBareSummary(std::string_view text) {
  return text.starts_with("Out of bounds values ") && (text.ends_with("OK") || Contains(text, "FAILED"));
}

// ... and that somebody quotes in a sentence: it shows "Out of bounds values : 248 FAILED", ...
std::string_view QuotedSummary(std::string_view line) {
  const size_t at = line.find("Out of bounds values");
  if (at == std::string_view::npos || at == 0 || std::string_view("\"'`").find(line[at - 1]) == std::string_view::npos)
    return {};
  const std::string_view rest = line.substr(at);
  const size_t failed = rest.substr(0, 60).find(" FAILED");
  return failed == std::string_view::npos ? std::string_view() : rest.substr(0, failed + 7);
}

// Nobody else writes such a line, with or without the mark in front.
bool IsOwnLine(std::string_view text) {
  NcclTestsColumns columns;
  return text.starts_with("nccl-tests version ") || text.starts_with("Collective test starting: ") ||
         text.starts_with("Collective test concluded: ") || text.starts_with("NCCL Tests compiled with NCCL ") ||
         (text.starts_with("nThread ") && Contains(text, " minBytes ")) || text.starts_with("Avg bus bandwidth ") ||
         IsBareSummary(text) || ParseNcclTestsHeading(text, &columns);
}

// A line of the tests that lost the mark in front: pages of Markdown and copied terminals drop it. The lines beside a
// known one, as "Using devices", are common words, and are read only where a table has begun.
bool IsBareComment(std::string_view text, bool begun) {
  if (IsOwnLine(text)) return true;
  NcclTestsDevice device;
  if (text.starts_with("Rank ")) return ParseDevice(text, &device);
  if (!begun) return false;
  return text.starts_with("Out of bounds values ") || text == "Using devices" || text.starts_with("Blocking Enabled") ||
         text.starts_with("(B) ") || (text.starts_with("out-of-place") && text.ends_with("in-place"));
}

// host:42:42 [0] NCCL INFO NCCL_ALGO set by environment to Ring
// + export NCCL_PROTO=LL128
// True where the line says how runs are to go; those of NCCL itself speak of the newest run.
bool TakeWay(std::string_view line, NcclTestsOutput& out, Announced& announced) {
  if (!Contains(line, "NCCL_ALGO") && !Contains(line, "NCCL_PROTO")) return false;
  const std::string_view algorithm = SettingIn(line, "NCCL_ALGO"), protocol = SettingIn(line, "NCCL_PROTO");
  if (algorithm.empty() && protocol.empty()) return false;
  if (Contains(line, "] NCCL ")) {
    if (out.tables.empty()) return false;
    if (!algorithm.empty()) out.tables.back().algorithm = algorithm;
    if (!protocol.empty()) out.tables.back().protocol = protocol;
    return false;  // the line is NCCL's, not ours
  }
  if (Contains(line, "export ") && !Contains(line, "_perf")) {
    if (!algorithm.empty()) announced.exported_algorithm = algorithm;
    if (!protocol.empty()) announced.exported_protocol = protocol;
    return true;
  }
  announced.algorithm = algorithm;
  announced.protocol = protocol;
  return Trim(line).starts_with('#');
}

class TextReader {
 public:
  TextReader(NcclTestsOutput& out, Announced& announced, std::string_view label)
      : out_(out), announced_(announced), label_(label) {}

  // True where the line is one of ours.
  bool Take(std::string_view line, uint32_t number, uint64_t offset) {
    number_ = number;
    offset_ = offset;
    NcclTestsRow row;
    switch (rows_.Take(line, &row)) {
      case NcclTestsRowReader::Answer::row:
        row.line = number;
        row.offset = offset;
        table().rows.push_back(std::move(row));
        return true;
      case NcclTestsRowReader::Answer::part: return true;
      case NcclTestsRowReader::Answer::nothing: break;
    }
    std::string_view text = Trim(line);
    if (TakeLiteral(text, "#")) return TakeComment(Trim(text));
    if (IsBareComment(text, !empty())) return TakeComment(text);
    if (const std::string_view quoted = QuotedSummary(line); !quoted.empty()) {
      // The sentence may name the program as well.
      for (std::string_view words = line; announced_.program.empty() && !words.empty();)
        announced_.program = NcclTestsProgramIn(TakeWord(words));
      return TakeSummary(quoted);
    }
    if (const std::string_view failure = FailureIn(line); !failure.empty()) return TakeFailure(failure), true;
    NcclTestsSettings settings;
    if (const std::string_view program = NcclTestsProgramOfCommand(line, &settings); !program.empty()) {
      announced_.program = program;
      announced_.settings = settings;
      ++announced_.command;
      announced_.algorithm = SettingIn(line, "NCCL_ALGO");
      announced_.protocol = SettingIn(line, "NCCL_PROTO");
      return true;
    }
    return text.starts_with(".. ") && Contains(text, ": Test failure ");
  }

 private:
  bool empty() const { return table_ == SIZE_MAX; }
  NcclTestsTable& table() {
    if (empty()) BeginTable();
    return out_.tables[table_];
  }

  void BeginTable() {
    table_ = out_.tables.size();
    NcclTestsTable& fresh = out_.tables.emplace_back();
    fresh.line = number_;
    fresh.offset = offset_;
    fresh.program = announced_.program;
    fresh.algorithm = announced_.algorithm.empty() ? announced_.exported_algorithm : announced_.algorithm;
    fresh.protocol = announced_.protocol.empty() ? announced_.exported_protocol : announced_.protocol;
    fresh.settings = announced_.settings;
    fresh.command = announced_.command;
    fresh.label = label_;
    begun_ = true;
    rows_.SetColumns({});
  }

  // A new run begins with its first line about itself: the version since 2.17, the settings before.
  void BeginUnlessFresh() {
    if (!begun_ || empty() || !table().devices.empty() || !table().rows.empty()) BeginTable();
  }

  bool TakeComment(std::string_view text) {
    NcclTestsColumns columns;
    if (ParseNcclTestsHeading(text, &columns)) {
      columns.in_place = only_in_place_;
      return TakeHeading(columns), true;
    }
    only_in_place_ = text == "in-place";
    if (text.starts_with("nccl-tests version ")) {
      BeginUnlessFresh();
      table().library = IntAfter(text, "nccl-library=").value_or(-1);
      text.remove_prefix(19);
      table().version = TakeWord(text);
      return true;
    }
    if (TakeLiteral(text, "Collective test starting: ")) {
      BeginUnlessFresh();
      if (const std::string_view program = NcclTestsProgramIn(Trim(text)); !program.empty()) table().program = program;
      return true;
    }
    if (text.starts_with("nThread ")) return TakeSettings(text), true;
    if (text.starts_with("Collective test concluded: ")) return table().concluded = true, true;
    if (text.starts_with("Out of bounds values") || text.starts_with("Avg bus bandwidth")) return TakeSummary(text);
    NcclTestsDevice device;
    if (ParseDevice(text, &device)) {
      device.line = number_;
      device.offset = offset_;
      return table().devices.push_back(device), true;
    }
    return TakeOther(text);
  }

  // What the run says of itself is surer than what a command line asked for, which may be another's.
  void TakeSettings(std::string_view text) {
    BeginUnlessFresh();
    const NcclTestsSettings told = NcclTestsSettingsOfHeader(text);
    const int64_t processes = table().settings.processes;
    if (told.max_bytes >= 0) table().settings = told;
    table().settings.processes = processes;
  }

  bool TakeOther(std::string_view text) {
    if (TakeLiteral(text, "error: ")) return table().last_error = Trim(text), true;
    for (const std::string_view known :
         {"Using devices", "Reducing maxBytes", "Blocking Enabled", "Parallel Init Enabled", "Per-Iteration Report",
          "Writing JSON output", "skipping json output", "GPU memory usage", "(B)", "out-of-place", "in-place",
          "NCCL_VERSION"})
      if (text.starts_with(known)) return true;
    return false;
  }

  void TakeHeading(const NcclTestsColumns& columns) {
    if (!empty() && !table().rows.empty()) BeginTable();
    table().headed = true;
    table().differences = columns.differences;
    table().host_times = columns.host_times;
    rows_.SetColumns(columns);
  }

  // Out of bounds values : 0 OK
  // Avg bus bandwidth    : 1.00478
  bool TakeSummary(std::string_view text) {
    const bool average = text.starts_with("Avg");
    TakeUntil(text, ':');
    TakeLiteral(text, ":");
    SkipBlanks(text);
    double value = 0;
    if (!TakeDouble(text, &value)) return false;
    const bool failed = Contains(text, "FAILED");
    NcclTestsTable& one = table();
    one.concluded = true;
    begun_ = false;
    if (average) {
      one.average_gbs = value >= 0 ? value : -1;
      one.average_failed = failed;
      return true;
    }
    ++one.summaries;
    one.out_of_bounds = value >= 1 && value < 1e15 ? static_cast<int64_t>(value) : failed ? 1 : 0;
    one.summary_line = number_;
    one.summary_offset = offset_;
    return true;
  }

  void TakeFailure(std::string_view text) {
    NcclTestsTable& one = table();
    if (!one.failure.empty()) return;  // what comes later is its consequence
    one.failure = text;
    one.failure_line = number_;
    one.failure_offset = offset_;
  }

  NcclTestsOutput& out_;
  size_t table_ = SIZE_MAX;
  NcclTestsRowReader rows_;
  Announced& announced_;
  std::string_view label_;      // of the launcher
  bool only_in_place_ = false;  // the line above the heading names that side alone
  bool begun_ = false;          // the newest table has not been summed up yet
  uint32_t number_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

namespace {

// The bandwidth of a row is its size over its time; both are rounded to a few digits.
bool AgreesWithItself(int64_t bytes, const NcclTestsFigure& figure) {
  if (figure.time_us <= 0 || figure.algorithm_gbs < 0) return false;
  const double gbs = static_cast<double>(bytes) / figure.time_us / 1000;
  return std::fabs(gbs - figure.algorithm_gbs) <= 0.02 * gbs + 0.01;
}

}  // namespace

std::string_view SettingIn(std::string_view line, std::string_view name) {
  for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    if (at > 0 && !Contains(" \t,;'\"=", line.substr(at - 1, 1))) continue;
    std::string_view rest = line.substr(at + name.size());
    if (TakeLiteral(rest, " set by environment to ")) {
      rest = Trim(rest);
      while (rest.ends_with('.')) rest.remove_suffix(1);
      return rest;
    }
    if (!TakeLiteral(rest, "=")) continue;
    const bool quoted = rest.starts_with('"') || rest.starts_with('\'');
    const char quote = quoted ? rest[0] : ' ';
    if (quoted) rest.remove_prefix(1);
    // In "--export=ALL,NCCL_ALGO=Ring,NCCL_PROTO=LL" the comma ends the value; elsewhere it may be a list.
    const bool in_list = at > 0 && line[at - 1] == ',';
    const size_t end = quoted ? rest.find(quote) : rest.find_first_of(in_list ? " \t,;'\"" : " \t;'\"");
    return rest.substr(0, end);
  }
  return {};
}

bool IsNcclTestsLine(std::string_view line) {
  if (!QuotedSummary(line).empty()) return true;
  if (ContainsAny(line, {"Test CUDA failure common.cu", "Test NCCL failure common.cu"}) && !FailureIn(line).empty())
    return true;
  TakeLauncherPrefix(line);
  line = Trim(line);
  TakeLiteral(line, "#");
  return IsOwnLine(Trim(line));
}

// [0]      1048576        262144     float     sum      -1[0]    1626.5    0.64    1.24      0[0]    2302.3 ...
// A launcher that puts the rank before each write puts it into the middle of rows, too.
static std::string WithoutInnerTags(std::string_view line) {
  const size_t close = line.substr(0, 10).find(']');
  if (!line.starts_with('[') || close == std::string_view::npos || close < 2) return "";
  if (line.substr(1, close - 1).find_first_not_of("0123456789") != std::string_view::npos) return "";
  const std::string_view tag = line.substr(0, close + 1);
  if (line.find(tag, close) == std::string_view::npos) return "";
  std::string out(line);
  for (size_t at = 0; (at = out.find(tag, at)) != std::string::npos;) out.replace(at, tag.size(), " ");
  return out;
}

bool HasNcclTestsRows(std::string_view text) {
  static constexpr int kEnough = 3;  // one row may be of anything, three whose figures agree are not
  NcclTestsRowReader reader;
  reader.SetColumns({});
  LineReader lines(text);
  int fitting = 0;
  for (std::string_view line; fitting < kEnough && lines.Next(&line);) {
    const std::string plain = line.size() < 400 ? WithoutInnerTags(line) : std::string();
    if (!plain.empty()) line = plain;
    TakeLauncherPrefix(line);
    NcclTestsRow row;
    const bool fits = line.size() < 300 && reader.Take(line, &row) == NcclTestsRowReader::Answer::row &&
                      AgreesWithItself(row.bytes, row.out_of_place) && AgreesWithItself(row.bytes, row.in_place);
    fitting = fits ? fitting + 1 : 0;
  }
  return fitting >= kEnough;
}

NcclTestsOutput ParseNcclTestsText(std::string_view bytes) {
  NcclTestsOutput out;
  // Tests built without MPI run once for each task of a launcher, and their tables come interleaved.
  std::map<std::string_view, TextReader> readers;
  Announced announced;
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    if (HasTerminalCodes(line)) line = out.owned.emplace_back(DropTerminalCodes(line));
    if (std::string plain = line.size() < 400 ? WithoutInnerTags(line) : std::string(); !plain.empty())
      line = out.owned.emplace_back(std::move(plain));
    const LauncherPrefix prefix = TakeLauncherPrefix(line);
    const std::string_view text = Trim(line);
    TextReader& reader = readers.try_emplace(Trim(prefix.label), out, announced, Trim(prefix.label)).first->second;
    const bool way = TakeWay(line, out, announced);
    if (reader.Take(line, lines.number(), lines.offset()) || way)
      out.understood += lines.line_bytes();
    else if (text.empty() || text == "#" || Contains(text.substr(0, 200), "] NCCL "))
      out.ignored += lines.line_bytes();
    else
      out.not_understood += lines.line_bytes();
  }
  MarkSeparateRuns(out);
  return out;
}

}  // namespace tacet
