// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_import.h"

#include <algorithm>
#include <optional>

#include "base/text_scan.h"
#include "evidence/flight_recorder/flight_recorder_coalesced.h"
#include "evidence/flight_recorder/flight_recorder_groups.h"
#include "evidence/flight_recorder/flight_recorder_keys.h"
#include "evidence/flight_recorder/flight_recorder_parse.h"
#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

constexpr FlightVersion kNewestKnown{2, 10};

uint32_t Clamp32(int64_t value) { return static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX)); }
int64_t TimeOrNone(int64_t ns) { return ns > 0 ? ns : kNoTime; }

// What an operation's name says; looked up once per name.
struct OperationName {
  bool known = false;
  bool closes_coalesced = false;
  OpKind kind = OpKind::unknown;
  GroupRank peer;
};

// "nccl:send 0->1" is peer 1, "nccl:recv 1<-0" peer 0: the other side stands behind the arrow. Ranks are the group's.
GroupRank PeerIn(std::string_view name) {
  for (const std::string_view arrow : {"->", "<-"}) {
    const auto peer = IntAfter<int32_t>(name, arrow);
    if (peer && *peer >= 0) return GroupRank{*peer};
  }
  return {};
}

class Importer {
 public:
  Importer(const FlightDump& dump, Fragment& out) : dump_(dump), out_(out), groups_(dump, out) {}

  void ImportStream(CallStream& stream);

 private:
  const OperationName& NameOf(StringId id);
  DataType TypeOf(StringId id);
  Call ImportCall(const FlightEntry& entry);
  void ImportStacks();
  void DescribeStream(CallStream& stream) const;
  bool IsOnlyActive() const;
  bool IsFromStart() const;

  const FlightDump& dump_;
  Fragment& out_;
  FlightGroupMap groups_;
  std::vector<StackId> stacks_;
  std::vector<OperationName> names_;            // by StringId
  std::vector<std::optional<DataType>> types_;  // by StringId
};

const OperationName& Importer::NameOf(StringId id) {
  const auto at = static_cast<uint32_t>(id);
  if (at >= names_.size()) names_.resize(out_.strings.size());
  OperationName& name = names_[at];
  if (!name.known) {
    const std::string_view text = out_.strings.Get(id);
    name = {true, IsCoalescedEndName(text), ParseOpKind(text), PeerIn(text)};
  }
  return name;
}

DataType Importer::TypeOf(StringId id) {
  const auto at = static_cast<uint32_t>(id);
  if (at >= types_.size()) types_.resize(out_.strings.size());
  if (!types_[at]) types_[at] = ParseDataType(out_.strings.Get(id));
  return *types_[at];
}

Call Importer::ImportCall(const FlightEntry& entry) {
  const OperationName& name = NameOf(entry.name);
  Call call;
  call.group = groups_.GroupOf(entry);
  call.kind = name.kind;
  call.peer = name.peer;
  call.type = TypeOf(entry.data_type);
  call.in_elements = entry.in_elements;
  call.out_elements = entry.out_elements;
  call.shape = entry.shape;
  // Before version 2.0 there is one counter and no is_p2p, but a send is still no collective.
  const bool by_p2p = entry.is_p2p || (!HasField(entry, FlightKey::is_p2p) && IsPointToPoint(name.kind));
  if (by_p2p) call.flags |= kPointToPoint;
  call.seq = Clamp32(by_p2p && entry.p2p_seq >= 0 ? entry.p2p_seq : entry.collective_seq);
  if (entry.retired) call.flags |= kRetired;
  if (name.closes_coalesced && entry.has_no_tensors) {
    call.flags |= kCoalescedEnd;
    call.kind = OpKind::coalesced;
    call.in_elements = call.out_elements = -1;  // its members have the sizes
    call.shape = {};
  }
  switch (entry.state) {
    case FlightState::completed: call.state = CallState::completed; break;
    case FlightState::started: call.state = CallState::started; break;
    case FlightState::scheduled: call.state = CallState::enqueued; break;
    case FlightState::unknown:
      call.state = entry.completed_ns > 0 ? CallState::completed
                   : entry.started_ns > 0 ? CallState::started
                                          : CallState::unknown;
  }
  call.enter_wall_ns = TimeOrNone(entry.created_ns);
  call.start_wall_ns = TimeOrNone(entry.started_ns);
  call.finish_wall_ns = TimeOrNone(entry.completed_ns);
  call.duration_ms = entry.duration_ms;
  call.stack = stacks_[entry.stack];
  call.name = entry.name;
  call.record = Clamp32(entry.record_id);
  call.timeout_ms = Clamp32(entry.timeout_ms);
  call.line = entry.line;
  call.offset = entry.offset;
  return call;
}

