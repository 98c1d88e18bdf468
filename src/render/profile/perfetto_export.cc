// SPDX-License-Identifier: Apache-2.0
#include "render/profile/perfetto_export.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/timing/clock_alignment.h"
#include "base/json_writer.h"
#include "base/redact.h"

namespace tacet {
namespace {

constexpr size_t kPiece = 1 << 18;
// Names from the catapult colour table, which Perfetto's legacy importer and chrome://tracing both know.
constexpr std::string_view kWaitColour = "terrible", kTransferColour = "good";

// Tracks of one process: steps, then groups, then GPU streams. Slices of one track must not overlap, or Perfetto drops
// them: what runs beside something else of its group or stream gets a lane of its own, a track right below.
constexpr int64_t kStepTrack = 1, kGroupTracks = 1000, kStreamTracks = 100000000, kLanes = 16;

class TraceStream {
 public:
  TraceStream(const ByteSink& sink, bool redact) : sink_(sink), redact_(redact) { out_.reserve(kPiece + 4096); }

  void Begin() { out_ += "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"; }
  bool End() {
    out_ += "\n]}\n";
    Flush();
    return ok_;
  }
  bool ok() const { return ok_; }
  // A name out of the evidence, as it may be shown.
  std::string Clean(std::string_view name) const { return redact_ ? RedactSecrets(name).text : std::string(name); }

  // The common members; the caller adds more with Member and ends with Close.
  TraceStream& Open(char phase, int64_t process, int64_t track) {
    out_ += first_ ? "{\"ph\":\"" : ",\n{\"ph\":\"";
    first_ = false;
    out_ += phase;
    out_ += "\",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(track);
    return *this;
  }
  TraceStream& Text(std::string_view key, std::string_view value) {
    Key(key);
    JsonWriter::AppendQuoted(out_, value);
    return *this;
  }
  TraceStream& Number(std::string_view key, int64_t value) {
    Key(key);
    out_ += std::to_string(value);
    return *this;
  }
  TraceStream& Micros(std::string_view key, int64_t ns) {
    Key(key);
    char text[40];
    const auto digits = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    std::snprintf(text, sizeof text, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", digits / 1000,
                  static_cast<unsigned>(digits % 1000));
    out_ += text;
    return *this;
  }
  TraceStream& Raw(std::string_view json) {
    out_ += json;
    return *this;
  }
  void Close() {
    out_ += '}';
    if (out_.size() >= kPiece) Flush();
  }

 private:
  void Key(std::string_view key) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
  }
  void Flush() {
    ok_ = ok_ && sink_(out_);
    out_.clear();
  }

  const ByteSink& sink_;
  std::string out_;
  bool redact_ = true, first_ = true, ok_ = true;
};

// The names of a timeline's events, each looked at once: a trace has thousands of events a name.
class CleanNames {
 public:
  CleanNames(const TraceStream& out, const StringTable& names) : out_(out), names_(names), clean_(names.size()) {}
  const std::string& Get(StringId id) {
    std::optional<std::string>& name = clean_[static_cast<uint32_t>(id)];
    if (!name) name = out_.Clean(names_.Get(id));
    return *name;
  }

 private:
  const TraceStream& out_;
  const StringTable& names_;
  std::vector<std::optional<std::string>> clean_;
};

// When the slices of each lane of a track end.
class Lanes {
 public:
  // The first lane that is free at `start`; the last one where none is.
  int64_t Take(int64_t track, int64_t start, int64_t end) {
    std::vector<int64_t>& ends = ends_[track];
    size_t lane = 0;
    while (lane < ends.size() && ends[lane] > start) ++lane;
    lane = std::min<size_t>(lane, kLanes - 1);
    if (lane == ends.size()) ends.push_back(INT64_MIN);
    ends[lane] = std::max(ends[lane], end);
    return track + static_cast<int64_t>(lane);
  }

 private:
  std::unordered_map<int64_t, std::vector<int64_t>> ends_;
};

// One job with its clocks and the moment that becomes 0, so that microseconds keep all their digits.
struct AlignedJob {
  const Incident& incident;
  std::vector<CollectiveRound> rounds;
  ClockAlignment clocks;
  int64_t first_ns = INT64_MAX;
  int64_t process_base = 0;
  int64_t next_flow = 0;
  std::vector<std::vector<bool>> joined;        // by timeline and GPU event: WriteOperation writes it
  std::vector<Lanes> lanes;                     // by timeline
  std::set<std::pair<int64_t, int64_t>> named;  // process and track: lanes that were given a name

