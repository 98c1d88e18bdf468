// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_line.h"

#include <algorithm>
#include <cstring>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMaxPrefix = 1024;      // NCCL's own buffer for prefix and format
constexpr size_t kMaxWriters = 1 << 17;  // no job has more processes; a made-up file must not cost memory without end

bool IsHostChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

struct LevelWord {
  std::string_view word;
  NcclLevel level;
};
constexpr LevelWord kLevels[] = {
    {"INFO ", NcclLevel::info}, {"WARN ", NcclLevel::warn}, {"TRACE ", NcclLevel::trace}, {"CALL ", NcclLevel::call}};

bool IsSourcePlace(std::string_view text);
// Other programs have files of C++, too; these folders together are NCCL's.
bool IsPlaceInNccl(std::string_view text);

// Where "NCCL INFO " starts, and its length.
struct LevelPlace {
  size_t at = std::string_view::npos;
  size_t length = 0;
  NcclLevel level = NcclLevel::info;
  bool bare = false;  // NCCL before 2.3 does not write its name
};
LevelPlace FindLevel(std::string_view text) {
  text = text.substr(0, kMaxPrefix);
  for (size_t at = text.find("NCCL "); at != std::string_view::npos; at = text.find("NCCL ", at + 5)) {
    if (at > 0 && std::string_view(" :>]").find(text[at - 1]) == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + 5);
    for (const LevelWord& entry : kLevels)
      if (rest.starts_with(entry.word)) return {at, 5 + entry.word.size(), entry.level};
  }
  // host:18553:18553 [0] INFO NET : Using interface enp3s0:192.168.144.103<0>
  // host:18553:18611 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out
  // include/socket.h:344 WARN Socket creation failed : Address family not supported by protocol
  if (const size_t warn = text.find(" WARN "); warn != std::string_view::npos && IsPlaceInNccl(text.substr(0, warn)))
    return {warn + 1, 5, NcclLevel::warn, true};
  const size_t close = text.find("] ");
  if (close == std::string_view::npos || close == 0 || !IsDigit(text[close - 1])) return {};
  if (text.substr(close + 2).starts_with("INFO ")) return {close + 2, 5, NcclLevel::info, true};
  const size_t warn = text.find(" WARN ", close);
  if (warn == std::string_view::npos || warn < close + 5 ||
      text.substr(close + 2, warn - close - 2).find(' ') != std::string_view::npos)
    return {};
  return {warn + 1, 5, NcclLevel::warn, true};
}

// Takes the digits at the end of `text` off as a number.
bool TakeNumberBack(std::string_view& text, int64_t* value) {
  size_t from = text.size();
  while (from > 0 && IsDigit(text[from - 1]) && text.size() - from < 18) --from;
  std::string_view digits = text.substr(from);
  if (digits.empty() || !TakeNumber(digits, value)) return false;
  text = text.substr(0, from);
  return true;
}

bool TakeCharBack(std::string_view& text, char c) {
  if (text.empty() || text.back() != c) return false;
  text.remove_suffix(1);
  return true;
}

// The host of "[2026-03-13 22:26:02] node-1:XXXX" and "node-1:<pid>:<tid>", where somebody took the numbers out; empty
// where the last word is anything else.
std::string_view HostWithoutPid(std::string_view text) {
  const size_t blank = text.rfind(' ');
  const std::string_view word = blank == std::string_view::npos ? text : text.substr(blank + 1);
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == word.size()) return {};
  const std::string_view host = word.substr(0, colon), mask = word.substr(colon + 1);
  if (host.find_first_not_of("0123456789.-") == std::string_view::npos) return {};  // a time of day
  if (!std::all_of(host.begin(), host.end(), IsHostChar)) return {};
  return mask.find_first_not_of("XxNn*#?_-<>[]:pidtPIDT") == std::string_view::npos ? host : std::string_view();
}

// "init.cc:1247", "transport/net_ib.cc:1204"
bool IsSourcePlace(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size() || text.find(' ') != std::string_view::npos)
    return false;
  if (text.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos) return false;
  const std::string_view file = text.substr(0, colon);
  return file.ends_with(".cc") || file.ends_with(".cu") || file.ends_with(".h") || file.ends_with(".c");
}

