// SPDX-License-Identifier: Apache-2.0
#include "evidence/ras/ras_json.h"

#include <algorithm>

#include "base/json_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

using Token = JsonReader::Token;

bool IsScalar(Token token) {
  return token == Token::string || token == Token::number || token == Token::boolean || token == Token::null;
}

class DocumentReader {
 public:
  DocumentReader(std::string_view text, uint32_t line, size_t begin, uint32_t answer, std::vector<RasRecord>& records)
      : text_(text), json_(text), line_(line), begin_(begin), answer_(answer), records_(records) {}

  RasDocument Read();

 private:
  bool ReadMember(std::string_view key);
  bool ReadCommunicators();
  bool ReadCommunicator(Token opened);
  bool ReadRanks(RasKind kind);
  bool ReadRank(Token opened, RasRecord& record);
  bool ReadRankStatus(RasRecord& record);
  bool ReadCounts(RasRecord& record);
  bool ReadPeer();
  // Calls member(key) for each member of the object just opened; false when the document ends or breaks inside. A
  // scalar in its place ("peer": null) has no members.
  template <typename Member>
  bool ForEachMember(Token opened, Member member);
  template <typename Item>
  bool ForEachItem(Token opened, Item item);
  bool Skip();
  bool TakeScalar();
  bool TakeInt(int64_t* value);
  bool TakeInt32(int32_t* value);
  bool TakeText(std::string_view* value);
  bool TakeFlag(bool* value);
  SourceRef Here();

  std::string_view text_;
  JsonReader json_;
  uint32_t line_;
  size_t counted_ = 0;  // newlines before this offset are in line_
  size_t begin_;
  uint32_t answer_;
  std::vector<RasRecord>& records_;
  RasRecord head_;  // of an answer or of a monitor event
  bool is_answer_ = false, is_event_ = false;
  size_t whole_until_ = 0;
};

SourceRef DocumentReader::Here() {
  const size_t at = json_.offset();
  if (at > counted_) {
    line_ += static_cast<uint32_t>(std::count(text_.begin() + counted_, text_.begin() + at, '\n'));
    counted_ = at;
  }
  return {FileId{}, line_, begin_ + at};
}

bool DocumentReader::Skip() {
  json_.SkipValue();
  return !json_.truncated();
}

bool DocumentReader::TakeScalar() { return IsScalar(json_.Next()); }

bool DocumentReader::TakeInt(int64_t* value) {
  if (!TakeScalar()) return false;
  *value = json_.Int();
  return true;
}

bool DocumentReader::TakeInt32(int32_t* value) {
  int64_t wide = 0;
  if (!TakeInt(&wide)) return false;
  *value = wide < 0 || wide > INT32_MAX ? -1 : static_cast<int32_t>(wide);
  return true;
}

bool DocumentReader::TakeText(std::string_view* value) {
  if (!TakeScalar()) return false;
  *value = json_.raw();
  return true;
}

bool DocumentReader::TakeFlag(bool* value) {
  if (!TakeScalar()) return false;
  *value = json_.Bool();
  return true;
}

template <typename Member>
bool DocumentReader::ForEachMember(Token opened, Member member) {
  if (opened != Token::object_begin) return IsScalar(opened);
  while (true) {
    const Token token = json_.Next();
    if (token == Token::object_end) return true;
    if (token != Token::key || !member(json_.raw())) return false;
  }
}

template <typename Item>
bool DocumentReader::ForEachItem(Token opened, Item item) {
  if (opened != Token::array_begin) return IsScalar(opened);
  while (true) {
    const Token token = json_.Next();
    if (token == Token::array_end) return true;
    if (!item(token)) return false;
  }
}

// "status": {"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false, "abort_flag": false}
// "status": {"unresponsive": true, "considered_dead": false}
bool DocumentReader::ReadRankStatus(RasRecord& record) {
  bool finalizing = false, destroying = false, aborting = false;
  const bool answered = record.kind == RasKind::rank_counts;
  const bool whole = ForEachMember(json_.Next(), [&](std::string_view key) {
    if (key == "init_state") return TakeInt(&record.value);
    if (key == "async_error") return TakeInt(&record.value2);
    if (key == "finalize_called") return TakeFlag(&finalizing);
    if (key == "destroy_flag") return TakeFlag(&destroying);
    if (key == "abort_flag") return TakeFlag(&aborting);
    if (key == "unresponsive") return TakeFlag(&record.unresponsive);
    if (key == "considered_dead") return TakeFlag(&record.dead);
    return Skip();
  });
  // The words of the text form, by the same precedence.
  if (answered)
    record.status = aborting ? "ABORT" : finalizing || destroying ? "FINALIZE" : record.value == 0 ? "RUNNING" : "INIT";
  else if (!record.unresponsive && !record.dead)
    record.status = "NOCOMM";
  return whole;
}

// "collective_counts": {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 14}
bool DocumentReader::ReadCounts(RasRecord& record) {
  return ForEachMember(json_.Next(), [&](std::string_view key) {
    RasCount count{key, 0};
    count.source = Here();
    if (!TakeInt(&count.launched)) return false;
    if (record.counts.size() < 64) record.counts.push_back(count);
    return true;
  });
}

