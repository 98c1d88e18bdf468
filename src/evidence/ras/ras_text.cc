// SPDX-License-Identifier: Apache-2.0
#include "evidence/ras/ras_text.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

// "GPU 0 managed by process 410 on node 192.0.2.2", "GPU 1 (NVML 5) managed by process 7 on node fe80::1",
// "[process information not found]"
bool TakeWhere(std::string_view text, RasRecord& record) {
  if (text.starts_with("[process information")) return true;
  if (!TakeLiteral(text, "GPU ") || !TakeNumber(text, &record.device)) return false;
  const auto process = After(text, "managed by process ");
  if (!process) return false;
  std::string_view rest = *process;
  if (!TakeNumber(rest, &record.pid) || !TakeLiteral(rest, " on node ")) return false;
  record.host = TakeWord(rest);
  return true;
}

// "Process 3487984 on node 172.16.64.213 managing GPU 5", "... managing GPUs 0,1 (NVML 2,3) peer not responding for 5s"
bool TakeProcess(std::string_view& text, RasRecord& record) {
  std::string_view rest = text;
  if (!TakeLiteral(rest, "Process ") || !TakeNumber(rest, &record.pid) || !TakeLiteral(rest, " on node ")) return false;
  record.host = TakeWord(rest);
  if (TakeLiteral(rest, " managing GPU")) {
    TakeLiteral(rest, "s");
    std::string_view devices = TakeWord(rest);
    TakeNumber(devices, &record.device);
    if (!devices.empty()) record.device = -1;  // several: none of them is the process's own
    if (TakeLiteral(rest, " (NVML ")) {
      TakeUntil(rest, ')');
      TakeLiteral(rest, ")");
    }
  }
  text = Trim(rest);
  return true;
}

}  // namespace

RasLine RasTextReader::Keep(RasRecord&& record, SourceRef source) {
  record.source = source;
  record.answer = answers_ == 0 ? 0 : answers_ - 1;
  records_.push_back(std::move(record));
  return RasLine::understood;
}

RasRecord& RasTextReader::Add(RasKind kind, SourceRef source) {
  Keep({.kind = kind}, source);
  return records_.back();
}

void RasTextReader::BeginAnswer(std::string_view version, SourceRef source) {
  ++answers_;
  paragraph_ = Paragraph::none;
  topic_ = Topic::none;
  comm_ = 0;
  group_ = -1;
  Add(RasKind::answer, source).text = version;
}

// NCCL version 2.27.7 compiled with CUDA 12.9
// Job summary
// Communicators... (0.00s)
// Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
// DEAD
RasLine RasTextReader::ReadHeading(std::string_view line, SourceRef source) {
  std::string_view rest = line;
  if (TakeLiteral(rest, "NCCL version ")) {
    const std::string_view version = TakeWord(rest);
    if (!rest.starts_with(" compiled with CUDA")) return RasLine::unknown;
    BeginAnswer(version, source);
    return RasLine::understood;
  }
  const auto enter = [&](Paragraph paragraph) {
    paragraph_ = paragraph;
    topic_ = Topic::none;
    return RasLine::ignored;
  };
  if (line == "Job summary") return enter(Paragraph::summary);
  if (line.starts_with("Communicators...")) return enter(Paragraph::none);
  if (line.starts_with("Group ") && Contains(line, "Comms")) return enter(Paragraph::table);
  if (line == "Errors" || line == "Warnings" || line == "TIMEOUT") return enter(Paragraph::none);
  if (line == "INCOMPLETE") return enter(Paragraph::silent);
  if (line == "DEAD") return enter(Paragraph::dead);
  if (line.find_first_not_of('=') == std::string_view::npos || line == "OK" || line.starts_with("SERVER PROTOCOL") ||
      line.starts_with("CUDA runtime version "))
    return RasLine::ignored;
  if (TakeLiteral(rest, "ERROR: ")) {
    Add(RasKind::refusal, source).text = rest;
    return RasLine::understood;
  }
  return RasLine::unknown;
}