  // Counted from 1: readers take process 0 for the idle one of the kernel and hide it.
  int64_t Process(const Timeline& timeline) const {
    const auto index = static_cast<int64_t>(&timeline - incident.timelines.data());
    return process_base + 1 + (timeline.rank.known() ? timeline.rank.value : 1000000 + index);
  }
  int64_t Time(const Timeline& timeline, int64_t ns) const { return clocks.Align(timeline.rank, ns) - first_ns; }
};

void Describe(TraceStream& out, std::string_view what, int64_t process, int64_t track, std::string_view name,
              int64_t order) {
  out.Open('M', process, track).Text("name", std::string(what) + "_name").Raw(",\"args\":{\"name\":");
  std::string quoted;
  JsonWriter::AppendQuoted(quoted, out.Clean(name));
  out.Raw(quoted).Raw("}").Close();
  out.Open('M', process, track).Text("name", std::string(what) + "_sort_index").Raw(",\"args\":{\"sort_index\":");
  out.Raw(std::to_string(order)).Raw("}").Close();
}

std::string GroupName(const Incident& incident, GroupIndex group) {
  const auto index = static_cast<size_t>(group);
  return "group " + (index < incident.groups.size() ? incident.groups[index].Label() : std::string("unknown"));
}

int64_t GroupTrack(GroupIndex group) {
  return kGroupTracks + kLanes * (group == GroupIndex::none ? 0 : 1 + static_cast<int64_t>(group));
}

int64_t StreamTrack(size_t stream) { return kStreamTracks + kLanes * static_cast<int64_t>(stream); }

std::string StreamName(const GpuStream& stream) {
  return "GPU " + std::to_string(stream.device) + " stream " + std::to_string(stream.id);
}

// Tracks have names before their first slice; lanes beyond the first get theirs when they are needed.
void NameLane(TraceStream& out, AlignedJob& job, int64_t process, int64_t track, int64_t lane,
              const std::string& name) {
  if (lane == track || !job.named.emplace(process, lane).second) return;
  Describe(out, "thread", process, lane, name + " (" + std::to_string(lane - track + 1) + ")", lane);
}

void WriteTracks(TraceStream& out, const AlignedJob& job, const Timeline& timeline) {
  const int64_t process = job.Process(timeline);
  std::string name = timeline.rank.known() ? "rank " + std::to_string(timeline.rank.value) : "unknown rank";
  if (!job.incident.label.empty()) name = job.incident.label + " " + name;
  Describe(out, "process", process, 0, name, process);
  Describe(out, "thread", process, kStepTrack, "steps", 0);
  std::map<int64_t, GroupIndex> groups;
  for (const TraceCollective& one : timeline.collectives) groups.emplace(GroupTrack(one.group), one.group);
  for (const auto& [track, group] : groups)
    Describe(out, "thread", process, track, GroupName(job.incident, group), track);
  for (size_t i = 0; i < timeline.streams.size(); ++i)
    Describe(out, "thread", process, StreamTrack(i), StreamName(timeline.streams[i]), StreamTrack(i));
}

std::string_view CategoryOf(GpuWork work) {
  switch (work) {
    case GpuWork::compute: return "compute";
    case GpuWork::communication: return "communication";
    case GpuWork::copy: return "copy";
    case GpuWork::memset: break;
  }
  return "memset";
}

void WriteRank(TraceStream& out, AlignedJob& job, const Timeline& timeline) {
  const int64_t process = job.Process(timeline);
  WriteTracks(out, job, timeline);
  const auto index_of_timeline = static_cast<size_t>(&timeline - job.incident.timelines.data());
  Lanes& lanes = job.lanes[index_of_timeline];
  const auto slice = [&](int64_t track, std::string_view category, std::string_view name, int64_t start, int64_t end,
                         const std::string& track_name) {
    const int64_t from = job.Time(timeline, start), to = std::max(from, job.Time(timeline, end));
    const int64_t lane = lanes.Take(track, from, to);
    NameLane(out, job, process, track, lane, track_name);
    out.Open('X', process, lane).Text("cat", category).Text("name", name).Micros("ts", from).Micros("dur", to - from);
    out.Close();
  };
  for (const TrainingStep& step : timeline.steps)
    slice(kStepTrack, "step", "step " + std::to_string(step.number), step.start_ns, step.end_ns, "steps");
  CleanNames names(out, timeline.names);
  for (const GpuEvent& event : timeline.gpu) {
    if (!out.ok()) return;
    // Operations that were joined with their peers' are written with them.
    const auto index = static_cast<size_t>(&event - timeline.gpu.data());
    if (job.joined[index_of_timeline][index]) continue;
    slice(StreamTrack(event.stream), CategoryOf(event.work), names.Get(event.name), event.start_ns, event.end_ns,
          StreamName(timeline.streams[event.stream]));
  }
}

void WriteOperation(TraceStream& out, AlignedJob& job, const CollectiveRound& round) {
  int64_t last_start = INT64_MIN;
  for (const RoundMember& member : round.members)
    if (member.start_ns != kNoTime) last_start = std::max(last_start, member.start_ns);
  const std::string name(Name(round.kind));
  std::string args = ",\"args\":{\"seq\":" + std::to_string(round.seq) + ",\"bytes\":" + std::to_string(round.bytes) +
                     ",\"step\":" + std::to_string(round.step) + "}";
  // Where a flow that joins the members is held: in the transfer, or, where clocks left none of it, at its edge.
  struct FlowEnd {
    int64_t process, track, ns;
  };
  std::vector<FlowEnd> ends;
  for (const RoundMember& member : round.members) {
    if (member.start_ns == kNoTime || member.end_ns == kNoTime || member.timeline == kNoIndex) continue;
    const int64_t process = job.Process(job.incident.timelines[member.timeline]);
    // Clocks are never perfect: a member may seem to end before the last one starts.
    const int64_t split = std::clamp(last_start, member.start_ns, std::max(member.start_ns, member.end_ns));
    const int64_t stop = std::max(member.start_ns, member.end_ns);
    const int64_t first_track = GroupTrack(round.group);
    const int64_t track =
        job.lanes[member.timeline].Take(first_track, member.start_ns - job.first_ns, stop - job.first_ns);
    NameLane(out, job, process, first_track, track, GroupName(job.incident, round.group));
    const auto piece = [&](std::string_view what, int64_t start, int64_t end, std::string_view colour) {
      out.Open('X', process, track).Text("cat", what.empty() ? "transfer" : "wait");
      out.Text("name", name + std::string(what)).Text("cname", colour);
      out.Micros("ts", start - job.first_ns).Micros("dur", end - start).Raw(args).Close();
    };
    if (split > member.start_ns) piece(" (wait)", member.start_ns, split, kWaitColour);
    piece("", split, stop, kTransferColour);
    ends.push_back({process, track, split});
  }
  // A chain from each member to the next: every flow has one start and one end.
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const int64_t flow = ++job.next_flow + (job.process_base << 20);
    for (size_t side = 0; side < 2; ++side) {
      const FlowEnd& at = ends[i + side];
      out.Open(side == 0 ? 's' : 'f', at.process, at.track).Text("name", name).Text("cat", "collective");
      out.Number("id", flow).Micros("ts", at.ns - job.first_ns);
      if (side == 1) out.Text("bp", "e");
      out.Close();
    }
  }
}

