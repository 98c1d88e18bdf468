// SPDX-License-Identifier: Apache-2.0
#include "pipeline_trace_parse.h"

#include <cmath>

#include "base/json_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

// A transfer shown from its last partner's start may end before it begins, by as much as the workers' clocks differ:
//   {"name": "forward-recv", ..., "ts": 1204.5, "dur": -31.25, "ph": "X", ...}
constexpr int64_t kMostSkewNs = 1'000'000'000;

// Microseconds with any number of decimals; rubbish gives the smallest number.
int64_t ToNs(double microseconds) {
  if (!std::isfinite(microseconds) || std::fabs(microseconds) > 1e15) return INT64_MIN;
  return std::llround(microseconds * 1000);
}

struct EventText {
  PipelineTraceRecord record;
  std::string_view phase, label;  // label: args.name of metadata
  bool timed = false;
};

// The members of "args"; the reader stands behind its opening brace.
bool ReadArguments(JsonReader& reader, EventText& out) {
  while (true) {
    const Token token = reader.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key) return false;
    const std::string_view key = reader.raw();
    const Token value = reader.Next();
    if (value == Token::object_begin || value == Token::array_begin) return false;
    if (value == Token::end || value == Token::error) return false;
    if (key == "name" && value == Token::string) out.label = reader.raw();
    if (value != Token::number) continue;
    if (key == "step")
      out.record.step = reader.Int();
    else if (key == "model_chunk")
      out.record.chunk = reader.Int();
    else if (key == "mb_id")
      out.record.microbatch = reader.Int();
    else if (key == "seq_id")
      out.record.seq = reader.Int();
  }
}

// One event; the reader stands behind its opening brace.
bool ReadEvent(JsonReader& reader, EventText& out) {
  while (true) {
    const Token token = reader.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key) return false;
    const std::string_view key = reader.raw();
    if (key == "args") {
      const Token begin = reader.Next();
      if (begin == Token::object_begin) {
        if (!ReadArguments(reader, out)) return false;
        continue;
      }
      if (begin == Token::end || begin == Token::error || begin == Token::array_begin) return false;
      continue;
    }
    const Token value = reader.Next();
    if (value == Token::string) {
      if (key == "name") out.record.name = reader.raw();
      if (key == "ph") out.phase = reader.raw();
    } else if (value == Token::number) {
      if (key == "pid")
        out.record.pid = reader.Int();
      else if (key == "tid")
        out.record.tid = reader.Int();
      else if (key == "ts")
        out.timed = (out.record.start_ns = ToNs(reader.Double())) != INT64_MIN;
      else if (key == "dur")
        out.record.duration_ns = ToNs(reader.Double());
    } else if (value != Token::boolean && value != Token::null) {
      return false;
    }
  }
}

// "PP rank 1, TP rank 0, compute" and "DP rank [0]".
void TakeMetadata(const EventText& event, PipelineTraceRecords& out) {
  if (event.record.name == "thread_name") {
    const auto stage = IntAfter<int32_t>(event.label, "PP rank "), tp = IntAfter<int32_t>(event.label, "TP rank ");
    if (stage) out.threads[{event.record.pid, event.record.tid}] = {*stage, tp.value_or(0)};
  } else if (event.record.name == "process_name") {
    if (const auto dp = IntAfter<int32_t>(event.label, "DP rank [")) out.dp_ranks[event.record.pid] = *dp;
  }
}

}  // namespace

PipelineTraceRecords ParsePipelineTrace(std::string_view text) {
  PipelineTraceRecords out;
  JsonReader reader(text);
  if (reader.Next() != Token::array_begin) {
    out.not_understood = text.size();
    return out;
  }
  while (true) {
    const Token token = reader.Next();
    if (token == Token::array_end) {
      out.complete = true;
      break;
    }
    if (token != Token::object_begin) break;
    const size_t begin = reader.offset();
    EventText event;
    if (!ReadEvent(reader, event)) break;
    const size_t bytes = reader.end_offset() - begin;
    if (event.phase == "M") {
      TakeMetadata(event, out);
    } else if (event.phase == "X" && event.timed && event.record.duration_ns > -kMostSkewNs) {
      out.events.push_back(event.record);
    } else {
      out.not_understood += bytes;
      continue;
    }
    out.understood += bytes;
  }
  if (!out.complete) out.not_understood = text.size() - out.understood;
  return out;
}

}  // namespace tacet
