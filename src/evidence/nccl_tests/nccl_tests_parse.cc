// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_parse.h"

#include <map>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/nccl_tests/nccl_tests_row.h"

namespace tacet {
namespace {

// "/opt/nccl-tests/build/all_reduce_perf" -> "all_reduce_perf"; nothing where the word is no program of the tests.
std::string_view ProgramIn(std::string_view word) {
  while (!word.empty() && (word.back() == '"' || word.back() == '\'' || word.back() == ',')) word.remove_suffix(1);
  if (const size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
  for (std::string_view end : {"_perf", "_perf_mpi", "_perf.exe"})
    if (word.size() > end.size() && word.ends_with(end)) return word.substr(0, word.size() - end.size() + 5);
  return {};
}

// "+ mpirun -np 8 ./build/all_reduce_perf -b 8 -e 8G -f 2 -g 1", as a shell with `set -x` or a job script echoes it.
std::string_view ProgramOfCommand(std::string_view line) {
  if (!Contains(line, "_perf") || Contains(line, "] NCCL ")) return {};
  while (!line.empty()) {
    std::string_view word = TakeWord(line);
    const std::string_view program = ProgramIn(word);
    // Options must follow, else it is talk about the program.
    if (!program.empty() && (Trim(line).empty() || Trim(line)[0] == '-')) return program;
  }
  return {};
}

// #  Rank  0 Group  0 Pid   4020 on      node0 device  0 [0000:00:06] NVIDIA H200
// #   Rank  0 Pid 112424 on localhost device  0 [0x00] A100-SXM4-40GB
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
  if (!number("Pid", &out->pid)) return false;
  if (TakeWord(line) != "on") return false;
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
  if (Trim(line).starts_with("Cuda failure common.cu:")) {
    std::string_view text = line;
    TakeUntil(text, '\'');
    if (TakeLiteral(text, "'")) return text.substr(0, text.rfind('\''));
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
};

// "Out of bounds values : 56 FAILED", of which a web page took the mark in front.
bool IsBareSummary(std::string_view text) {
  return text.starts_with("Out of bounds values ") && text.find("FAILED") != std::string_view::npos;
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
  TextReader(NcclTestsOutput& out, Announced& announced) : out_(out), announced_(announced) {}

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
    if (TakeLiteral(text, "#")) return TakeComment(line, Trim(text));
    if (IsBareSummary(text)) return TakeComment(line, text);
    if (const std::string_view failure = FailureIn(line); !failure.empty()) return TakeFailure(failure), true;
    if (const std::string_view program = ProgramOfCommand(line); !program.empty()) {
      announced_.program = program;
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
    begun_ = true;
    rows_.SetColumns({});
  }

  // A new run begins with its first line about itself: the version since 2.17, the settings before.
  void BeginUnlessFresh() {
    if (!begun_ || empty() || !table().devices.empty() || !table().rows.empty()) BeginTable();
  }

  bool TakeComment(std::string_view line, std::string_view text) {
    NcclTestsColumns columns;
    if (ParseNcclTestsHeading(Trim(line), &columns)) {
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
      if (const std::string_view program = ProgramIn(Trim(text)); !program.empty()) table().program = program;
      return true;
    }
    if (text.starts_with("nThread ")) return BeginUnlessFresh(), true;
    if (text.starts_with("Collective test concluded: ")) return table().concluded = true, true;
    if (text.starts_with("Out of bounds values") || text.starts_with("Avg bus bandwidth")) return TakeSummary(text);
    NcclTestsDevice device;
    if (ParseDevice(text, &device)) return table().devices.push_back(device), true;
    return TakeOther(text);
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
  bool only_in_place_ = false;  // the line above the heading names that side alone
  bool begun_ = false;          // the newest table has not been summed up yet
  uint32_t number_ = 0;
  uint64_t offset_ = 0;
};

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
  TakeLauncherPrefix(line);
  line = Trim(line);
  if (IsBareSummary(line)) return true;
  NcclTestsColumns columns;
  if (!line.starts_with('#')) return false;
  if (ParseNcclTestsHeading(line, &columns)) return true;
  TakeLiteral(line, "#");
  line = Trim(line);
  return line.starts_with("nccl-tests version ") || line.starts_with("Collective test ") ||
         (line.starts_with("nThread ") && Contains(line, " minBytes ")) || line.starts_with("Avg bus bandwidth ") ||
         (line.starts_with("Out of bounds values ") && Contains(line, "FAILED"));
}

NcclTestsOutput ParseNcclTestsText(std::string_view bytes) {
  NcclTestsOutput out;
  // Tests built without MPI run once for each task of a launcher, and their tables come interleaved.
  std::map<std::string_view, TextReader> readers;
  Announced announced;
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    if (HasTerminalCodes(line)) line = out.owned.emplace_back(DropTerminalCodes(line));
    const LauncherPrefix prefix = TakeLauncherPrefix(line);
    const std::string_view text = Trim(line);
    TextReader& reader = readers.try_emplace(Trim(prefix.label), out, announced).first->second;
    const bool way = TakeWay(line, out, announced);
    if (reader.Take(line, lines.number(), lines.offset()) || way)
      out.understood += lines.line_bytes();
    else if (text.empty() || text == "#" || Contains(text.substr(0, 200), "] NCCL "))
      out.ignored += lines.line_bytes();
    else
      out.not_understood += lines.line_bytes();
  }
  return out;
}

}  // namespace tacet
