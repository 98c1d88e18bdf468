// SPDX-License-Identifier: Apache-2.0
#include "analysis/testing/job_sketch.h"

#include <algorithm>

#include "evidence/meaning/event_meaning.h"

namespace tacet {
namespace {

constexpr std::string_view kScript = "/srv/job/train.py";
constexpr std::string_view kDistributed = "/v/site-packages/torch/distributed/distributed_c10d.py";

std::string_view FormatOf(CallSource source) {
  switch (source) {
    case CallSource::nccl_log: return "nccl_log";
    case CallSource::black_box: return "black_box";
    default: return "flight_recorder";
  }
}

bool KeepsReduction(CallSource source) { return source != CallSource::flight_recorder; }
bool KeepsEnd(CallSource source) { return source != CallSource::nccl_log; }

}  // namespace

std::vector<SketchedFrame> InCollective() {
  return {{"barrier", kDistributed, 5030}, {"step", kScript, 40}, {"<module>", kScript, 90}};
}
std::vector<SketchedFrame> InDataLoader() {
  return {{"_worker_wait", "/usr/lib/python3.12/threading.py", 331},
          {"__next__", "/v/site-packages/torch/utils/data/dataloader.py", 733},
          {"load_next_batch", kScript, 124},
          {"<module>", kScript, 90}};
}
std::vector<SketchedFrame> InSynchronize() {
  return {{"synchronize", "/v/site-packages/torch/cuda/__init__.py", 1162},
          {"step", kScript, 44},
          {"<module>", kScript, 90}};
}

JobSketch::JobSketch(int32_t world, std::vector<CallSource> sources) : world_(world), sources_(std::move(sources)) {
  std::vector<int32_t> all;
  incident_.world_size = world;
  for (int32_t r = 0; r < world; ++r) {
    all.push_back(r);
    incident_.processes.push_back({Rank{r}, Certainty::stated, "node" + std::to_string(r / 8), 1000 + r, r % 8, {}});
    incident_.process_of[Rank{r}] = static_cast<uint32_t>(r);
    for (const CallSource source : sources_) StreamOf(r, source);
  }
  AddGroup("default_pg", all);
}

GroupIndex JobSketch::AddGroup(std::string description, const std::vector<int32_t>& members) {
  Group group;
  group.name = std::to_string(incident_.groups.size());
  group.description = std::move(description);
  group.members = Ranks(members);
  group.size = static_cast<int32_t>(members.size());
  incident_.groups.push_back(std::move(group));
  return static_cast<GroupIndex>(incident_.groups.size() - 1);
}

std::vector<int32_t> JobSketch::AllBut(const std::vector<int32_t>& left_out) const {
  std::vector<int32_t> ranks;
  for (int32_t r = 0; r < world_; ++r)
    if (std::find(left_out.begin(), left_out.end(), r) == left_out.end()) ranks.push_back(r);
  return ranks;
}

FileId JobSketch::FileOf(int32_t rank, std::string_view format) {
  const auto [found, added] = files_.try_emplace({rank, std::string(format)}, FileId{});
  if (added) {
    found->second = static_cast<FileId>(incident_.files.size());
    InputFile file;
    file.path = std::string(format) + "_rank" + std::to_string(rank);
    file.format = format;
    file.rank = Rank{rank};
    incident_.files.push_back(std::move(file));
    if (rank >= 0) incident_.processes[static_cast<size_t>(rank)].files.push_back(found->second);
  }
  return found->second;
}

CallStream& JobSketch::StreamOf(int32_t rank, CallSource source) {
  const auto [found, added] = streams_.try_emplace({source, rank});
  CallStream& stream = found->second;
  if (added) {
    stream.speaker = static_cast<uint32_t>(rank);
    stream.rank = Rank{rank};
    stream.source = source;
    stream.file = FileOf(rank, FormatOf(source));
    stream.knows_finish = KeepsEnd(source);
  }
  return stream;
}

Call& JobSketch::LastCall(int32_t rank, CallSource source) { return StreamOf(rank, source).calls.back(); }

uint32_t JobSketch::NextSeq(int32_t rank, CallSource source, const SketchedCall& call) {
  const bool p2p = IsPointToPoint(call.kind) || (call.flags & kPointToPoint) != 0;
  uint32_t& counter = seq_[{Key{source, rank}, call.group, p2p}];
  if (call.seq >= 0) {
    counter = static_cast<uint32_t>(call.seq);
    return counter;
  }
  // The members of a coalesced group share the number of the entry that closes it.
  return (call.flags & kCoalescedMember) != 0 ? counter + 1 : ++counter;
}

StackId JobSketch::StackOf(const std::vector<SketchedFrame>& frames) {
  std::vector<Frame> out;
  for (const SketchedFrame& frame : frames)
    out.push_back({incident_.strings.Intern(frame.function), incident_.strings.Intern(frame.file), frame.line});
  return incident_.stacks.Intern(std::move(out));
}

void JobSketch::Issue(int32_t rank, const SketchedCall& drawn) {
  for (const CallSource source : sources_) {
    Call call;
    call.group = drawn.group;
    call.seq = NextSeq(rank, source, drawn);
    call.kind = drawn.kind;
    call.flags = drawn.flags;
    if (IsPointToPoint(drawn.kind)) call.flags |= kPointToPoint;
    call.type = drawn.type;
    call.reduction = KeepsReduction(source) ? drawn.reduction : ReduceOp::unknown;
    call.peer = GroupRank{drawn.peer};
    call.in_elements = drawn.elements;
    call.out_elements = drawn.out_elements >= 0 ? drawn.out_elements : drawn.elements;
    call.enter_wall_ns = now_ns;
    call.timeout_ms = KeepsEnd(source) ? timeout_ms : 0;
    call.state = KeepsEnd(source) ? drawn.state : CallState::enqueued;
    if (KeepsEnd(source) && timed && drawn.state >= CallState::started) call.start_wall_ns = now_ns + kMillisecondNs;
    if (call.state == CallState::started && !timed) call.state = CallState::enqueued;
    if (call.state == CallState::completed) call.finish_wall_ns = now_ns + 2 * kMillisecondNs;
    call.duration_ms = drawn.duration_ms;
    call.stack = StackOf({{drawn.site, kScript, 40}, {"<module>", kScript, 90}});
    CallStream& stream = StreamOf(rank, source);
    call.line = static_cast<uint32_t>(stream.calls.size() + 1);
    stream.calls.push_back(call);
  }
}

void JobSketch::IssueOn(const std::vector<int32_t>& ranks, const SketchedCall& call) {
  for (const int32_t rank : ranks) Issue(rank, call);
  Wait(10 * kMillisecondNs);
}

void JobSketch::IssueAll(const SketchedCall& call) {
  std::vector<int32_t> members;
  for (const Rank rank : GroupAt(call.group).members) members.push_back(rank.value);
  IssueOn(members, call);
}

Event& JobSketch::Say(int32_t rank, EventKind kind) {
  Event event;
  event.kind = kind;
  event.rank = Rank{rank};
  event.speaker = static_cast<uint32_t>(rank);
  event.wall_ns = now_ns;
  event.source.file = FileOf(rank, "torch_log");
  event.source.line = static_cast<uint32_t>(incident_.events.size() + 1);
  return incident_.events.emplace_back(std::move(event));
}

Event& JobSketch::Log(int32_t rank, EventKind kind) {
  Event& event = Say(rank, kind);
  event.source.file = FileOf(rank, "nccl_log");
  return event;
}

Event& JobSketch::Tell(EventKind kind) {
  Event event;
  event.kind = kind;
  event.speaker = kNobody;
  event.wall_ns = now_ns;
  event.source.file = FileOf(-1, "kernel_log");
  return incident_.events.emplace_back(std::move(event));
}

void JobSketch::Stack(int32_t rank, const std::vector<SketchedFrame>& frames) {
  ThreadStack thread;
  thread.speaker = static_cast<uint32_t>(rank);
  thread.rank = Rank{rank};
  thread.is_main = true;
  thread.has_python = true;
  thread.first_line = 2;
  thread.source.file = FileOf(rank, "stacks");
  thread.stack = StackOf(frames);
  incident_.threads.push_back(std::move(thread));
}

void JobSketch::TimeOut(int32_t rank, int64_t seq) {
  Event& event = Say(rank, EventKind::watchdog_timeout);
  event.seq = seq;
  event.Make<WatchdogTimeout>().timeout_ms = timeout_ms;
}

void JobSketch::GiveOutputs() {
  for (int32_t r = 0; r < world_; ++r) FileOf(r, "torch_log");
}

void JobSketch::FinishAll() {
  for (int32_t r = 0; r < world_; ++r) Say(r, EventKind::process_finished);
}

void JobSketch::LoseRecord(int32_t rank, CallSource source) {
  streams_.erase({source, rank});
  const auto file = files_.find({rank, std::string(FormatOf(source))});
  if (file == files_.end()) return;
  std::erase(incident_.processes[static_cast<size_t>(rank)].files, file->second);
}

void JobSketch::LoseEverything(int32_t rank) {
  std::erase_if(streams_, [&](const auto& entry) { return entry.first.rank == rank; });
  std::erase_if(incident_.events, [&](const Event& event) { return event.rank.value == rank; });
  std::erase_if(incident_.threads, [&](const ThreadStack& thread) { return thread.rank.value == rank; });
  incident_.processes[static_cast<size_t>(rank)].files.clear();
}

Incident JobSketch::Finish() {
  for (auto& [key, stream] : streams_) {
    stream.knows_start = stream.knows_start || (timed && stream.knows_finish);
    for (Call& call : stream.calls) {
      // Nobody looks for starts while a job runs: it is the dump itself that notices them.
      if (call.state == CallState::started && stream.source == CallSource::flight_recorder) call.start_wall_ns = now_ns;
      stream.captured_wall_ns =
          std::max({stream.captured_wall_ns, call.enter_wall_ns, call.start_wall_ns, call.finish_wall_ns});
    }
    if (tells_written_time) incident_.files[static_cast<uint32_t>(stream.file)].modified_wall_ns = now_ns;
    for (const Event& event : incident_.events)
      if (event.kind == EventKind::connection_lost && event.rank == stream.rank) stream.ended_by_error = true;
    incident_.streams.push_back(std::move(stream));
  }
  for (Event& event : incident_.events) ReadMeaning(event);
  return std::move(incident_);
}

std::vector<Rank> Ranks(const std::vector<int32_t>& values) {
  std::vector<Rank> ranks;
  for (const int32_t value : values) ranks.push_back(Rank{value});
  return ranks;
}

std::vector<Rank> RankRange(int32_t from, int32_t to) {
  std::vector<Rank> ranks;
  for (int32_t r = from; r < to; ++r) ranks.push_back(Rank{r});
  return ranks;
}

}  // namespace tacet
