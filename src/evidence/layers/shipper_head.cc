// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/shipper_head.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

#include "base/json_reader.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/layers/log_entry.h"

namespace tacet {
namespace {

constexpr size_t kLinesOfHead = 60;

bool IsDecimal(char c) { return c >= '0' && c <= '9'; }

// "2026-11-15T00:20:00.123Z ", "2026-11-15T00:20:00+01:00 ", "2026-11-15 00:20:00,123 "; what follows it is left.
bool TakeIsoTime(std::string_view& line, char separator) {
  if (line.size() < 20 || !IsDecimal(line[0]) || line[4] != '-' || line[7] != '-' || line[10] != 'T' || line[13] != ':')
    return false;
  const size_t end = line.substr(0, 40).find(separator);
  if (end == std::string_view::npos || end < 19) return false;
  line.remove_prefix(end + 1);
  return true;
}

// <3>1 2026-11-15T00:20:00.123456+00:00 node7 kernel - - - text
// <14>1 2026-11-15T00:20:00Z node7 train 77 - [meta a="b"] text
bool TakeRfc5424(std::string_view line, ShippedLine* out) {
  int priority = -1;
  if (!TakeLiteral(line, "<") || !TakeNumber(line, &priority) || priority < 0 || priority > 191 ||
      !TakeLiteral(line, ">1 "))
    return false;
  const std::string_view time = TakeWord(line), host = TakeWord(line), program = TakeWord(line);
  TakeWord(line);  // process
  TakeWord(line);  // message id
  SkipBlanks(line);
  if (time.empty() || host.empty() || program.empty()) return false;
  if (line.starts_with('[')) {
    const size_t close = line.find("] ");
    line = close == std::string_view::npos ? std::string_view() : line.substr(close + 2);
  } else {
    TakeLiteral(line, "-");
    TakeLiteral(line, " ");
  }
  TakeLiteral(line, "\xef\xbb\xbf");
  // The kernel's lines have a reader who wants host and time.
  out->text = program == "kernel" ? std::string(time) + " " + std::string(host) + " kernel: " + std::string(line)
                                  : std::string(line);
  return true;
}

bool TakeFluentd(std::string_view line, ShippedLine* out) {
  std::string_view rest = line;
  if (!TakeIsoTime(rest, '\t')) return false;
  const size_t tab = rest.find('\t');
  if (tab == std::string_view::npos || !rest.substr(tab + 1).starts_with('{')) return false;
  JsonValue record;
  bool truncated = false;
  if (!ParseJson(rest.substr(tab + 1), &record, &truncated) || !record.is_object()) return false;
  for (const std::string_view key : {"log", "message", "MESSAGE", "msg"}) {
    const JsonValue* text = record.Find(key);
    if (text == nullptr || text->kind != JsonValue::Kind::string) continue;
    out->text = text->Text();
    return true;
  }
  return false;
}

bool TakeLoki(std::string_view line, ShippedLine* out) {
  if (!TakeIsoTime(line, ' ') || !TakeLiteral(line, "{")) return false;
  const size_t close = line.find('}');
  if (close == std::string_view::npos) return false;
  const std::string_view labels = line.substr(0, close);
  if (!labels.empty() && labels.find("=\"") == std::string_view::npos) return false;
  for (const std::string_view key : {"pod=\"", "instance=\"", "host=\""})
    if (const auto pod = After(labels, key); pod && out->source.empty()) out->source = pod->substr(0, pod->find('"'));
  line.remove_prefix(close + 1);
  SkipBlanks(line);
  out->text = line;
  return true;
}

// The name of a stream has a slash or a digit behind a dash: a word of the text itself ("INFO", "step") does not.
bool TakeStream(std::string_view line, ShippedLine* out) {
  if (!TakeIsoTime(line, ' ')) return false;
  const std::string_view name = TakeWord(line);
  if (name.size() < 4 || name.find_first_of("[](){}=:,\"'|") != std::string_view::npos) return false;
  const size_t dash = name.rfind('-');
  const bool numbered = dash != std::string_view::npos && dash + 1 < name.size() && IsDecimal(name[dash + 1]);
  if (name.find('/') == std::string_view::npos && !numbered) return false;
  TakeLiteral(line, " ");
  out->source = name;
  out->text = line;
  return true;
}

bool IsComposeName(std::string_view name) {
  const size_t dash = name.find_last_of("-_");
  if (dash == std::string_view::npos || name.find_first_of("[](){}=:,\"'<>") != std::string_view::npos) return false;
  return dash + 1 < name.size() && name.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
}

bool TakeCompose(std::string_view line, ShippedLine* out) {
  // Its own word for the end of a container: "trainer-1 exited with code 1".
  if (const std::string_view name = line.substr(0, line.find(' '));
      line.substr(name.size()).starts_with(" exited with code ") && IsComposeName(name)) {
    out->source = name;
    out->text = line;
    return true;
  }
  const size_t bar = line.substr(0, 80).find(" | ");
  const size_t end = line.find(' ');
  if (bar == std::string_view::npos || end == 0 || end > bar) return false;
  if (line.substr(end, bar - end).find_first_not_of(' ') != std::string_view::npos) return false;
  const std::string_view name = line.substr(0, end);
  if (!IsComposeName(name)) return false;
  out->source = name;
  out->text = line.substr(bar + 3);
  return true;
}

bool TakeBars(std::string_view line, ShippedLine* out) {
  const size_t bars = line.substr(0, 80).find(" ||");
  if (bars == std::string_view::npos || bars == 0) return false;
  const std::string_view name = line.substr(0, bars);
  if (name.find_first_of(" \t[](){}=:,\"'<>&|") != std::string_view::npos) return false;
  line.remove_prefix(bars + 3);
  if (!line.empty() && !TakeLiteral(line, " ")) return false;
  out->source = name;
  out->text = line;
  return true;
}

// A host has a number somewhere; "srun: ", "wandb: " and "INFO: " have none, and "3: " is a task.
bool TakePdsh(std::string_view line, ShippedLine* out) {
  const size_t colon = line.substr(0, 80).find(": ");
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view name = line.substr(0, colon);
  bool digit = false, other = false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!IsDecimal(c) && !letter && c != '-' && c != '_' && c != '.') return false;
    digit = digit || IsDecimal(c);
    other = other || !IsDecimal(c);
  }
  if (!digit || !other || name.starts_with("rank") || name.ends_with(".py")) return false;
  out->source = name;
  out->text = line.substr(colon + 2);
  return true;
}

