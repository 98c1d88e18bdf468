// SPDX-License-Identifier: Apache-2.0
#include "evidence/inspector/inspector_parse.h"

#include <algorithm>

#include "base/json_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

class LineParser {
 public:
  LineParser(std::string_view line, InspectorRecord& record) : json_(line), record_(record) {}

  // {"header":{...},"metadata":{...},"coll_perf":{...}}
  bool ParseRecord() {
    return ForEachMember([this](std::string_view key) {
      if (key == "header") return ParseHeader();
      if (key == "metadata") return ParseMetadata();
      if (key == "coll_perf") return ParseOperation("coll");
      if (key == "p2p_perf") return ParseOperation("p2p");
      if (key == "dump_stats") return ParseDumpStats();
      return Skip();
    });
  }
  bool truncated() const { return json_.truncated(); }
  bool has_header() const { return has_header_; }

 private:
  template <typename Member>
  bool ForEachMember(Member member) {
    if (json_.Next() != Token::object_begin) return false;
    return Members(member);
  }

  template <typename Member>
  bool Members(Member member) {
    while (true) {
      const Token token = json_.Next();
      if (token == Token::object_end) return true;
      if (token != Token::key || !member(json_.raw())) return false;
    }
  }

  bool Skip() {
    json_.SkipValue();
    return !json_.truncated();
  }
  bool Scalar() {
    const Token token = json_.Next();
    return token == Token::number || token == Token::string || token == Token::boolean || token == Token::null;
  }
  bool Take(std::string_view* value) { return Scalar() && (*value = json_.raw(), true); }
  bool Take(int64_t* value) { return Scalar() && (*value = json_.Int(), true); }
  bool Take(double* value) { return Scalar() && (*value = json_.Double(), true); }
  bool Take(int32_t* value) {
    int64_t wide = 0;
    if (!Take(&wide)) return false;
    *value = wide < 0 || wide > INT32_MAX ? -1 : static_cast<int32_t>(wide);
    return true;
  }

  // "header":{"id":"0x5069d6244cb807","comm_name":"unknown","rank":0,"n_ranks":4,"nnodes":4}
  bool ParseHeader() {
    has_header_ = true;
    return ForEachMember([this](std::string_view key) {
      if (key == "id") {
        std::string_view id;
        if (!Take(&id)) return false;
        TakeHex(id, &record_.comm);
        return true;
      }
      if (key == "comm_name") return Take(&record_.comm_name);
      if (key == "rank") return Take(&record_.rank);
      if (key == "n_ranks") return Take(&record_.ranks);
      return Skip();
    });
  }

  // "metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface",
  //             "dump_timestamp_us":1748030377748202,"hostname":"node01","pid":1639453}
  bool ParseMetadata() {
    return ForEachMember([this](std::string_view key) {
      if (key == "inspector_output_format_version") return Take(&record_.version);
      if (key == "dump_timestamp_us") return Take(&record_.dumped_us);
      if (key == "hostname") return Take(&record_.host);
      if (key == "pid") return Take(&record_.pid);
      return Skip();
    });
  }

  // "coll_perf":{"coll":"AllReduce","coll_sn":0,"coll_msg_size_bytes":1048576,"coll_exec_time_us":4346,"coll_timing_source":
  //              "kernel_gpu","coll_algobw_gbs":0.241,"coll_busbw_gbs":0.241,"event_trace_sn":{...},"event_trace_ts":{...}}
  // "p2p_perf":{"p2p":"Send","p2p_sn":7,"p2p_peer":3,"p2p_msg_size_bytes":8192,"p2p_exec_time_us":11,...}
  bool ParseOperation(std::string_view prefix) {
    record_.has_operation = true;
    record_.point_to_point = prefix == "p2p";
    return ForEachMember([this, prefix](std::string_view key) {
      if (key == "event_trace_ts") return ParseTimes();
      if (!key.starts_with(prefix)) return Skip();
      key.remove_prefix(prefix.size());
      if (key.empty()) return Take(&record_.op);
      if (key == "_sn") return Take(&record_.seq);
      if (key == "_msg_size_bytes") return Take(&record_.bytes);
      if (key == "_exec_time_us") return Take(&record_.duration_us);
      if (key == "_timing_source") return Take(&record_.timing_source);
      if (key == "_busbw_gbs") return Take(&record_.bus_gbs);
      if (key == "_peer") return Take(&record_.peer);
      return Skip();
    });
  }

  // "event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,"kernel_events":[...]}
  bool ParseTimes() {
    return ForEachMember([this](std::string_view key) {
      if (key == "coll_start_ts" || key == "p2p_start_ts") return Take(&record_.enter_us);
      if (key == "kernel_events") return ParseKernels();
      return Skip();
    });
  }

  // [{"channel_id":0,"kernel_start_ts":1752867229235181,"kernel_stop_ts":1752867229275811,"kernel_record_ts":...}]
  // The array is indexed from channel 0, so operations on other channels leave zeros in it.
  bool ParseKernels() {
    if (json_.Next() != Token::array_begin) return false;
    while (true) {
      const Token token = json_.Next();
      if (token == Token::array_end) return true;
      if (token != Token::object_begin) return false;
      int64_t start = 0, stop = 0;
      const bool whole = Members([&](std::string_view key) {
        if (key == "kernel_start_ts") return Take(&start);
        if (key == "kernel_stop_ts") return Take(&stop);
        return Skip();
      });
      if (!whole) return false;
      if (start > 0 && (record_.start_us < 0 || start < record_.start_us)) record_.start_us = start;
      record_.finish_us = std::max(record_.finish_us, stop > 0 ? stop : int64_t{-1});
    }
  }

  // v4.1: "dump_stats":{"coll_ring_drops":12,"p2p_ring_drops":0}. The names are a draft's: every counter that speaks of
  // drops is added up.
  bool ParseDumpStats() {
    return ForEachMember([this](std::string_view key) {
      if (!Contains(key, "drop")) return Skip();
      int64_t dropped = 0;
      const Token token = json_.Next();
      if (token == Token::object_begin || token == Token::array_begin) return false;
      if (token == Token::number) dropped = std::clamp<int64_t>(json_.Int(), 0, INT32_MAX);
      record_.dropped += dropped;
      return token != Token::end && token != Token::error;
    });
  }

  JsonReader json_;
  InspectorRecord& record_;
  bool has_header_ = false;
};

}  // namespace

InspectorLine ParseInspectorLine(std::string_view line, InspectorRecord* record) {
  const size_t begin = line.find('{');
  if (begin == std::string_view::npos) return Trim(line).empty() ? InspectorLine::blank : InspectorLine::foreign;
  const SourceRef source = record->source;
  *record = {};
  record->source = source;
  LineParser parser(line.substr(begin), *record);
  const bool whole = parser.ParseRecord();
  if (!parser.has_header()) return InspectorLine::foreign;
  return whole ? InspectorLine::record : parser.truncated() ? InspectorLine::cut : InspectorLine::foreign;
}

}  // namespace tacet
