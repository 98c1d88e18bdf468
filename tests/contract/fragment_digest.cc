// SPDX-License-Identifier: Apache-2.0
#include "fragment_digest.h"

#include <string>
#include <variant>

#include "model/events/event_payload.h"
#include "model/events/event_words.h"

namespace tacet {
namespace {

class DigestText {
 public:
  template <typename... Parts>
  void Line(std::string_view what, const Parts&... parts) {
    text_ += what;
    ((text_ += ' ', Add(parts)), ...);
    text_ += '\n';
  }
  std::string Take() { return std::move(text_); }

 private:
  void Add(int64_t value) { text_ += std::to_string(value); }
  void Add(std::string_view value) { text_ += value; }

  std::string text_;
};

int64_t Number(auto id) { return static_cast<int64_t>(id); }

void AddStream(const CallStream& stream, const Fragment& fragment, DigestText& text) {
  text.Line("stream", stream.speaker, Number(stream.source), stream.from_start, stream.knows_start, stream.stub,
            stream.captured_wall_ns, stream.calls.size(), stream.progress.size());
  for (const Call& call : stream.calls)
    text.Line("call", Number(call.group), call.seq, Number(call.kind), Number(call.state), call.flags,
              Number(call.type), call.in_elements, call.out_elements, call.enter_wall_ns, call.start_wall_ns,
              call.finish_wall_ns, Number(call.stack), fragment.strings.Get(call.name),
              fragment.strings.Get(call.shape), call.line, call.offset);
}

// What a payload tells beside its words.
template <class Detail>
void AddNumbers(const Detail& one, DigestText& text) {
  if constexpr (requires { one.code; }) text.Line("code", one.code);
  if constexpr (requires { one.step; }) text.Line("step", one.step, one.rising, one.lines);
  if constexpr (requires { one.elapsed_ms; }) text.Line("elapsed", one.elapsed_ms, one.elements);
  if constexpr (requires { one.timeout_ms; }) text.Line("timeout", one.timeout_ms);
  if constexpr (requires { one.last_enqueued; }) text.Line("work", one.last_enqueued, one.last_completed);
  if constexpr (requires { one.expected; }) text.Line("expected", one.expected);
  if constexpr (requires { one.ranks; }) text.Line("ranks", one.ranks);
  if constexpr (requires { one.number; }) text.Line("number", one.number);
  if constexpr (requires { one.role; }) text.Line("role", Number(one.role), one.object);
  if constexpr (requires { one.place; }) text.Line("place", one.place.function, one.place.file, one.place.line);
  if constexpr (requires { one.times; }) text.Line("times", one.times);
  if constexpr (requires { one.local_ranks; }) text.Line("nodes", one.nodes, one.local_ranks);
  if constexpr (requires {
                  one.condition;
                  one.count;
                })
    text.Line("nodes", one.count, Number(one.condition));
  if constexpr (requires { one.percent; }) text.Line("percent", Number(one.percent));
  if constexpr (requires { one.port; }) text.Line("port", one.port);
}

bool Inside(uint32_t index, size_t size) { return index < size; }

bool IsSpeaker(uint32_t speaker, const Fragment& fragment) {
  return speaker == kNobody || Inside(speaker, fragment.speakers.size());
}

bool IsGroup(GroupIndex group, const Fragment& fragment) {
  return group == GroupIndex::none || Inside(static_cast<uint32_t>(group), fragment.groups.size());
}

std::string FindBrokenCall(const CallStream& stream, const Fragment& fragment, size_t file_bytes) {
  for (const Call& call : stream.calls) {
    if (!IsGroup(call.group, fragment)) return "a call's group";
    if (!Inside(static_cast<uint32_t>(call.name), fragment.strings.size())) return "a call's name";
    if (!Inside(static_cast<uint32_t>(call.shape), fragment.strings.size())) return "a call's shape";
    if (!Inside(static_cast<uint32_t>(call.stack), fragment.stacks.size())) return "a call's stack";
    if (call.offset > file_bytes) return "a call's offset";
  }
  for (const GroupProgress& progress : stream.progress)
    if (!IsGroup(progress.group, fragment)) return "a progress's group";
  return "";
}

std::string FindBrokenSource(const SourceRef& source, size_t file_bytes, const char* what) {
  if (source.file != FileId{}) return std::string(what) + ": the file is not 0";
  if (source.offset > file_bytes) return std::string(what) + ": the offset is behind the end of the file";
  if (source.line > file_bytes + 1) return std::string(what) + ": the line is behind the end of the file";
  return "";
}

}  // namespace

std::string Digest(const Fragment& fragment) {
  DigestText text;
  text.Line("strings", fragment.strings.size(), "stacks", fragment.stacks.size(), "stub", fragment.stub);
  for (const Speaker& speaker : fragment.speakers)
    text.Line("speaker", speaker.rank.value, Number(speaker.rank_certainty), speaker.host, speaker.pid, speaker.device,
              speaker.world_size);
  for (const Group& group : fragment.groups)
    text.Line("group", group.name, group.description, group.members.size(), group.places.size(), group.size,
              group.comm_id);
  for (const CallStream& stream : fragment.streams) AddStream(stream, fragment, text);
  for (const ThreadStack& thread : fragment.threads)
    text.Line("thread", thread.speaker, thread.thread_name, thread.thread_id, thread.state, Number(thread.stack),
              thread.source.line);
  for (const Event& event : fragment.events) {
    text.Line("event", Number(event.kind), event.speaker, event.rank.value, event.wall_ns, event.seq, event.pid,
              event.comm, WordOf(event), MessageOf(event), event.source.line, event.source.offset);
    std::visit([&](const auto& detail) { AddNumbers(detail, text); }, event.detail);
  }
  for (const LaunchCounts& counts : fragment.launch_counts)
    text.Line("launched", counts.comm, counts.group_rank.value, counts.pid, counts.ranks, counts.all_kinds,
              counts.counts[1]);
  for (const Measurement& measured : fragment.measurements)
    text.Line("measured", measured.speaker, measured.comm, Number(measured.op), measured.seq, measured.duration_ns,
              measured.start_wall_ns);
  for (const Timeline& timeline : fragment.timelines)
    text.Line("timeline", timeline.speaker, timeline.begin_ns, timeline.end_ns, timeline.gpu.size(),
              timeline.launches.size(), timeline.ranges.size(), timeline.steps.size(), timeline.collectives.size(),
              timeline.memory.size());
  for (const BenchmarkRun& run : fragment.benchmark_runs) {
    text.Line("benchmark", run.operation, run.ranks, run.devices.size(), run.failed_checks, run.concluded, run.failure,
              run.source.line, run.source.offset, run.algorithm, run.protocol, run.link, run.network_device,
              std::to_string(run.received_gbs));
    for (const BenchmarkRate& rate : run.rates) text.Line("rate", std::to_string(rate.gbs), rate.retransmits);
    for (const BenchmarkMatrix& matrix : run.matrices)
      for (const std::vector<double>& row : matrix.cells)
        for (const double cell : row) text.Line("cell", matrix.title, std::to_string(cell));
    for (const BenchmarkLine& line : run.lines)
      text.Line("size", line.bytes, Number(line.type), Number(line.reduction), line.root,
                std::to_string(line.out_of_place.time_us), std::to_string(line.in_place.time_us), line.source.offset);
  }
  text.Line("in flight", fragment.in_flight.size(), "pulses", fragment.pulses.size(), "pipelines",
            fragment.pipeline_traces.size());
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    text.Line("diagnostic", Number(diagnostic.severity), diagnostic.code, diagnostic.message, diagnostic.source.offset);
  return text.Take();
}

std::string FindBrokenReference(const Fragment& fragment, size_t file_bytes) {
  for (const CallStream& stream : fragment.streams) {
    if (!Inside(stream.speaker, fragment.speakers.size())) return "a stream's speaker";
    if (const std::string broken = FindBrokenCall(stream, fragment, file_bytes); !broken.empty()) return broken;
  }
  for (const ThreadStack& thread : fragment.threads) {
    if (!Inside(thread.speaker, fragment.speakers.size())) return "a thread's speaker";
    if (!Inside(static_cast<uint32_t>(thread.stack), fragment.stacks.size())) return "a thread's stack";
    for (const Frame& frame : fragment.stacks.Get(thread.stack))
      if (!Inside(static_cast<uint32_t>(frame.function), fragment.strings.size()) ||
          !Inside(static_cast<uint32_t>(frame.file), fragment.strings.size()))
        return "a frame's names";
    if (std::string broken = FindBrokenSource(thread.source, file_bytes, "a thread"); !broken.empty()) return broken;
  }
  for (const Event& event : fragment.events) {
    if (!IsSpeaker(event.speaker, fragment)) return "an event's speaker";
    if (!HoldsItsPayload(event)) return "an event's payload is that of another kind";
    if (event.text.size() > Event::kMaxText) return "an event's text is longer than its limit";
    if (std::string broken = FindBrokenSource(event.source, file_bytes, "an event"); !broken.empty()) return broken;
  }
  for (const LaunchCounts& counts : fragment.launch_counts)
    if (std::string broken = FindBrokenSource(counts.source, file_bytes, "launch counts"); !broken.empty())
      return broken;
  for (const Measurement& measured : fragment.measurements) {
    if (!Inside(measured.speaker, fragment.speakers.size())) return "a measurement's speaker";
    if (std::string broken = FindBrokenSource(measured.source, file_bytes, "a measurement"); !broken.empty())
      return broken;
  }
  for (const Timeline& timeline : fragment.timelines) {
    if (!Inside(timeline.speaker, fragment.speakers.size())) return "a timeline's speaker";
    for (const TraceCollective& collective : timeline.collectives)
      if (!IsGroup(collective.group, fragment)) return "a trace collective's group";
  }
  for (const BenchmarkRun& run : fragment.benchmark_runs) {
    for (const SourceRef& source : {run.source, run.summary, run.failed_at})
      if (std::string broken = FindBrokenSource(source, file_bytes, "a benchmark"); !broken.empty()) return broken;
    for (const BenchmarkLine& line : run.lines)
      if (std::string broken = FindBrokenSource(line.source, file_bytes, "a size"); !broken.empty()) return broken;
    for (const BenchmarkMatrix& matrix : run.matrices)
      if (std::string broken = FindBrokenSource(matrix.source, file_bytes, "a matrix"); !broken.empty()) return broken;
  }
  for (const Diagnostic& diagnostic : fragment.diagnostics) {
    if (diagnostic.code.empty() || diagnostic.message.empty()) return "a diagnostic without code or message";
    if (std::string broken = FindBrokenSource(diagnostic.source, file_bytes, "a diagnostic"); !broken.empty())
      return broken;
  }
  return "";
}

std::string FindAccountingError(const Accounting& bytes, size_t file_bytes) {
  if (bytes.total != file_bytes)
    return "the total is " + std::to_string(bytes.total) + ", the file has " + std::to_string(file_bytes);
  if (bytes.understood + bytes.ignored + bytes.not_understood != bytes.total)
    return std::to_string(bytes.understood) + " + " + std::to_string(bytes.ignored) + " + " +
           std::to_string(bytes.not_understood) + " is not " + std::to_string(bytes.total);
  return "";
}

}  // namespace tacet