// The number is the rank: it is handed on in the form that mpirun has for it.
bool TakeHydra(std::string_view line, ShippedLine* out) {
  int number = -1;
  std::string_view rest = line;
  if (!TakeLiteral(rest, "[") || !TakeNumber(rest, &number) || number < 0 || !TakeLiteral(rest, "] ")) return false;
  // "[2] NCCL INFO ...", "[2] include/shm.h:28 NCCL WARN ...": the bracket is NCCL's own, and holds a device.
  const size_t nccl = rest.substr(0, 80).find("NCCL ");
  if (nccl != std::string_view::npos && std::count(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(nccl), ':') < 2)
    return false;
  out->source = std::to_string(number);
  out->text = "[1," + out->source + "]<stdout>:" + std::string(rest);
  return true;
}

bool TakeLogfmt(std::string_view line, ShippedLine* out) {
  if (!line.starts_with("time=") && !line.starts_with("ts=") && !line.starts_with("level=")) return false;
  const auto quoted = After(line, " msg=\"");
  if (!quoted) return false;
  size_t end = 0;
  while (end < quoted->size() && (*quoted)[end] != '"') end += (*quoted)[end] == '\\' ? 2 : 1;
  out->text = JsonReader::Unescape(quoted->substr(0, end));
  return true;
}

// A syslog goes on with a host and a program: "Nov 15 00:20:00 node7 kernel: text" is not this.
bool TakeClockLine(std::string_view line, ShippedLine* out) {
  std::string_view rest = line;
  const std::string_view month = TakeWord(rest), day = TakeWord(rest), clock = TakeWord(rest);
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (month.size() != 3 || kMonths.find(month) % 3 != 0 || day.empty() || day.size() > 2 || !IsDecimal(day[0]) ||
      clock.size() < 8 || clock[2] != ':' || clock[5] != ':' || !TakeLiteral(rest, " "))
    return false;
  std::string_view ahead = rest;
  const std::string_view host = TakeWord(ahead);
  if (host.find_first_of("[](){}:=,") == std::string_view::npos && TakeWord(ahead).ends_with(':')) return false;
  out->text = rest;
  return true;
}