void MarkJoined(AlignedJob& job) {
  for (const Timeline& timeline : job.incident.timelines) job.joined.emplace_back(timeline.gpu.size());
  for (const CollectiveRound& round : job.rounds)
    for (const RoundMember& member : round.members) {
      if (member.start_ns == kNoTime || member.end_ns == kNoTime || member.timeline == kNoIndex) continue;
      const uint32_t event = job.incident.timelines[member.timeline].collectives[member.collective].gpu_event;
      if (event != kNoIndex) job.joined[member.timeline][event] = true;
    }
}

int64_t FirstMoment(const Incident& incident, const ClockAlignment& clocks) {
  int64_t first = INT64_MAX;
  for (const Timeline& timeline : incident.timelines) {
    const auto consider = [&](int64_t ns) { first = std::min(first, clocks.Align(timeline.rank, ns)); };
    if (timeline.begin_ns != kNoTime) consider(timeline.begin_ns);
    if (!timeline.gpu.empty()) consider(timeline.gpu.front().start_ns);
    if (!timeline.steps.empty()) consider(timeline.steps.front().start_ns);
  }
  return first;
}

}  // namespace

bool ExportPerfetto(std::span<const Incident> jobs, const ByteSink& sink, bool redact) {
  TraceStream out(sink, redact);
  out.Begin();
  int64_t base = 0;
  for (const Incident& incident : jobs) {
    AlignedJob job{incident, MatchCollectives(incident.timelines, incident.groups), {}};
    job.clocks = AlignClocks(job.rounds);
    ApplyAlignment(job.clocks, job.rounds);
    job.process_base = base;
    base += 10000000;
    job.first_ns = FirstMoment(incident, job.clocks);
    MarkJoined(job);
    job.lanes.resize(incident.timelines.size());
    for (const Timeline& timeline : incident.timelines) WriteRank(out, job, timeline);
    for (const CollectiveRound& round : job.rounds) WriteOperation(out, job, round);
    if (!out.ok()) return false;
  }
  return out.End();
}

}  // namespace tacet