// {"rank": 0, "host": "192.0.2.2", "pid": 410, "cuda_dev": 0, "nvml_dev": 0, "status": {...}, "collective_counts":
// {...}}
bool DocumentReader::ReadRank(Token opened, RasRecord& record) {
  return ForEachMember(opened, [&](std::string_view key) {
    if (key == "rank") {
      record.source = Here();  // the line that says whose record it is, not the one that opens it
      return TakeInt32(&record.rank);
    }
    if (key == "host") return TakeText(&record.host);
    if (key == "pid") return TakeInt(&record.pid);
    if (key == "cuda_dev") return TakeInt32(&record.device);
    if (key == "status") return ReadRankStatus(record);
    if (key == "collective_counts") return ReadCounts(record);
    return Skip();
  });
}

bool DocumentReader::ReadRanks(RasKind kind) {
  return ForEachItem(json_.Next(), [&](Token token) {
    RasRecord record;
    record.kind = kind;
    record.answer = answer_;
    record.source = Here();
    if (!ReadRank(token, record)) return false;  // half a rank would tell half a truth
    records_.push_back(std::move(record));
    whole_until_ = json_.end_offset();
    return true;
  });
}

// {"hash": "0x2208462a8d4cd0b9", "secondary_hash": "0x9504:0x3fb0", "size": 2, "ranks_count": 2, "missing_ranks_count":
// 0,
//  "ranks": [...], "missing_ranks": [...]}
bool DocumentReader::ReadCommunicator(Token opened) {
  const size_t first = records_.size();
  uint64_t comm = 0;
  int32_t size = -1;
  const bool whole = ForEachMember(opened, [&](std::string_view key) {
    std::string_view hash;
    if (key == "hash") return TakeText(&hash) && (TakeHex(hash, &comm), true);
    if (key == "size") return TakeInt32(&size);
    if (key == "ranks") return ReadRanks(RasKind::rank_counts);
    if (key == "missing_ranks") return ReadRanks(RasKind::rank_absent);
    return Skip();
  });
  for (size_t i = first; i < records_.size(); ++i) {
    records_[i].comm = comm;
    records_[i].size = size;
  }
  return whole;
}

bool DocumentReader::ReadCommunicators() {
  return ForEachItem(json_.Next(), [&](Token token) { return ReadCommunicator(token); });
}

// "peer": {"host": "172.16.64.245", "pid": 1524345, "cuda_devs": [1], "nvml_devs": [1]}
// "peer": {"addr": "172.16.64.245<48213>"}
bool DocumentReader::ReadPeer() {
  return ForEachMember(json_.Next(), [&](std::string_view key) {
    if (key == "host") return TakeText(&head_.host);
    if (key == "addr") {
      if (!TakeText(&head_.host)) return false;
      head_.host = head_.host.substr(0, head_.host.find('<'));
      return true;
    }
    if (key == "pid") return TakeInt(&head_.pid);
    if (key == "cuda_devs") {
      int devices = 0;
      const bool whole = ForEachItem(json_.Next(), [&](Token token) {
        ++devices;
        head_.device = static_cast<int32_t>(std::clamp<int64_t>(json_.Int(), -1, INT32_MAX));
        return IsScalar(token);
      });
      if (devices != 1) head_.device = -1;
      return whole;
    }
    return Skip();
  });
}

bool DocumentReader::ReadMember(std::string_view key) {
  std::string_view text;
  if (key == "nccl_version") {
    is_answer_ = true;
    return TakeText(&head_.text);
  }
  if (key == "communicators") {
    is_answer_ = true;
    return ReadCommunicators();
  }
  if (key == "event") {
    is_event_ = TakeText(&head_.text) && head_.text.starts_with("PEER_");
    return is_event_;
  }
  if (key == "timestamp") {
    if (!TakeText(&text)) return false;
    head_.wall_ns = ParseRasTime(text);
    return true;
  }
  if (key == "peer") return ReadPeer();
  if (key == "details") return TakeText(&head_.status);
  if (key == "ras") {
    return ForEachMember(
        json_.Next(), [&](std::string_view name) { return name == "timeouts_count" ? TakeInt(&head_.count) : Skip(); });
  }
  return Skip();
}

RasDocument DocumentReader::Read() {
  const size_t first = records_.size();
  head_.kind = RasKind::answer;
  head_.answer = answer_;
  head_.source = {FileId{}, line_, begin_};
  records_.push_back(head_);  // keeps its place before the ranks; filled below
  const bool whole = ForEachMember(json_.Next(), [&](std::string_view key) { return ReadMember(key); });
  RasDocument document;
  document.truncated = !whole && json_.truncated();
  document.is_ras = is_answer_ || is_event_;
  document.is_answer = is_answer_ && !is_event_;
  document.end = json_.end_offset();
  document.understood = whole ? document.end : whole_until_;
  if (!document.is_ras || (is_event_ && !whole)) {
    records_.resize(first);
    document.understood = 0;
    return document;
  }
  if (is_event_) {
    head_.kind = RasKind::peer_event;
    records_.resize(first + 1);
  }
  if (!is_event_ && head_.count > 0) {
    RasRecord& timeouts = records_.emplace_back();
    timeouts.kind = RasKind::timeouts;
    timeouts.answer = answer_;
    timeouts.count = head_.count;
    timeouts.source = head_.source;
  }
  for (size_t i = first + 1; i < records_.size(); ++i) records_[i].wall_ns = head_.wall_ns;
  records_[first] = head_;
  return document;
}

}  // namespace

RasDocument ParseRasDocument(std::string_view text, size_t begin, uint32_t line, uint32_t answer,
                             std::vector<RasRecord>& records) {
  RasDocument document = DocumentReader(text.substr(begin), line, begin, answer, records).Read();
  document.end += begin;
  document.understood += begin;
  return document;
}

}  // namespace tacet
