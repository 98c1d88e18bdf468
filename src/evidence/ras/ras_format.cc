// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/ras/ras_import.h"
#include "evidence/ras/ras_parse.h"

namespace tacet {
namespace {

// Sentences that only the RAS subsystem writes.
constexpr std::string_view kOwnSentences[] = {
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
    "Communicator ranks have different ",
    "considered dead (unreachable via the RAS network)",
    "Missing communicator data from ",
};

bool IsPeerEvent(std::string_view line) {
  return line.size() > 28 && line[0] == '[' && line[20] == ']' && line.substr(22).starts_with("PEER_") &&
         ParseRasTime(line.substr(1, 19)) != INT64_MIN;
}

// {"nccl_version": ..., "communicators": [{"hash": ..., "secondary_hash": ...   or   {"timestamp": ..., "event":
// "PEER_..."
Recognition RecogniseJson(std::string_view json) {
  if (Contains(json, "\"event\"") && Contains(json, "\"PEER_") && Contains(json, "\"group\"")) return Recognition::yes;
  if (!Contains(json.substr(0, 4096), "\"nccl_version\"")) return Recognition::no;
  if (Contains(json, "\"communicators\"") || Contains(json, "\"communicators_count\"")) return Recognition::yes;
  return Recognition::maybe;
}

Recognition RecogniseText(std::string_view text) {
  for (const std::string_view sentence : kOwnSentences)
    if (Contains(text, sentence)) return Recognition::yes;
  bool version = false, summary = false, protocol = false;
  LineReader lines(text.substr(0, 8192));
  for (std::string_view line; lines.Next(&line);) {
    line = Trim(StripRasLinePrefix(line));
    if (IsPeerEvent(line)) return Recognition::yes;
    version |= line.starts_with("NCCL version ") && Contains(line, " compiled with CUDA ");
    summary |= line == "Job summary" || line.starts_with("Communicators...");
    protocol |= line.starts_with("SERVER PROTOCOL ");
  }
  if (version && summary) return Recognition::yes;
  return version || protocol ? Recognition::maybe : Recognition::no;
}

// Past the protocol's own lines: "SERVER PROTOCOL 2", "OK".
std::string_view SkipProtocol(std::string_view text) {
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(begin);
    const std::string_view line = Trim(text.substr(0, text.find('\n')));
    if (line != "OK" && !line.starts_with("SERVER PROTOCOL ")) return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

Recognition Recognise(std::string_view prefix, std::string_view) {
  const std::string_view body = SkipProtocol(prefix);
  if (body.starts_with('{')) return RecogniseJson(body);
  // An NCCL log may quote RAS; it is a log all the same.
  if (Contains(prefix.substr(0, 8192), " NCCL INFO ")) return Recognition::no;
  return RecogniseText(prefix);
}

}  // namespace

extern const Format kRasFormat;
const Format kRasFormat = {
    .name = "ras",
    .description = "NCCL RAS answers (2.24+): ncclras, or SET FORMAT json and STATUS sent to port 28028",
    .recognise = Recognise,
    .read = ImportRas,
    .shares_lines = true,  // pasted beside the output of the job
};

}  // namespace tacet