bool TakeSplunk(std::string_view line, ShippedLine* out) {
  const auto raw = After(line.substr(0, 4096), "_raw=\"");
  if (!raw || !Contains(line, "source")) return false;
  std::string_view text = line.substr(static_cast<size_t>(raw->data() - line.data()));
  if (text.ends_with('"')) text.remove_suffix(1);
  out->text = JsonReader::Unescape(text);
  if (const auto host = After(line, "host=")) {
    std::string_view rest = *host;
    out->source = TakeWord(rest);
  }
  return true;
}

}  // namespace

std::string_view Name(ShipperHead head) {
  switch (head) {
    case ShipperHead::none: return "none";
    case ShipperHead::rfc5424: return "a syslog (RFC 5424)";
    case ShipperHead::fluentd: return "Fluentd's output";
    case ShipperHead::loki: return "Loki's output";
    case ShipperHead::stream: return "a log stream's output";
    case ShipperHead::compose: return "Docker Compose's output";
    case ShipperHead::pdsh: return "the output of several hosts";
    case ShipperHead::hydra: return "the output of several tasks";
    case ShipperHead::logfmt: return "lines of keys and values";
    case ShipperHead::clock: return "lines with a time in front";
    case ShipperHead::bars: return "lines with a name in front";
    case ShipperHead::splunk: return "Splunk's output";
  }
  return "";
}

bool TakeShippedLine(std::string_view line, ShipperHead head, ShippedLine* out) {
  *out = {};
  switch (head) {
    case ShipperHead::none: return false;
    case ShipperHead::rfc5424: return TakeRfc5424(line, out);
    case ShipperHead::fluentd: return TakeFluentd(line, out);
    case ShipperHead::loki: return TakeLoki(line, out);
    case ShipperHead::stream: return TakeStream(line, out);
    case ShipperHead::compose: return TakeCompose(line, out);
    case ShipperHead::pdsh: return TakePdsh(line, out);
    case ShipperHead::hydra: return TakeHydra(line, out);
    case ShipperHead::logfmt: return TakeLogfmt(line, out);
    case ShipperHead::clock: return TakeClockLine(line, out);
    case ShipperHead::bars: return TakeBars(line, out);
    case ShipperHead::splunk: return TakeSplunk(line, out);
  }
  return false;
}

ShipperHead FindShipperHead(std::string_view prefix) {
  constexpr std::array kHeads{ShipperHead::rfc5424, ShipperHead::fluentd, ShipperHead::loki,    ShipperHead::splunk,
                              ShipperHead::logfmt,  ShipperHead::stream,  ShipperHead::compose, ShipperHead::pdsh,
                              ShipperHead::hydra,   ShipperHead::bars,    ShipperHead::clock};
  std::array<size_t, kHeads.size()> counts{};
  std::array<std::set<std::string>, kHeads.size()> sources;
  size_t lines = 0;
  LineReader reader(prefix);
  std::string_view line;
  while (lines < kLinesOfHead && reader.Next(&line)) {
    if (Trim(line).empty()) continue;
    ++lines;
    for (size_t i = 0; i < kHeads.size(); ++i) {
      ShippedLine shipped;
      if (!TakeShippedLine(line, kHeads[i], &shipped)) continue;
      ++counts[i];
      sources[i].insert(shipped.source);
      break;
    }
  }
  for (size_t i = 0; i < kHeads.size(); ++i) {
    if (counts[i] == 0 || counts[i] * 10 < lines * 8) continue;
    // A name in front returns; what differs from line to line is the text.
    const bool by_name = kHeads[i] == ShipperHead::stream || kHeads[i] == ShipperHead::compose ||
                         kHeads[i] == ShipperHead::pdsh || kHeads[i] == ShipperHead::hydra ||
                         kHeads[i] == ShipperHead::bars;
    if (by_name && (counts[i] < 2 || sources[i].size() * 2 > counts[i])) continue;
    return kHeads[i];
  }
  return ShipperHead::none;
}

}  // namespace tacet
