// SPDX-License-Identifier: Apache-2.0
#include "evidence/iperf3/iperf3_parse.h"

#include <algorithm>

#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

// A row of the table: "[  5]   0.00-1.00   sec  1.10 GBytes  9.41 Gbits/sec    0   1.5 MBytes".
struct Row {
  std::string_view id, role;  // "5", "SUM"; "TX-C" of --bidir
  double start_s = 0, end_s = 0, gbs = 0;
  std::string_view rest;  // behind the rate
};

// Rates are decimal; with -f K and its like they are bytes, by powers of two.
bool ScaleOf(std::string_view unit, double* to_gbs) {
  double scale = 1e-9;
  const bool bytes = unit.ends_with("Bytes/sec");
  const double step = bytes ? 1024 : 1000;
  if (!bytes && !unit.ends_with("bits/sec")) return false;
  switch (unit[0]) {
    case 'K': scale *= step; break;
    case 'M': scale *= step * step; break;
    case 'G': scale *= step * step * step; break;
    case 'T': scale *= step * step * step * step; break;
    default: break;
  }
  *to_gbs = bytes ? scale : scale / 8;
  return true;
}

bool ParseRow(std::string_view line, Row* row) {
  if (!TakeLiteral(line, "[")) return false;
  row->id = Trim(TakeUntil(line, ']'));
  if (!TakeLiteral(line, "]")) return false;
  if (TakeLiteral(line, "[")) {
    row->role = TakeUntil(line, ']');
    TakeLiteral(line, "]");
  }
  SkipBlanks(line);
  if (!TakeDouble(line, &row->start_s) || !TakeLiteral(line, "-")) return false;
  SkipBlanks(line);  // iperf 2 pads: " 0.0- 1.0 sec"
  if (!TakeDouble(line, &row->end_s) || TakeWord(line) != "sec") return false;
  double moved = 0, rate = 0, scale = 0;
  if (!IsWholeNumber(TakeWord(line), &moved) || !TakeWord(line).ends_with("ytes")) return false;
  if (!IsWholeNumber(TakeWord(line), &rate) || !ScaleOf(TakeWord(line), &scale)) return false;
  row->gbs = rate * scale;
  row->rest = Trim(line);
  return row->end_s > row->start_s && row->gbs >= 0;
}

// "0.011 ms  12/8321 (0.14%)  receiver"
double LostShare(std::string_view rest) {
  const auto behind = After(rest, " ms ");
  if (!behind) return -1;
  std::string_view text = Trim(*behind);
  double lost = 0, total = 0;
  if (!TakeDouble(text, &lost) || !TakeLiteral(text, "/") || !TakeDouble(text, &total) || total <= 0) return -1;
  return lost / total;
}

class TextReader {
 public:
  explicit TextReader(Iperf3Output& out) : out_(out) {}

  bool Take(std::string_view line, uint32_t number, uint64_t offset) {
    number_ = number;
    offset_ = offset;
    std::string_view text = Trim(line);
    Row row;
    if (ParseRow(text, &row)) return TakeRow(row), true;
    if (TakeLiteral(text, "# pair ")) return TakePair(text), true;
    if (text.starts_with("iperf 3")) return out_.version = text.substr(6, 20), true;
    if (TakeLiteral(text, "Connecting to host ")) return Begin(TakeUntil(text, ',')), true;
    if (TakeLiteral(text, "Accepted connection from ")) return Begin(TakeUntil(text, ',')), true;
    if (text.starts_with("Reverse mode")) return reverse_ = true;
    if (TakeLiteral(text, "iperf3: error - ")) return TakeError(text), true;
    if (text.starts_with("[") && Contains(text, " connected to ")) return TakeConnection(text), true;
    if (text.starts_with("[ ID]")) {
      datagrams_ = Contains(text, "Datagrams");
      return true;
    }
    for (const std::string_view known :
         {"iperf Done", "- - - -", "-----", "Server listening", "Cookie:", "Time:", "TCP MSS", "Control connection",
          "Test Complete", "Starting Test", "CPU Utilization", "snd_tcp", "rcv_tcp", "iperf3: interrupt",
          "Client connecting", "TCP window"})
      if (text.starts_with(known)) return true;
    return false;
  }

 private:
  void Begin(std::string_view remote) {
    remote_ = remote.substr(0, 100);
    local_.clear();
    reverse_ = false;
    first_ = out_.tests.size();
  }