//       4          8            1         32       32          nodes, per node, per process, processes, GPUs
//       4         30           31                              nodes, processes, GPUs, below "(total) (total) (total)"
//       3          8            1                              nodes that are alike, below "per node  per process"
//   Node 10.0.0.7 running processes 811,812
RasLine RasTextReader::ReadSummaryLine(std::string_view line, SourceRef source) {
  int64_t columns[5] = {};
  int found = 0;
  std::string_view rest = line;
  for (SkipBlanks(rest); found < 5 && TakeNumber(rest, &columns[found]); SkipBlanks(rest)) ++found;
  if (found > 0) {
    if (!rest.empty()) return RasLine::unknown;
    if (!totals_ || found < 3) return RasLine::ignored;
    RasRecord& record = Add(RasKind::job_size, source);
    record.count = columns[found - 2];
    record.value = columns[found - 1];
    return RasLine::understood;
  }
  if (line.starts_with("(total)") || line.starts_with("per node") || line.starts_with("per process")) {
    totals_ = line[0] == '(';
    return RasLine::ignored;
  }
  for (const std::string_view head : {"Nodes ", "Processes ", "The outlier node", "Node "})
    if (line.starts_with(head)) return RasLine::ignored;
  return RasLine::unknown;
}

//     0         1         4         8        32        32   RUNNING  MISMATCH
//     1         3         2       4-8        12        36      INIT  INCOMPLETE,MISMATCH
RasLine RasTextReader::ReadGroupRow(std::string_view line, SourceRef source) {
  if (line.starts_with("#  in group")) return RasLine::ignored;
  RasRecord row;
  int32_t nodes = 0;
  std::string_view rest = line;
  if (!TakeNumber(rest, &row.group)) return RasLine::unknown;
  SkipBlanks(rest);
  if (!TakeNumber(rest, &row.count)) return RasLine::unknown;
  SkipBlanks(rest);
  if (!TakeNumber(rest, &nodes)) return RasLine::unknown;
  TakeWord(rest);  // ranks per node: "8" or "4-8"
  SkipBlanks(rest);
  if (!TakeNumber(rest, &row.size)) return RasLine::unknown;
  TakeWord(rest);  // ranks in group
  row.status = TakeWord(rest);
  row.text = TakeWord(rest);
  if (row.text.empty()) return RasLine::unknown;
  row.kind = RasKind::group_row;
  return Keep(std::move(row), source);
}

// #0-0 (27a079b828ff1a75) MISMATCH
RasLine RasTextReader::ReadCommunicatorHeading(std::string_view line) {
  std::string_view rest = line;
  int32_t group = -1, index = 0;
  uint64_t comm = 0;
  if (!TakeLiteral(rest, "#") || !TakeNumber(rest, &group) || !TakeLiteral(rest, "-") || !TakeNumber(rest, &index) ||
      !TakeLiteral(rest, " (") || !TakeHex(rest, &comm) || !TakeLiteral(rest, ") "))
    return RasLine::unknown;
  group_ = group;
  comm_ = comm;
  topic_ = Topic::none;
  shared_value_ = -1;
  paragraph_ = rest == "INCOMPLETE" ? Paragraph::incomplete : rest == "ERROR" ? Paragraph::error : Paragraph::mismatch;
  return RasLine::understood;
}

