// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/log_envelope.h"

#include <algorithm>
#include <cstdint>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/layers/log_entry.h"
#include "evidence/layers/program_record.h"

namespace tacet {
namespace {

constexpr size_t kLinesLookedAt = 60;
// Docker cuts a long line into pieces of so many bytes; all but the last come without a newline.
constexpr size_t kDockerPiece = size_t{16} * 1024;

// 2016-10-06T00:17:09.669794202Z stdout F log content 1
// 2016-10-06T00:17:09.669794203+02:00 stderr P the first half of a long line
bool TakeCriHead(std::string_view& line, bool* partial) {
  if (line.size() < 30 || !IsDigit(line[0]) || line[10] != 'T') return false;
  std::string_view rest = line.substr(line.find(' ') == std::string_view::npos ? line.size() : line.find(' ') + 1);
  if (!TakeLiteral(rest, "stdout ") && !TakeLiteral(rest, "stderr ")) return false;
  // Tags are separated by colons; the first is F for a whole line, P for a part of one.
  if (rest.empty() || (rest[0] != 'F' && rest[0] != 'P')) return false;
  if (rest.size() > 1 && rest[1] != ' ' && rest[1] != ':') return false;
  *partial = rest[0] == 'P';
  const size_t blank = rest.find(' ');
  line = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
  return true;
}

bool IsClock(std::string_view word) { return word.size() >= 8 && word[2] == ':' && word[5] == ':'; }

// The time in front of a syslog's line, with blanks or a T between date and clock; journalctl -o short-full begins with
// the day of the week and ends with the zone.
bool TakeSyslogTime(std::string_view& line) {
  std::string_view rest = line;
  const std::string_view first = TakeWord(rest);
  constexpr std::string_view kDays = "MonTueWedThuFriSatSun";
  const bool full = first.size() == 3 && kDays.find(first) % 3 == 0 && kDays.find(first) != std::string_view::npos;
  const std::string_view date = full ? TakeWord(rest) : first;
  if (date.size() >= 10 && IsDigit(date[0]) && date[4] == '-' && date[7] == '-') {
    if (date.size() == 10 ? !IsClock(TakeWord(rest)) : date[10] != 'T') return false;
    if (full) TakeWord(rest);
  } else {
    const std::string_view day = full ? std::string_view() : TakeWord(rest);
    if (date.size() != 3 || day.empty() || !IsDigit(day[0]) || !IsClock(TakeWord(rest))) return false;
  }
  line = rest;
  return true;
}

// Nov 15 00:20:00 node7 train[77]: text
// 2026-11-15T00:20:00.123456+00:00 node7 train.sh[77]: text
// 2026-11-15 00:20:00 node7 torchrun[77]: text
// Sun 2026-11-15 00:20:00 UTC node7 torchrun[77]: text
// The kernel's lines are left as they are: they have a reader who wants host and time.
bool TakeSyslogHead(std::string_view& line) {
  std::string_view rest = line;
  if (!TakeSyslogTime(rest)) return false;
  const std::string_view host = TakeWord(rest);
  if (host.empty() || host.find_first_of("[]():=,") != std::string_view::npos || !TakeLiteral(rest, " ")) return false;
  // 2026-11-15 00:20:00,123 INFO trainer[77]: text: a logger of Python's
  for (const std::string_view level : {"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL"})
    if (host == level) return false;
  const size_t colon = rest.substr(0, 80).find("]: ");
  const size_t bracket = rest.substr(0, 80).find('[');
  if (colon == std::string_view::npos || bracket == std::string_view::npos || bracket == 0 || bracket > colon)
    return false;
  const std::string_view tag = rest.substr(0, bracket), pid = rest.substr(bracket + 1, colon - bracket - 1);
  if (tag == "kernel" || tag.find(' ') != std::string_view::npos) return false;
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string_view::npos) return false;
  line = rest.substr(colon + 3);
  return true;
}

// Nov 15 00:20:00 node7 kernel: text
bool IsKernelLineOfSyslog(std::string_view line) {
  const size_t at = line.substr(0, 120).find(" kernel: ");
  return at != std::string_view::npos && at >= 16 && line.substr(0, at).find('[') == std::string_view::npos;
}

// Collects lines so that each stands at the number it has in the file, as far as possible.
class LineSink {
 public:
  explicit LineSink(size_t most) : most_(most) {}

  void PadTo(size_t number) {
    while (number_ + 1 < number) Newline();
  }
  void Add(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    Append(text);
    number_ += static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    Newline();
  }
  // A part of a line; the rest comes later.
  void AddPart(std::string_view text) { Append(text); }
  Unwrapped Finish() { return std::move(out_); }
  bool full() const { return out_.limited; }

 private:
  void Newline() {
    Append("\n");
    ++number_;
  }
  void Append(std::string_view text) {
    if (out_.text.size() + text.size() > most_)
      out_.limited = true;
    else
      out_.text.append(text);
  }

