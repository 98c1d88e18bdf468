// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/json_reader.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/iperf3/iperf3_parse.h"

namespace tacet {
namespace {

const JsonValue* Path(const JsonValue* value, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) value = value ? value->Find(key) : nullptr;
  return value;
}

double Rate(const JsonValue* sum) {
  const JsonValue* rate = sum ? sum->Find("bits_per_second") : nullptr;
  const double bits = rate ? rate->Double(-1) : -1;
  return std::isfinite(bits) && bits >= 0 ? bits / 8e9 : -1;
}

int64_t Retransmits(const JsonValue* sum) {
  const JsonValue* value = sum ? sum->Find("retransmits") : nullptr;
  return value ? value->Int(-1) : -1;
}

void TakeStart(const JsonValue& start, Iperf3Output& out, Iperf3Test& test) {
  if (const JsonValue* version = start.Find("version")) out.version = version->Text().substr(0, 40);
  if (const JsonValue* connected = start.Find("connected"); connected && !connected->items.empty()) {
    const JsonValue& first = connected->items.front();
    if (const JsonValue* host = first.Find("local_host")) test.local = host->Text().substr(0, 100);
    if (const JsonValue* host = first.Find("remote_host")) test.remote = host->Text().substr(0, 100);
  }
  const JsonValue* settings = start.Find("test_start");
  if (const JsonValue* protocol = Path(settings, {"protocol"})) test.protocol = protocol->Text().substr(0, 16);
  if (const JsonValue* streams = Path(settings, {"num_streams"})) test.streams = streams->Int();
  if (const JsonValue* reverse = Path(settings, {"reverse"})) test.reverse = reverse->Int() != 0;
}

void TakeInterval(const JsonValue& interval, Iperf3Test& test) {
  const JsonValue* sum = interval.Find("sum");
  if (!sum) return;
  const JsonValue* omitted = sum->Find("omitted");
  if (omitted && omitted->boolean) return;
  Iperf3Rate rate;
  if (const JsonValue* start = sum->Find("start")) rate.start_s = start->Double();
  if (const JsonValue* end = sum->Find("end")) rate.end_s = end->Double();
  rate.gbs = Rate(sum);
  rate.retransmits = Retransmits(sum);
  if (rate.gbs >= 0 && std::isfinite(rate.start_s) && std::isfinite(rate.end_s)) test.rates.push_back(rate);
}

void TakeEnd(const JsonValue& end, Iperf3Test& test) {
  const JsonValue *sent = end.Find("sum_sent"), *received = end.Find("sum_received"), *sum = end.Find("sum");
  test.sent_gbs = Rate(sent ? sent : sum);
  test.received_gbs = Rate(received ? received : sum);
  test.retransmits = Retransmits(sent ? sent : sum);
  if (const JsonValue* lost = Path(received ? received : sum, {"lost_percent"})) test.lost_share = lost->Double() / 100;
  test.concluded = test.sent_gbs >= 0 || test.received_gbs >= 0;
}

void TakeErrorOf(const JsonValue& value, Iperf3Test& test) {
  if (!value.Text().empty()) test.error = value.Text().substr(0, 300);
}

// {"event":"interval","data":{...}}
void TakeEvent(const JsonValue& event, Iperf3Output& out) {
  const JsonValue *name = event.Find("event"), *data = event.Find("data");
  if (!name || !data) return;
  if (name->Text() == "start" || out.tests.empty()) out.tests.emplace_back();
  Iperf3Test& test = out.tests.back();
  if (name->Text() == "start") TakeStart(*data, out, test);
  if (name->Text() == "interval") TakeInterval(*data, test);
  if (name->Text() == "end") TakeEnd(*data, test);
  if (name->Text() == "error") TakeErrorOf(*data, test);
}

void TakeDocument(const JsonValue& document, Iperf3Output& out) {
  Iperf3Test& test = out.tests.emplace_back();
  if (const JsonValue* start = document.Find("start")) TakeStart(*start, out, test);
  if (const JsonValue* intervals = document.Find("intervals"))
    for (const JsonValue& interval : intervals->items) TakeInterval(interval, test);
  if (const JsonValue* end = document.Find("end")) TakeEnd(*end, test);
  if (const JsonValue* error = document.Find("error")) TakeErrorOf(*error, test);
}

bool IsStream(std::string_view bytes) {
  const size_t begin = bytes.find_first_not_of(" \r\n\t");
  if (begin == std::string_view::npos || bytes[begin] != '{') return false;
  JsonReader reader(bytes.substr(begin, 256));
  return reader.Next() == JsonReader::Token::object_begin && reader.Next() == JsonReader::Token::key &&
         reader.raw() == "event";
}

}  // namespace

// {"start":{"connected":[{"socket":5,"local_host":"10.0.0.1",...}],"version":"iperf 3.16",...
bool IsIperf3Json(std::string_view prefix) {
  const size_t begin = prefix.find_first_not_of(" \r\n\t");
  if (begin == std::string_view::npos || prefix[begin] != '{') return false;
  const std::string_view head = prefix.substr(begin, 8192);
  if (IsStream(head)) return Contains(head, "\"iperf 3") || Contains(head, "\"sum_received\"");
  JsonReader reader(head);
  if (reader.Next() != JsonReader::Token::object_begin || reader.Next() != JsonReader::Token::key) return false;
  return reader.raw() == "start" && (Contains(head, "\"iperf 3") || Contains(head, "\"connecting_to\""));
}

Iperf3Output ParseIperf3Json(std::string_view bytes) {
  Iperf3Output out;
  JsonValue document;
  bool truncated = false;
  if (!IsStream(bytes)) {
    const bool understood = ParseJson(bytes, &document, &truncated) && document.is_object();
    if (understood) TakeDocument(document, out);
    (understood ? out.understood : out.not_understood) = bytes.size();
    return out;
  }
  LineReader lines(bytes);
  for (std::string_view line; lines.Next(&line);) {
    JsonValue event;
    const bool blank = Trim(line).empty();
    const bool ours = !blank && ParseJson(line, &event, &truncated) && event.is_object() && !truncated;
    const size_t before = out.tests.size();
    if (ours) TakeEvent(event, out);
    if (out.tests.size() > before) {
      out.tests.back().line = lines.number();
      out.tests.back().offset = lines.offset();
    }
    (blank ? out.ignored : ours ? out.understood : out.not_understood) += lines.line_bytes();
  }
  return out;
}

}  // namespace tacet
