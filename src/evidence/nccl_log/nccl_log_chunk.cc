// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_chunk.h"

#include <algorithm>

namespace tacet {

void NcclLogChunk::Read(std::string_view text) {
  lines.clear();
  connections.clear();
  bytes = text.size();
  ignored_bytes = foreign_bytes = perhaps_continued_bytes = 0;
  has_messages = false;
  NcclLogWalker walker(text);
  NcclCallReader call_reader;
  line_count = 0;
  while (const NcclLogLine* line = walker.Next()) {
    line_count = line->number;
    switch (line->kind) {
      case NcclLineKind::message: has_messages = true; [[fallthrough]];
      case NcclLineKind::version: Keep(*line, call_reader); break;
      case NcclLineKind::blank:
      case NcclLineKind::continuation:
      case NcclLineKind::framework: ignored_bytes += line->bytes; break;
      case NcclLineKind::foreign:
        (!has_messages && MayContinueMessage(line->message) ? perhaps_continued_bytes : foreign_bytes) += line->bytes;
        break;
    }
  }
  in_several_lines = walker.in_several_lines();
  writers = walker.writers();
}

// The same process has just spoken, at the same time and not of an error whose end is awaited.
bool NcclLogChunk::ChangesNothing(const NcclLogLine& line, NcclTopic topic) const {
  if (topic != NcclTopic::ignored || lines.empty()) return false;
  const NcclChunkLine& before = lines.back();
  return before.line.kind == NcclLineKind::message && before.line.writer == line.writer &&
         before.line.wall_ns == line.wall_ns && before.topic != NcclTopic::propagation;
}

// Adds the line to one of the last ones where it differs in its channel only: a rank's two neighbours take turns.
bool NcclLogChunk::KeepConnection(const NcclLogLine& line) {
  constexpr size_t kLookedBack = 3;  // as far as NcclLogChannels::TakeConnection does
  NcclConnection connection;
  if (!ParseChannelConnection(line.message, &connection)) return false;
  const size_t from = lines.size() - std::min(lines.size(), kLookedBack);
  for (size_t i = lines.size(); i-- > from;) {
    NcclChunkLine& before = lines[i];
    if (before.connection == NcclChunkLine::kNoConnection || before.line.writer != line.writer ||
        before.line.tid != line.tid || before.line.wall_ns != line.wall_ns)
      break;
    NcclConnectionLines& known = connections[before.connection];
    if (!IsSameWay(known.connection, connection)) continue;
    known.channels.Add(connection.channel);
    ++known.lines;
    before.line.bytes += line.bytes;
    return true;
  }
  NcclChunkLine& kept = lines.emplace_back();
  kept.line = line;
  kept.topic = NcclTopic::connection;
  kept.connection = static_cast<uint32_t>(connections.size());
  NcclConnectionLines& added = connections.emplace_back();
  added.connection = connection;
  added.channels.Add(connection.channel);
  return true;
}

void NcclLogChunk::Keep(const NcclLogLine& line, NcclCallReader& call_reader) {
  NcclTopic topic = NcclTopic::perhaps;
  if (line.kind == NcclLineKind::message && line.level == NcclLevel::info && KeepConnection(line)) return;
  if (line.kind == NcclLineKind::message && line.level != NcclLevel::warn) {
    topic = line.level == NcclLevel::info ? ClassifyInfo(line.message) : ClassifyCall(line.message);
    if (ChangesNothing(line, topic)) {
      ignored_bytes += line.bytes;
      return;
    }
  }
  NcclChunkLine& kept = lines.emplace_back();
  kept.line = line;
  kept.topic = topic;
  if (topic == NcclTopic::call) kept.call_fits = call_reader.Parse(line.message, line.writer, &kept.call);
  if (topic == NcclTopic::api_call) kept.call_fits = ParseApiCall(line.message, &kept.call);
}

std::vector<std::string_view> SplitLines(std::string_view text, size_t part_bytes) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t newline = part_bytes < text.size() ? text.find('\n', part_bytes) : std::string_view::npos;
    const size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
    parts.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return parts;
}

}  // namespace tacet