// Rank 0 has launched up to operation 42 -- GPU 0 managed by process 410 on node 192.0.2.2
// Rank 7 has not launched any operations -- [process information not found]
// Rank 3 has status INIT -- GPU 3 managed by process 414 on node 192.0.2.2
// Rank 5 reported System error -- GPU 5 managed by process 416 on node 192.0.2.2
// Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213      (what it did stands in the line above)
RasLine RasTextReader::ReadRank(std::string_view line, SourceRef source) {
  std::string_view rest = line;
  RasRecord record;
  if (!TakeLiteral(rest, "Rank ") || !TakeNumber(rest, &record.rank) || comm_ == 0) return RasLine::unknown;
  const size_t dash = rest.find(" -- ");
  std::string_view said = Trim(rest.substr(0, dash));
  if (dash != std::string_view::npos && !TakeWhere(rest.substr(dash + 4), record)) return RasLine::unknown;
  record.comm = comm_;
  record.group = group_;
  record.op = op_;
  if (TakeLiteral(said, "has launched up to operation ")) {
    record.kind = RasKind::rank_launched;
    if (!TakeNumber(said, &record.value)) return RasLine::unknown;
  } else if (said == "has not launched any operations") {
    record.kind = RasKind::rank_launched;
    record.value = 0;
  } else if (TakeLiteral(said, "has status ")) {
    record.kind = RasKind::rank_status;
    record.status = said;
  } else if (TakeLiteral(said, "reported ")) {
    record.kind = RasKind::rank_error;
    record.text = said;
  } else if (!said.empty()) {
    return RasLine::unknown;
  } else if (paragraph_ == Paragraph::incomplete) {
    record.kind = RasKind::rank_absent;
    record.unresponsive = true;
  } else if (topic_ == Topic::counts && shared_value_ >= 0) {
    record.kind = RasKind::rank_launched;
    record.value = shared_value_;
  } else if (topic_ == Topic::status) {
    record.kind = RasKind::rank_status;
    record.status = shared_text_;
  } else if (topic_ == Topic::errors) {
    record.kind = RasKind::rank_error;
    record.text = shared_text_;
  } else {
    return RasLine::unknown;
  }
  return Keep(std::move(record), source);
}

// 26 ranks have launched up to operation 6650
// 2 ranks have not launched any operations
// 3 ranks have status INIT
// 4 ranks reported Remote process error
RasLine RasTextReader::ReadRanks(std::string_view line, SourceRef source) {
  std::string_view rest = line;
  int64_t count = 0;
  if (!TakeNumber(rest, &count) || !TakeLiteral(rest, " ranks ") || comm_ == 0) return RasLine::unknown;
  RasRecord record;
  record.count = count;
  if (TakeLiteral(rest, "have launched up to operation ")) {
    record.kind = RasKind::ranks_launched;
    if (!TakeNumber(rest, &record.value)) return RasLine::unknown;
  } else if (rest == "have not launched any operations") {
    record.kind = RasKind::ranks_launched;
    record.value = 0;
  } else if (TakeLiteral(rest, "have status ")) {
    record.kind = RasKind::ranks_status;
    record.status = shared_text_ = rest;
  } else if (TakeLiteral(rest, "reported ")) {
    record.kind = RasKind::ranks_error;
    record.text = shared_text_ = rest;
  } else {
    return RasLine::unknown;
  }
  shared_value_ = record.value;
  record.comm = comm_;
  record.group = group_;
  record.op = op_;
  return Keep(std::move(record), source);
}

// The missing ranks: 21,22,30        The unknown ranks: 4,5
RasLine RasTextReader::ReadRankList(std::string_view list, SourceRef source) {
  int32_t rank = 0;
  while (TakeNumber(list, &rank)) {
    RasRecord& record = Add(RasKind::rank_absent, source);
    record.comm = comm_;
    record.group = group_;
    record.rank = rank;
    record.unresponsive = paragraph_ == Paragraph::incomplete;
    if (!TakeLiteral(list, ",")) break;
  }
  return list.empty() ? RasLine::understood : RasLine::unknown;
}

RasLine RasTextReader::ReadProcess(std::string_view line, SourceRef source) {
  if (paragraph_ != Paragraph::silent && paragraph_ != Paragraph::dead) return RasLine::unknown;
  RasRecord record;
  if (!TakeProcess(line, record)) return RasLine::unknown;
  record.kind = paragraph_ == Paragraph::dead ? RasKind::process_dead : RasKind::process_silent;
  record.dead = paragraph_ == Paragraph::dead;
  record.unresponsive = true;
  return Keep(std::move(record), source);
}