  const size_t most_;
  Unwrapped out_;
  size_t number_ = 0;  // of the last line that is complete
};

// Fluent Bit, Vector and CloudWatch use Docker's form, too, and take the newline off every line: only a piece that is
// full goes on in the next record, and only in one of the same stream.
bool IsPiece(const LogEntry& entry) { return !entry.text.ends_with('\n') && entry.text.size() >= kDockerPiece; }

void UnwrapLines(std::string_view bytes, Envelope envelope, LineSink& out) {
  LineReader reader(bytes);
  std::string_view line;
  bool inside = false;  // of a line that comes in parts
  LogEntry part;        // the last of them
  while (!out.full() && reader.Next(&line)) {
    bool partial = false;
    std::string text;
    if (envelope == Envelope::cri) {
      TakeCriHead(line, &partial);
      text = line;
    } else if (envelope == Envelope::syslog) {
      TakeSyslogHead(line);
      text = line;
    } else if (envelope == Envelope::program_records) {
      if (!ReadProgramRecord(line, &text)) text = line;  // of a launcher or a library, beside them
    } else if (LogEntry entry; ReadLogEntry(line, &entry)) {
      partial = envelope == Envelope::docker_json && IsPiece(entry);
      if (inside && (entry.to_stderr != part.to_stderr || entry.source != part.source)) {
        out.Add("");
        inside = false;
      }
      text = WriteLogEntry(entry);
      if (partial) part = std::move(entry);
    }
    if (!inside && !partial) out.PadTo(reader.number());
    partial ? out.AddPart(text) : out.Add(text);
    inside = partial;
  }
  if (inside) out.Add("");
}

}  // namespace

std::string_view Name(Envelope envelope) {
  switch (envelope) {
    case Envelope::none: return "none";
    case Envelope::docker_json: return "Docker's JSON log";
    case Envelope::cri: return "log lines of a container runtime (CRI) or of tacet run";
    case Envelope::json_lines: return "JSON lines of a journal or a log store";
    case Envelope::json_document: return "a JSON export of a log store";
    case Envelope::journal_export: return "a journal's export";
    case Envelope::syslog: return "a syslog";
    case Envelope::program_records: return "JSON records of the program";
  }
  return "";
}

Envelope FindEnvelope(std::string_view prefix) {
  const size_t first = prefix.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return Envelope::none;
  if (prefix.starts_with("__CURSOR=") || prefix.starts_with("__REALTIME_TIMESTAMP=")) return Envelope::journal_export;
  size_t lines = 0, cri = 0, docker = 0, json = 0, syslog = 0, kernel = 0, records = 0;
  LineReader reader(prefix);
  std::string_view line;
  while (lines < kLinesLookedAt && reader.Next(&line)) {
    if (Trim(line).empty()) continue;
    if (reader.next_offset() >= prefix.size() && lines > 0 && !prefix.ends_with('\n')) break;  // cut by the prefix
    ++lines;
    std::string_view rest = line;
    bool partial = false;
    if (line[0] == '{') {
      LogEntry entry;
      std::string text;
      if (ReadProgramRecord(line, &text)) {
        ++records;
        continue;
      }
      if (!ReadLogEntry(line, &entry)) continue;
      (entry.store == LogEntry::Store::docker ? docker : json) += 1;
    } else if (TakeCriHead(rest, &partial)) {
      ++cri;
    } else if (TakeSyslogHead(rest)) {
      ++syslog;
    } else if (IsKernelLineOfSyslog(line)) {
      ++kernel;
    } else if (line[0] == '[' && lines == 1 && cri + docker + json + syslog == 0) {
      break;
    }
  }
  const auto most = [&](size_t count) { return count > 0 && count * 10 >= lines * 8; };
  // They stand among the lines of launchers and libraries, which stay as they are.
  constexpr size_t kFewRecords = 3;
  if (records >= kFewRecords && records * 5 >= lines && cri + docker + syslog == 0) return Envelope::program_records;
  if (most(docker)) return Envelope::docker_json;
  if (most(json + docker)) return Envelope::json_lines;
  if (most(cri)) return Envelope::cri;
  if (syslog > 0 && most(syslog + kernel)) return Envelope::syslog;
  if ((prefix[first] == '[' || prefix[first] == '{') && HasLogEntries(prefix.substr(first)))
    return Envelope::json_document;
  return Envelope::none;
}

Unwrapped TakeOutOfEnvelope(std::string_view bytes, Envelope envelope, size_t most) {
  LineSink out(most);
  if (envelope == Envelope::journal_export || envelope == Envelope::json_document) {
    std::vector<LogEntry> entries =
        envelope == Envelope::journal_export ? ReadJournalExport(bytes, most) : ReadLogDocument(bytes, most);
    const bool turned = PutInOrder(entries);
    LabelSources(entries);
    size_t line = 1, seen = 0;
    for (const LogEntry& entry : entries) {
      if (!turned) {
        line += static_cast<size_t>(std::count(bytes.begin() + static_cast<ptrdiff_t>(seen),
                                               bytes.begin() + static_cast<ptrdiff_t>(entry.offset), '\n'));
        seen = entry.offset;
        out.PadTo(line);
      }
      out.Add(WriteLogEntry(entry));
    }
    return out.Finish();
  }
  UnwrapLines(bytes, envelope, out);
  return out.Finish();
}

}  // namespace tacet