void Importer::ImportStacks() {
  stacks_.reserve(dump_.stacks.size());
  for (const FlightStack& stack : dump_.stacks) {
    std::vector<Frame> frames;
    frames.reserve(stack.count);
    for (uint32_t i = 0; i < stack.count; ++i) {
      const FlightFrame& frame = dump_.frames[dump_.stack_frames[stack.begin + i]];
      frames.push_back({frame.function, frame.file, frame.line});
    }
    stacks_.push_back(out_.stacks.Intern(std::move(frames)));
  }
}

// A stuck kernel ends when its communicator is aborted, minutes later, and then looks completed.
void MarkEndedByAbort(std::vector<Call>& calls) {
  for (Call& call : calls) {
    if (call.state != CallState::completed || call.timeout_ms == 0) continue;
    if (call.enter_wall_ns == kNoTime || call.finish_wall_ns == kNoTime) continue;
    if (call.finish_wall_ns - call.enter_wall_ns >= int64_t{call.timeout_ms} * 1'000'000) call.flags |= kEndedByAbort;
  }
}

void Importer::ImportStream(CallStream& stream) {
  ImportStacks();
  stream.calls.reserve(dump_.entries.size());
  for (const FlightEntry& entry : dump_.entries) stream.calls.push_back(ImportCall(entry));
  DescribeStream(stream);
  MarkCoalesced(dump_.entries, out_.groups.size(), stream);
  MarkEndedByAbort(stream.calls);
  stream.progress = groups_.MapProgress();
}

void Importer::DescribeStream(CallStream& stream) const {
  stream.source = CallSource::flight_recorder;
  stream.knows_finish = true;
  stream.from_start = IsFromStart();
  stream.only_active = IsOnlyActive();
  for (const FlightEntry& entry : dump_.entries) {
    const int64_t latest = std::max({entry.created_ns, entry.started_ns, entry.completed_ns});
    if (latest > 0) stream.captured_wall_ns = std::max(stream.captured_wall_ns, latest);
    if (entry.started_ns > 0 || entry.state == FlightState::started || entry.duration_ms >= 0)
      stream.knows_start = true;
  }
  for (const FlightStatus& status : dump_.statuses)
    if (status.last_started >= 0) stream.knows_start = true;
}

// A whole dump has no gaps in record_id. One without completed entries may have lost them to the ring, but when nothing
// completed is left at all while work has completed, completed entries were most likely left out on purpose.
bool Importer::IsOnlyActive() const {
  bool any_completed = false;
  int64_t before = -1;
  for (const FlightEntry& entry : dump_.entries) {
    if (before >= 0 && entry.record_id > before && entry.record_id - before > 1) return true;
    before = entry.record_id;
    if (entry.state == FlightState::completed) any_completed = true;
  }
  return !any_completed && std::any_of(dump_.statuses.begin(), dump_.statuses.end(),
                                       [](const FlightStatus& status) { return status.last_completed >= 0; });
}

// Before version 1.3 there is no record_id; then each group must begin with its first operation.
bool Importer::IsFromStart() const {
  if (dump_.entries.empty()) return false;
  const FlightEntry& first = dump_.entries.front();
  if (HasField(first, FlightKey::record_id)) return first.record_id == 0;
  std::vector<int64_t> seen;
  for (const FlightEntry& entry : dump_.entries) {
    if (seen.size() > 64) break;
    if (std::find(seen.begin(), seen.end(), entry.pg_id) != seen.end()) continue;
    seen.push_back(entry.pg_id);
    if (entry.collective_seq > 1) return false;
  }
  return true;
}

void NoteEnding(const FlightDump& dump, const FileView& file, Fragment& out) {
  const SourceRef place{.offset = dump.problem_offset};
  const std::string count = std::to_string(dump.entries.size()) + (dump.entries.size() == 1 ? " entry" : " entries");
  switch (dump.ending) {
    case FlightEnding::whole: break;
    case FlightEnding::truncated:
      out.Note(DiagnosticSeverity::warning, "truncated",
               file.bytes.empty() ? "the dump is empty: its writer was stopped before the first byte"
                                  : "the dump is cut off after " + count,
               place, "The process was killed while it wrote, or the disk was full. What is complete was read.");
      break;
    case FlightEnding::malformed:
      out.Note(DiagnosticSeverity::error, dump.is_json ? "json-malformed" : "pickle-malformed",
               dump.problem + "; read up to there: " + count, place,
               "The file is damaged, or no Flight Recorder dump.");
      break;
    case FlightEnding::malicious:
      out.Note(DiagnosticSeverity::error, "pickle-refused",
               dump.problem + ": this is not a Flight Recorder dump and may be malicious; the file was refused", place,
               "Nothing in it was executed. Do not load it with Python's pickle; ask where it came from.");
      break;
    case FlightEnding::foreign:
      out.Note(DiagnosticSeverity::error, "not-a-flight-record", "not a Flight Recorder dump: " + dump.problem, place);
      break;
  }
}