// [2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1
// [2025-12-19 13:06:12] PEER_UNRESPONSIVE: Process 9 on node 10.0.0.2 managing GPU 1 peer not responding for 5s
// (keepalive warning) [2025-12-19 13:06:12] PEER_DISCONNECTED: 10.0.0.2<48213> peer closed connection during send
// operation
RasLine RasTextReader::ReadPeerEvent(std::string_view line, SourceRef source) {
  if (line.size() < 24 || line[0] != '[' || line[20] != ']') return RasLine::unknown;
  const int64_t when = ParseRasTime(line.substr(1, 19));
  std::string_view rest = line.substr(21);
  SkipBlanks(rest);
  if (when == INT64_MIN || !rest.starts_with("PEER_")) return RasLine::unknown;
  RasRecord& record = Add(RasKind::peer_event, source);
  record.wall_ns = when;
  record.text = TakeUntil(rest, ':');
  TakeLiteral(rest, ":");
  SkipBlanks(rest);
  if (!TakeProcess(rest, record)) record.host = rest.substr(0, rest.find_first_of("< "));
  record.status = rest;
  return RasLine::understood;
}

// Missing communicator data from 1 job process
// 1 job process is considered dead (unreachable via the RAS network)
// Communicator ranks have different AllReduce operation counts
// Encountered 2 communication timeouts while gathering communicator data
RasLine RasTextReader::ReadSentence(std::string_view line, SourceRef source) {
  std::string_view rest = line;
  int64_t count = 0;
  if (TakeLiteral(rest, "Communicator ranks have different ")) {
    topic_ = rest == "status" ? Topic::status : Topic::counts;
    op_ = rest.substr(0, rest.find(' '));
    if (op_ == "collective" || topic_ == Topic::status) op_ = {};
    shared_value_ = -1;
    return RasLine::understood;
  }
  if (line.starts_with("Initialization error") || line.starts_with("Asynchronous error")) {
    topic_ = Topic::errors;
    return RasLine::understood;
  }
  if (TakeLiteral(rest, "Missing communicator data from ")) {
    if (!TakeNumber(rest, &count)) return RasLine::unknown;
    if (!Contains(rest, "job process")) return RasLine::understood;
    Add(RasKind::process_silent, source).count = count;
    return RasLine::understood;
  }
  if (paragraph_ == Paragraph::dead && TakeNumber(rest, &count) && rest.starts_with(" job process")) {
    Add(RasKind::process_dead, source).count = count;
    return RasLine::understood;
  }
  if (TakeLiteral(rest, "Encountered ") && TakeNumber(rest, &count)) {
    Add(RasKind::timeouts, source).count = count;
    return RasLine::understood;
  }
  if (line.starts_with("No communicator data collected")) {
    Add(RasKind::no_communicators, source);
    return RasLine::understood;
  }
  if (comm_ != 0 && (TakeLiteral(rest, "The missing rank") || TakeLiteral(rest, "The unknown rank"))) {
    TakeLiteral(rest, "s");
    return TakeLiteral(rest, ": ") ? ReadRankList(rest, source) : RasLine::unknown;
  }
  return line.starts_with("[could not find information on ") ? RasLine::ignored : RasLine::unknown;
}

RasLine RasTextReader::Read(std::string_view whole, SourceRef source) {
  const std::string_view line = Trim(StripRasLinePrefix(whole));
  if (line.empty()) return RasLine::ignored;
  if (line[0] == '#' && paragraph_ != Paragraph::table) return ReadCommunicatorHeading(line);
  if (line[0] == '[')
    if (const RasLine read = ReadPeerEvent(line, source); read != RasLine::unknown) return read;
  if (line.starts_with("Rank ")) return ReadRank(line, source);
  if (line.starts_with("Process ")) return ReadProcess(line, source);
  if (const RasLine read = ReadHeading(line, source); read != RasLine::unknown) return read;
  if (paragraph_ == Paragraph::summary)
    if (const RasLine read = ReadSummaryLine(line, source); read != RasLine::unknown) return read;
  if (paragraph_ == Paragraph::table)
    if (const RasLine read = ReadGroupRow(line, source); read != RasLine::unknown) return read;
  if (line[0] == '#') return ReadCommunicatorHeading(line);
  if (const RasLine read = ReadRanks(line, source); read != RasLine::unknown) return read;
  return ReadSentence(line, source);
}

}  // namespace tacet