bool IsPlaceInNccl(std::string_view text) {
  if (!IsSourcePlace(text)) return false;
  for (const std::string_view folder :
       {"include/", "transport/", "misc/", "graph/", "bootstrap.c", "init.c", "proxy.c"})
    if (text.starts_with(folder)) return true;
  return false;
}

bool IsMatrixRow(std::string_view text) {
  std::string_view word = TakeWord(text);
  SkipBlanks(text);
  return !word.empty() && text.starts_with("| ");
}

// The other lines of "Failed to bind NVLink SHARP (NVLS) Multicast memory ...".
bool IsWarningTail(std::string_view text) {
  return text.starts_with("This is usually caused by a system or configuration error") ||
         text.starts_with("Disable NVLS (");
}

bool OpensSeveralLines(const NcclLogLine& line) {
  if (line.message.empty()) return false;
  if (line.level == NcclLevel::warn) return line.message.starts_with("Failed to bind NVLink");
  return line.message[0] == 'E' && line.message.starts_with("Enabled NCCL Func");
}

// "[W1115 00:13:58.2136" and, from torchrun, "W1115 00:13:58.213000 580 torch/distributed/run.py:852]".
bool IsGlogLine(std::string_view text) {
  const bool bracket = text.starts_with("[");
  if (bracket) text.remove_prefix(1);
  if (text.size() < 6 || std::string_view("WEIF").find(text[0]) == std::string_view::npos) return false;
  for (int i = 1; i <= 4; ++i)
    if (!IsDigit(text[i])) return false;
  return text[5] == ' ' && (bracket || Contains(text.substr(0, 80), " torch/"));
}

// [W1115 00:13:58.213686697 Utils.hpp:137] Warning: Environment variable TORCH_NCCL_TRACE_BUFFER_SIZE is deprecated
// frame #1: c10d::ProcessGroupNCCL::checkForNCCLErrorsInternal(std::shared_ptr<c10d::NCCLComm>&) + 0x380
// ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
// [2026-11-15 00:13:58] NCCL Inspector Environment Variables:
bool IsFrameworkLine(std::string_view text) {
  if (IsGlogLine(text)) return true;
  const std::string_view start = text.substr(0, 200);
  if (text.starts_with("[20")) return Contains(start, "] NCCL Inspector") || Contains(start, "]   NCCL_INSPECTOR");
  for (const std::string_view opening :
       {"frame #", "Traceback (most recent call last)", "  File \"", "terminate called",
        "  what():", "Last error:", "Exception raised from",
        "ncclRemoteError:", "ncclSystemError:", "ncclInternalError:", "ncclUnhandledCudaError:", "ncclInvalidUsage:",
        "ncclInvalidArgument:", "torch.distributed.", "WARNING:torch", "INFO:torch", "ERROR:torch"})
    if (text.starts_with(opening)) return true;
  return Contains(start, "site-packages/torch/") || Contains(start, "dist-packages/torch/");
}

}  // namespace

bool MayContinueMessage(std::string_view text) { return IsMatrixRow(text) || IsWarningTail(text); }

uint32_t NcclWriterTable::Take(const NcclWriter& writer) {
  uint64_t hash =
      std::hash<std::string_view>()(writer.host) ^ (static_cast<uint64_t>(writer.pid) * 0x9e3779b97f4a7c15u);
  const LauncherLabel& label = writer.label;
  const bool nameless = writer.pid < 0;  // only a label tells such writers apart
  if (nameless) hash ^= static_cast<uint64_t>(label.value + 1) << 32;
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    NcclWriter& known = all_[it->second];
    if (known.host != writer.host || known.pid != writer.pid || (nameless && known.label.value != label.value))
      continue;
    if (nameless && known.device != writer.device) continue;
    if (writer.label_changed || known.label.kind != label.kind || known.label.value != label.value)
      known.label_changed = true;
    known.device = std::max(known.device, writer.device);
    return it->second;
  }
  if (all_.size() >= kMaxWriters) return kNone;
  const auto index = static_cast<uint32_t>(all_.size());
  all_.push_back(writer);
  by_hash_.emplace(hash, index);
  return index;
}