  // "# pair gpu1 gpu2": who measured, in the names of the hostfile; the test itself prints addresses only.
  void TakePair(std::string_view text) {
    Begin("");
    pair_local_ = TakeWord(text).substr(0, 100);
    pair_remote_ = TakeWord(text).substr(0, 100);
  }

  // [  5] local 10.0.0.1 port 41234 connected to 10.0.0.2 port 5201
  void TakeConnection(std::string_view text) {
    if (const auto local = After(text, " local ")) {
      std::string_view rest = *local;
      local_ = TakeWord(rest).substr(0, 100);
    }
    std::string_view rest = *After(text, " connected to ");
    remote_ = TakeWord(rest).substr(0, 100);
  }

  void TakeError(std::string_view text) {
    Iperf3Test& test = out_.tests.size() > first_ ? out_.tests.back() : Fresh("");
    if (test.error.empty()) test.error = text.substr(0, 300);
  }

  Iperf3Test& Fresh(std::string_view role) {
    Iperf3Test& test = out_.tests.emplace_back();
    test.local = pair_local_.empty() ? local_ : pair_local_;
    test.remote = pair_remote_.empty() ? remote_ : pair_remote_;
    test.role = role;
    test.reverse = reverse_;
    test.line = number_;
    test.offset = offset_;
    return test;
  }

  Iperf3Test& TestOf(std::string_view role) {
    for (size_t i = first_; i < out_.tests.size(); ++i)
      if (out_.tests[i].role == role && !(out_.tests[i].concluded && !closing_)) return out_.tests[i];
    return Fresh(role);
  }

  void TakeRow(const Row& row) {
    const bool sender = row.rest.ends_with("sender"), receiver = row.rest.ends_with("receiver");
    closing_ = sender || receiver;
    Iperf3Test& test = TestOf(row.role);
    const bool sum = row.id == "SUM";
    test.streams = sum ? test.streams : std::max<int64_t>(test.streams, 1);
    test.protocol = datagrams_ ? "UDP" : "TCP";
    if (sender || receiver) return TakeTotal(row, sum, sender, test);
    if (row.rest.ends_with("(omitted)")) return;
    int64_t retransmits = -1;
    if (std::string_view rest = row.rest; datagrams_ || !TakeNumber(rest, &retransmits)) retransmits = -1;
    // Rows of single streams stand before their sum, which takes their place.
    if (!test.rates.empty() && test.rates.back().start_s == row.start_s && test.rates.back().end_s == row.end_s) {
      Iperf3Rate& last = test.rates.back();
      last.gbs = sum ? row.gbs : last.gbs + row.gbs;
      if (!sum && retransmits >= 0) last.retransmits = std::max<int64_t>(last.retransmits, 0) + retransmits;
      if (sum && retransmits >= 0) last.retransmits = retransmits;
      if (!sum && test.rates.size() == 1) ++test.streams;
      return;
    }
    test.rates.push_back({row.start_s, row.end_s, row.gbs, retransmits});
  }

  void TakeTotal(const Row& row, bool sum, bool sender, Iperf3Test& test) {
    double& total = sender ? test.sent_gbs : test.received_gbs;
    total = sum || total < 0 ? row.gbs : total + row.gbs;
    int64_t retransmits = -1;
    std::string_view rest = row.rest;
    if (sender && !datagrams_ && TakeNumber(rest, &retransmits))
      test.retransmits = sum || test.retransmits < 0 ? retransmits : test.retransmits + retransmits;
    if (!sender && datagrams_) test.lost_share = LostShare(row.rest);
    test.concluded = true;
  }

  Iperf3Output& out_;
  std::string local_, remote_, pair_local_, pair_remote_;
  size_t first_ = 0;  // tests of the newest connection
  bool reverse_ = false, datagrams_ = false, closing_ = false;
  uint32_t number_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

bool IsIperf3Line(std::string_view line) {
  TakeLauncherPrefix(line);
  line = Trim(line);
  Row row;
  return line.starts_with("[ ID] Interval ") || ParseRow(line, &row);
}

Iperf3Output ParseIperf3Text(std::string_view bytes) {
  Iperf3Output out;
  TextReader reader(out);
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    TakeLauncherPrefix(line);
    const bool blank = Trim(line).empty();
    const bool ours = !blank && reader.Take(line, lines.number(), lines.offset());
    (blank ? out.ignored : ours ? out.understood : out.not_understood) += lines.line_bytes();
  }
  return out;
}

}  // namespace tacet
