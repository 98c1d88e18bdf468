// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>

#include "evidence/nccl_log/nccl_log_hardware.h"
#include "evidence/nccl_log/nccl_log_identity.h"
#include "evidence/nccl_log/nccl_log_import.h"
#include "model/assembly/file_rank.h"

namespace tacet {
namespace {

bool HasRankWord(std::string_view path) {
  constexpr std::string_view kWord = "rank";
  const auto same = [](char a, char b) { return (a | 0x20) == b; };
  return std::search(path.begin(), path.end(), kWord.begin(), kWord.end(), same) != path.end();
}

// NCCL writes whole lines. A last one without its end, below another of NCCL's, tells that the file was cut; below the
// job's own output it may be a progress bar.
bool EndsInsideALine(std::string_view bytes) {
  if (bytes.empty() || bytes.back() == '\n') return false;
  const size_t end = bytes.rfind('\n');
  if (end == std::string_view::npos || end == 0) return false;
  const size_t before = bytes.rfind('\n', end - 1);
  const std::string_view line = bytes.substr(before == std::string_view::npos ? 0 : before + 1, end);
  return line.substr(0, line.find('\n')).find(" NCCL ") != std::string_view::npos;
}

bool HasPlace(const Communicator& comm) { return comm.init_seen || comm.assumed || comm.placed; }

}  // namespace

void NcclLogImport::Finish() {
  for (Process& process : processes_) SettleError(process, false);
  for (Communicator& comm : comms_.all()) GroupOf(comm);
  SettleKernelTraces();
  AssumePlaces();
  NameLargestCommunicators();
  SettleRanks();
  FillGroups();
  FinishSetups();
  FinishChannels();
  TellFinishedProcesses();
  MakeStreams();
  MergeLateEvents();
  if (events_left_out_ > 0)
    out_.Note(DiagnosticSeverity::warning, "too-many-events",
              std::to_string(events_left_out_) + " more events were ignored: the log has too many");
}

// A log of calls alone (NCCL_DEBUG_SUBSYS=COLL) names neither ranks nor ids. Where every process of one host has one
// communicator, with as many ranks as there are processes, and each uses another device, it is the same for all, and
// the device is the place in it.
void NcclLogImport::AssumePlaces() {
  std::vector<Communicator>& all = comms_.all();
  if (all.size() < 2 || all.size() != processes_.size()) return;
  const auto size = static_cast<int32_t>(all.size());
  std::vector<bool> taken(all.size(), false);
  for (const Communicator& comm : all) {
    if (comm.init_seen || comm.id != 0 || comm.nranks != size || comm.device < 0 || comm.device >= size) return;
    if (taken[static_cast<size_t>(comm.device)]) return;
    if (writers_.all()[comm.writer].host != writers_.all()[all.front().writer].host) return;
    taken[static_cast<size_t>(comm.device)] = true;
  }
  for (Communicator& comm : all) {
    comm.rank = comm.device;
    comm.assumed = true;
  }
}

// Releases before 2.16 print no id. All ranks join the communicators of the whole job, and in one order, so that the
// n-th of the largest size is the same for all; of smaller ones nothing can be said.
void NcclLogImport::NameLargestCommunicators() {
  int32_t largest = 1;
  for (const Communicator& comm : comms_.all()) largest = std::max(largest, HasPlace(comm) ? comm.nranks : 1);
  std::vector<uint32_t> seen(out_.speakers.size(), 0);
  for (Communicator& comm : comms_.all()) {
    if (!HasPlace(comm) || comm.nranks != largest || largest <= 1) continue;
    const uint32_t ordinal = seen[comm.speaker]++;
    if (comm.id != 0 || comm.parent_id != 0) continue;
    comm.id = MixHash(MixHash(0x6e63636c, static_cast<uint64_t>(largest)), ordinal);
    Group& group = out_.groups[static_cast<uint32_t>(comm.group)];
    group.comm_id = comm.id;
    group.hidden_id = true;
  }
}

void NcclLogImport::SettleRanks() {
  std::vector<RankEvidence> evidence(out_.speakers.size());
  int32_t largest = -1;
  for (const Communicator& comm : comms_.all()) {
    largest = std::max(largest, comm.nranks);
    RankEvidence& own = evidence[comm.speaker];
    if (!HasPlace(comm) || comm.nranks < own.comm_size) continue;
    // Two places in communicators of this size: they are parts of the job, and neither place is the global rank.
    const bool differs = comm.nranks == own.comm_size && comm.rank != own.comm_rank;
    own.comm_rank = differs ? RankEvidence::kSeveral : comm.rank;
    own.comm_size = comm.nranks;
  }
  const bool assumed =
      std::any_of(comms_.all().begin(), comms_.all().end(), [](const Communicator& comm) { return comm.assumed; });
  std::map<int32_t, int> processes_with_label;
  for (const NcclWriter& writer : writers_.all())
    if (writer.label.kind == LauncherLabel::Kind::task) ++processes_with_label[writer.label.value];
  std::map<int32_t, int> proxies;  // of one number there is one process, unless they are of several communicators
  for (const Voice& voice : voices_) ++proxies[voice.proxy_rank];
  for (uint32_t s = 0; s < evidence.size(); ++s) {
    const NcclWriter& writer = writers_.all()[voices_[s].process];
    const bool only_rank = processes_[voices_[s].process].speakers.size() == 1;
    RankEvidence& own = evidence[s];
    // A rank is never smaller than its place on its node.
    if (const int32_t rank = voices_[s].proxy_rank;
        only_rank && rank >= writer.device && rank >= 0 && proxies[rank] == 1)
      own.by_proxy = Rank{rank};
    own.largest_size = largest;
    if (evidence.size() == 1) {
      own.in_file_name = RankFromPath(file_.path);
      own.name_says_rank = HasRankWord(file_.path);
    }
    if (only_rank && !writer.label_changed && writer.label.value >= 0) {
      if (writer.label.kind == LauncherLabel::Kind::rank) own.stated_by_label = Rank{writer.label.value};
      // A rank is never smaller than its place on its node: "0: node1:1201:1833 [3]" is a task that starts several.
      const bool may_be_rank = writer.device <= writer.label.value;
      if (writer.label.kind == LauncherLabel::Kind::task && processes_with_label[writer.label.value] == 1 &&
          may_be_rank)
        own.task_number = Rank{writer.label.value};
    }
    const RankVerdict verdict = ResolveRank(own);
    Speaker& speaker = out_.speakers[s];
    speaker.rank = verdict.rank;
    speaker.rank_certainty = assumed ? std::min(verdict.certainty, Certainty::assumed) : verdict.certainty;
    speaker.world_size = verdict.world_size;
    if (verdict.refused)
      out_.Note(DiagnosticSeverity::warning, "rank-disagrees",
                "taken as rank " + std::to_string(verdict.rank.value) + ", but the " +
                    (verdict.refused->value == own.comm_rank ? "largest communicator in it says "
                                                             : "name or launcher says ") +
                    std::to_string(verdict.refused->value),
                {},
                "name the files by global rank, or capture the line that initializes the job's largest communicator");
  }
  PlaceLastProcess(largest);
}

// As many processes as the job has ranks, and all but one are known: that one is the rank that is left. One that was
// started again would be of the same host and device as another.
void NcclLogImport::PlaceLastProcess(int32_t world) {
  std::vector<bool> taken(out_.speakers.size(), false);
  uint32_t left = kNobody;
  if (world < 2 || static_cast<size_t>(world) != out_.speakers.size()) return;
  for (uint32_t s = 0; s < out_.speakers.size(); ++s) {
    const Rank rank = out_.speakers[s].rank;
    if (!rank.known() && left != kNobody) return;
    if (!rank.known()) left = s;
    if (!rank.known()) continue;
    if (rank.value >= world || taken[static_cast<size_t>(rank.value)]) return;
    taken[static_cast<size_t>(rank.value)] = true;
  }
  if (left == kNobody || out_.speakers[left].host.empty()) return;
  const auto writer = [&](uint32_t speaker) -> const NcclWriter& { return writers_.all()[voices_[speaker].process]; };
  for (uint32_t s = 0; s < out_.speakers.size(); ++s)
    if (s != left && writer(s).host == writer(left).host && writer(s).device == writer(left).device) return;
  const auto rank = std::find(taken.begin(), taken.end(), false) - taken.begin();
  out_.speakers[left].rank = Rank{static_cast<int32_t>(rank)};
  out_.speakers[left].rank_certainty = Certainty::assumed;
}

void NcclLogImport::FinishChannels() {
  std::vector<uint32_t> speakers;
  for (const Process& process : processes_) speakers.push_back(process.speakers.front());
  channels_.Finish(speakers);
  AddHardwareOfSetups(out_);
}

void NcclLogImport::FillGroups() {
  for (const Communicator& comm : comms_.all()) {
    Group& group = out_.groups[static_cast<uint32_t>(comm.group)];
    if (group.size < 0) group.size = comm.nranks;
    const Rank rank = out_.speakers[comm.speaker].rank;
    if (comm.rank < 0 || comm.rank >= group.size || !rank.known()) continue;
    group.places.push_back({{comm.rank}, rank});
  }
}

// A process whose communicators were all destroyed in order has ended well. An abort is no such end.
void NcclLogImport::TellFinishedProcesses() {
  std::vector<uint32_t> open(out_.speakers.size(), 0), ended(out_.speakers.size(), 0);
  for (const Communicator& comm : comms_.all()) {
    const bool well = comm.destroyed && !comm.aborted;
    if (comm.completed && well) ++ended[comm.speaker];
    if (!well && (comm.init_seen || comm.issued[0] + comm.issued[1] > 0)) ++open[comm.speaker];
  }
  for (uint32_t s = 0; s < ended.size(); ++s) {
    if (ended[s] == 0 || open[s] > 0) continue;
    NcclLogLine line;
    line.wall_ns = voices_[s].last_end_wall_ns;
    Event* event = AddEvent(EventKind::process_finished, line, s, &late_events_);
    if (!event) return;
    event->source = voices_[s].last_end;
    event->Make<ProcessFinish>().how = "communicators destroyed";
  }
}

void NcclLogImport::MakeStreams() {
  std::vector<bool> whole(out_.speakers.size(), true);
  for (const Communicator& comm : comms_.all()) {
    const bool used = comm.issued[0] + comm.issued[1] + comm.api_issued[0] + comm.api_issued[1] > 0;
    if (used && !comm.init_seen) whole[comm.speaker] = false;
  }
  // The processes of one file share their settings: where one logs its calls, another's silence is its own.
  const bool calls_are_logged = std::any_of(processes_.begin(), processes_.end(),
                                            [](const Process& process) { return process.calls_are_logged; });
  for (uint32_t s = 0; s < voices_.size(); ++s) {
    Voice& voice = voices_[s];
    const Process& process = processes_[voice.process];
    CallStream stream;
    stream.speaker = s;
    stream.source = CallSource::nccl_log;
    stream.calls = std::move(voice.calls.empty() ? voice.api_calls : voice.calls);
    stream.from_start = whole[s];
    stream.knows_finish = voice.tells_finish;
    stream.cut = file_.cut || EndsInsideALine(file_.bytes);
    stream.stub = stream.calls.empty() && !calls_are_logged;
    stream.captured_wall_ns = process.last_wall_ns;
    out_.streams.push_back(std::move(stream));
  }
}

// Errors and ends are told once it is clear what they were; in the file's order they stand earlier.
void NcclLogImport::MergeLateEvents() {
  const auto earlier = [](const Event& a, const Event& b) { return a.source.offset < b.source.offset; };
  if (!late_events_.empty()) {
    std::stable_sort(late_events_.begin(), late_events_.end(), earlier);
    std::vector<Event> merged;
    merged.reserve(out_.events.size() + late_events_.size());
    std::merge(std::make_move_iterator(out_.events.begin()), std::make_move_iterator(out_.events.end()),
               std::make_move_iterator(late_events_.begin()), std::make_move_iterator(late_events_.end()),
               std::back_inserter(merged), earlier);
    out_.events = std::move(merged);
  }
  if (out_.speakers.size() != 1) return;
  for (Event& event : out_.events)
    if (event.kind == EventKind::nccl_version && event.speaker == kNobody) event.speaker = 0;
}

}  // namespace tacet