// [2026-11-15 00:13:56] vm:580:580 [0] NCCL INFO cudaDriverVersion 13000
// [1,3]<stdout>:node01:4711:4799 [3] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer ...
// node01:4711:4799 [3] transport/net_ib.cc:1204 (ncclIbTest) NCCL WARN NET/IB: Got completion from peer ...
// node01:4711:4711 NCCL CALL ncclAllReduce(7f2a00000000,7f2a00000000,1024,7,0,0,0x55d0,0x7f10)
// NCCL INFO AllReduce: opCount 42 bytes 104857600 datatype 7 op 0
bool NcclLogWalker::ReadPrefix(std::string_view text, Prefix* prefix) {
  const LevelPlace place = FindLevel(text);
  if (place.at == std::string_view::npos || text[0] == '{') return false;  // JSON that quotes a log is no log
  NcclLogLine& line = prefix->line;
  line = {};
  std::string_view head = text.substr(0, place.at);
  while (!head.empty() && head.back() == ' ') head.remove_suffix(1);
  const LauncherLabel label = ParseLauncherLabel(text);
  std::string_view rest = head;
  if (place.level == NcclLevel::warn || place.level == NcclLevel::trace) {
    if (const size_t close = rest.rfind("] "); close != std::string_view::npos) {
      line.source = Trim(rest.substr(close + 2));
      rest = rest.substr(0, close + 1);
    } else if (IsSourcePlace(rest)) {  // nothing but the line was pasted
      line.source = rest;
      rest = {};
    }
  }
  const std::string_view before = rest;
  int64_t device = -1, pid = -1;
  size_t host = 0;
  if (TakeCharBack(rest, ']') && TakeNumberBack(rest, &device) && TakeCharBack(rest, '[')) TakeCharBack(rest, ' ');
  if (TakeNumberBack(rest, &line.tid) && TakeCharBack(rest, ':') && TakeNumberBack(rest, &pid) &&
      TakeCharBack(rest, ':')) {
    host = rest.size();
    while (host > 0 && IsHostChar(rest[host - 1])) --host;
    // A colour code glued to the name: its letters are no part of it.
    if (host > 1 && rest[host - 1] == '[' && rest[host - 2] == '\x1b')
      host = std::min(rest.size(), rest.find_first_not_of("0123456789;", host) + 1);
    // "<host>:38:10588 [7] NCCL INFO": what people write where they take a name out.
    if (host == rest.size() && rest.ends_with('>'))
      if (const size_t open = rest.rfind('<'); open != std::string_view::npos && rest.size() - open <= 40) host = open;
    // ":41367:41367 [1] NCCL INFO", "::41367:41367 [1] NCCL INFO": a host without a name, or one that somebody took
    // out.
    const bool nameless = rest.find_first_not_of(':') == std::string_view::npos;
    if (host == rest.size() && !nameless && rest.back() != ' ') return false;
    line.device = static_cast<int32_t>(std::min<int64_t>(device, INT32_MAX));
    line.writer = writers_.Take({rest.substr(host), pid, label, false, line.device});
    prefix->stamp = host == 0 ? Stamp{} : ParseStamp(rest.substr(0, host));
  } else {
    // Nothing but a label, or a label and a time, may stand before a line without prefix.
    // A place in NCCL's own code makes it NCCL's, whatever became of host and pid ("node-1:XXXX [5] ibvwrap.c:262").
    const bool placed = place.level == NcclLevel::warn && IsSourcePlace(line.source.substr(0, line.source.find(' ')));
    if (place.bare && !IsPlaceInNccl(line.source)) return false;  // it might be anybody's
    const std::string_view lead = before.substr(std::min(before.size(), std::max(label.length, EscapesLength(before))));
    if (!placed && (lead.size() > 40 || lead.find_first_not_of("[]0123456789-/:.,TZ +") != std::string_view::npos))
      return false;
    if (lead.size() > 160) return false;
    // "[3] NCCL INFO ...": the bracket is NCCL's own, a device, and no label of MPICH's.
    const bool own = label.kind == LauncherLabel::Kind::task && Trim(before).starts_with('[') &&
                     Trim(before).find(']') + 1 == Trim(before).size();
    const std::string_view name = HostWithoutPid(rest);
    if (!name.empty()) line.device = static_cast<int32_t>(std::min<int64_t>(device, INT32_MAX));
    line.writer = writers_.Take({name, -1, own ? LauncherLabel{} : label, false, line.device});
    prefix->stamp = ParseStamp(lead);
    line.tid = -1;
  }
  if (line.writer == NcclWriterTable::kNone) return false;
  line.kind = NcclLineKind::message;
  line.level = place.level;
  line.wall_ns = prefix->stamp.wall_ns;
  prefix->text = text.substr(0, place.at + place.length);
  prefix->label = std::min(label.length, host);
  prefix->host = host;
  return true;
}