void NoteOddities(const FlightDump& dump, const Speaker& speaker, Fragment& out) {
  if (!speaker.rank.known())
    out.Note(
        DiagnosticSeverity::warning, "rank-unknown",
        "it is unknown which rank wrote this dump: dumps do not name their rank, and this file's name has no number",
        {}, "Keep the name that PyTorch gave it, such as nccl_trace_rank_3.");
  if (dump.skipped_entries > 0)
    out.Note(DiagnosticSeverity::warning, "entries-skipped",
             std::to_string(dump.skipped_entries) + " members of the entries list are not entries and were ignored");
  if (kNewestKnown < ParseFlightVersion(dump.version))
    out.Note(DiagnosticSeverity::note, "newer-version",
             "dump version " + dump.version + " is newer than 2.10, the newest known; keys that are new were not read");
}

void AddLibraryVersion(const FlightDump& dump, Fragment& out) {
  if (dump.library_version.empty()) return;
  // comm_lib_version may be another library's; the prefix of the operations tells.
  const bool other =
      !dump.library_is_nccl && !dump.entries.empty() && !out.strings.Get(dump.entries.front().name).starts_with("nccl");
  if (other) return;
  Event event;
  event.kind = EventKind::nccl_version;
  event.Make<Version>().number = dump.library_version;
  event.text = "NCCL " + dump.library_version;
  out.events.push_back(std::move(event));
}

// A dump with its version and nothing else. The recorder writes the same bytes whether it was off or had nothing yet.
void NoteStub(const FlightDump& dump, Fragment& out) {
  out.stub = dump.ending == FlightEnding::whole && dump.entries.empty() && dump.groups.empty() &&
             dump.statuses.empty() && dump.skipped_entries == 0;
  if (!out.stub) return;
  out.Note(DiagnosticSeverity::warning, "stub-dump",
           "no group and no operation is recorded: the recorder was off, or no communicator was complete yet; what was "
           "issued is not shown",
           {},
           "Set TORCH_FR_BUFFER_SIZE (before PyTorch 2.8 TORCH_NCCL_TRACE_BUFFER_SIZE) to a number > 0, such as 2000.");
}

void Account(const FlightDump& dump, std::string_view bytes, Fragment& out) {
  const bool refused = dump.ending == FlightEnding::malicious || dump.ending == FlightEnding::foreign;
  uint64_t understood = refused ? 0 : std::min<uint64_t>(dump.understood, bytes.size());
  if (dump.ending == FlightEnding::whole) {
    const std::string_view rest = bytes.substr(understood);
    if (rest.find_first_not_of(" \t\r\n") == std::string_view::npos)
      understood = bytes.size();
    else
      out.Note(DiagnosticSeverity::warning, "trailing-bytes",
               std::to_string(rest.size()) + " bytes after the end of the dump were not read", {.offset = understood});
  }
  out.bytes = {.total = bytes.size(), .understood = understood, .not_understood = bytes.size() - understood};
}

}  // namespace

void ImportFlightRecorder(const FileView& file, Fragment& out) {
  const FlightDump dump = ParseFlightDump(file.bytes, out.strings);
  NoteEnding(dump, file, out);
  Account(dump, file.bytes, out);
  if (dump.ending == FlightEnding::malicious || dump.ending == FlightEnding::foreign) return;

  Speaker speaker;
  if (const auto rank = RankFromPath(file.path)) {
    speaker.rank = *rank;
    speaker.rank_certainty = Certainty::assumed;
  }
  CallStream stream;
  Importer(dump, out).ImportStream(stream);
  stream.cut = file.cut || dump.ending != FlightEnding::whole;
  for (const Group& group : out.groups)
    if (group.description == "default_pg" && !group.members.empty())
      speaker.world_size = static_cast<int64_t>(group.members.size());
  NoteOddities(dump, speaker, out);
  NoteStub(dump, out);
  stream.stub = out.stub;
  AddLibraryVersion(dump, out);
  out.speakers.push_back(std::move(speaker));
  out.streams.push_back(std::move(stream));
}

}  // namespace tacet