bool NcclLogWalker::Prefix::IsExactly(std::string_view line) const {
  return line.size() >= text.size() && !text.empty() && std::memcmp(line.data(), text.data(), text.size()) == 0;
}

// True where a line has this prefix, whatever its time.
bool NcclLogWalker::Prefix::Fits(std::string_view line) const {
  return line.size() >= text.size() && !text.empty() &&
         std::memcmp(line.data() + host, text.data() + host, text.size() - host) == 0 &&
         (label == 0 || std::memcmp(line.data(), text.data(), label) == 0) &&
         (host == 0 || line[host - 1] == text[host - 1]);
}

void NcclLogWalker::TakeTime(std::string_view line, Prefix* prefix) {
  prefix->stamp = ParseStampLike(line.substr(0, prefix->host), prefix->text.substr(0, prefix->host), prefix->stamp);
  prefix->text = line.substr(0, prefix->text.size());
  prefix->line.wall_ns = prefix->stamp.wall_ns;
}

// A line that NCCL did not write, or wrote without prefix.
void NcclLogWalker::ReadBareLine(std::string_view text, NcclLogLine* line) const {
  *line = {};
  const LauncherLabel label = ParseLauncherLabel(text);
  const std::string_view rest = WithoutTrailingEscape(text.substr(label.length));
  line->message = rest.substr(EscapesLength(rest));
  if (line->message.empty()) {
    line->kind = NcclLineKind::blank;
  } else if (line->message.starts_with("NCCL version ") || line->message.starts_with("RCCL version ")) {
    line->kind = NcclLineKind::version;
    line->level = NcclLevel::version;
  } else if (in_several_lines_ && MayContinueMessage(line->message)) {
    line->kind = NcclLineKind::continuation;
  } else if (label.kind == LauncherLabel::Kind::rank || IsFrameworkLine(rest)) {
    line->kind = NcclLineKind::framework;
  }
}

const NcclLogLine* NcclLogWalker::Finish(NcclLogLine& line) const {
  line.number = reader_.number();
  line.offset = reader_.offset();
  line.bytes = reader_.line_bytes();
  return &line;
}

NcclLogWalker::Prefix* NcclLogWalker::FindPrefix(std::string_view text) {
  Prefix& newest = known_[newest_];
  if (newest.IsExactly(text)) return &newest;
  for (size_t i = 0; i < kKnown; ++i) {
    const size_t place = (newest_ + i) % kKnown;  // ranks that take turns do so in one order
    Prefix& prefix = known_[place];
    if (!prefix.Fits(text)) continue;
    if (!prefix.IsExactly(text)) TakeTime(text, &prefix);
    newest_ = place;
    return &prefix;
  }
  return nullptr;
}

const NcclLogLine* NcclLogWalker::Next() {
  std::string_view text;
  if (!reader_.Next(&text)) return nullptr;
  Prefix* prefix = FindPrefix(text);
  if (!prefix) {
    prefix = &other_;
    if (!ReadPrefix(text, prefix)) {
      ReadBareLine(text, &prefix->line);
      return Finish(prefix->line);
    }
    if (prefix->line.level == NcclLevel::info) {
      newest_ = replaced_ = (replaced_ + 1) % kKnown;
      known_[newest_] = other_;
      prefix = &known_[newest_];
    }
  }
  NcclLogLine& line = prefix->line;
  line.message = WithoutTrailingEscape(text.substr(prefix->text.size()));
  in_several_lines_ = OpensSeveralLines(line);
  return Finish(line);
}

}  // namespace tacet
