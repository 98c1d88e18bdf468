// SPDX-License-Identifier: Apache-2.0
#include "nsys_import.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/assembly/file_rank.h"
#include "nsys_database.h"
#include "nsys_parse.h"
#include "nsys_process.h"

namespace tacet {
namespace {

constexpr size_t kMaxProcesses = 4096;

class NsysImport : public NsysSink {
 public:
  NsysImport(const FileView& file, Fragment& out) : file_(file), out_(out) {}

  void OnSessionStart(int64_t utc_ns) override { session_start_ns_ = utc_ns; }
  void OnHost(std::string_view name) override {
    if (host_.empty()) host_ = name;
  }
  void OnDevice(const NsysDeviceRecord& device) override {
    const auto narrow = [](int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX)); };
    if (devices_.size() < kMaxProcesses)
      devices_.push_back(
          {device.pid,
           narrow(device.gpu_id),
           {narrow(device.cuda_id), std::string(device.name), device.memory_bytes, narrow(device.compute_major),
            narrow(device.compute_minor), narrow(device.multiprocessors)}});
  }
  void OnRuntime(const NsysRuntimeRecord& call) override {
    if (NsysProcess* process = ProcessOf(call.pid)) process->TakeRuntime(call);
  }
  void OnGpu(const NsysGpuRecord& work) override {
    if (NsysProcess* process = ProcessOf(work.pid)) process->TakeGpu(work);
  }
  void OnRange(const NsysRangeRecord& range) override {
    if (NsysProcess* process = ProcessOf(range.pid)) process->TakeRange(range);
  }

  void Finish(const NsysReading& reading) {
    std::erase_if(processes_, [](const auto& entry) { return !entry.second.used_device(); });
    std::vector<Speaker> speakers;
    for (auto& [pid, process] : processes_) speakers.push_back(Identify(pid, process));
    AssumeRanks(speakers);
    size_t index = 0;
    for (auto& [pid, process] : processes_) AddTimeline(pid, process, std::move(speakers[index++]));
    NoteWhatIsMissing(reading);
  }

 private:
  struct DeviceOfProcess {
    int64_t pid = -1;
    int32_t gpu = -1;
    DeviceProperties properties;
  };

  NsysProcess* ProcessOf(int64_t pid) {
    if (processes_.size() >= kMaxProcesses && !processes_.contains(pid)) return nullptr;
    return &processes_[pid];
  }

  Speaker Identify(int64_t pid, const NsysProcess& process) {
    Speaker speaker;
    speaker.host = host_;
    speaker.pid = pid;
    if (const NsysCommunicator* largest = process.Largest()) {
      speaker.rank = {largest->rank};
      speaker.rank_certainty = Certainty::assumed;
      speaker.world_size = largest->nranks;
    }
    return speaker;
  }

  // An export does not say its ranks. In this order: the rank in the largest communicator whose making was recorded;
  // the file's name, for a file of one process; the device, for several processes of one host with a device each.
  void AssumeRanks(std::vector<Speaker>& speakers) {
    if (speakers.empty()) return;
    std::set<int32_t> ranks, devices;
    int64_t world = -1;
    for (const Speaker& speaker : speakers) world = std::max(world, speaker.world_size);
    bool told = true;
    for (const Speaker& speaker : speakers)
      told &= speaker.rank.known() && speaker.world_size == world && ranks.insert(speaker.rank.value).second;
    if (told) return NoteRanks("the largest NCCL communicator that was made while it was recorded");
    for (Speaker& speaker : speakers)
      speaker.rank = {}, speaker.rank_certainty = Certainty::none, speaker.world_size = -1;
    if (const auto named = RankFromPath(file_.path); named && speakers.size() == 1) {
      speakers[0].rank = *named;
      speakers[0].rank_certainty = Certainty::assumed;
      return NoteRanks("the file name");
    }
    if (speakers.size() < 2) return;
    std::vector<int32_t> device_of;
    for (auto& [pid, process] : processes_) device_of.push_back(GpuOf(pid, process.MainDevice()));
    for (const int32_t device : device_of)
      if (device < 0 || !devices.insert(device).second) return;
    for (size_t i = 0; i < speakers.size(); ++i) {
      speakers[i].rank = {device_of[i]};
      speakers[i].rank_certainty = Certainty::assumed;
    }
    NoteRanks("the device numbers");
  }

  void NoteRanks(const std::string& source) {
    out_.Note(DiagnosticSeverity::note, "rank-assumed",
              "an Nsight export does not state its ranks; they are taken from " + source);
  }

  // Processes number the devices they see; the machine's own number tells them apart.
  int32_t GpuOf(int64_t pid, int32_t cuda_device) const {
    for (const DeviceOfProcess& device : devices_)
      if (device.pid == pid && device.properties.id == cuda_device) return device.gpu;
    return cuda_device;
  }

  std::unordered_map<uint64_t, GroupIndex> AddGroups(const NsysProcess& process, Rank rank) {
    std::unordered_map<uint64_t, GroupIndex> group_of;
    for (const NsysCommunicator& one : process.communicators()) {
      const auto [found, added] = groups_.try_emplace(one.id, static_cast<GroupIndex>(out_.groups.size()));
      if (added) {
        out_.groups.emplace_back();
        out_.groups.back().comm_id = one.id;
        out_.groups.back().hidden_id = true;
      }
      Group& group = out_.groups[static_cast<uint32_t>(found->second)];
      group_of.emplace(one.id, found->second);
      if (one.parent != 0) group.parent_comm_id = one.parent;
      group.size = std::max(group.size, one.nranks);
      if (one.rank >= 0 && one.rank < one.nranks && rank.known()) group.places.push_back({{one.rank}, rank});
    }
    return group_of;
  }

  void AddTimeline(int64_t pid, NsysProcess& process, Speaker speaker) {
    graphs_ += process.graphs();
    dropped_ += process.dropped();
    Timeline timeline = process.Finish(session_start_ns_, AddGroups(process, speaker.rank));
    for (const DeviceOfProcess& device : devices_)
      if (device.pid == pid || device.pid < 0) timeline.devices.push_back(device.properties);
    speaker.device = GpuOf(pid, timeline.MainDevice());
    timeline.speaker = static_cast<uint32_t>(out_.speakers.size());
    out_.speakers.push_back(std::move(speaker));
    out_.timelines.push_back(std::move(timeline));
  }

  void NoteWhatIsMissing(const NsysReading& reading) {
    if (out_.timelines.empty())
      out_.Note(DiagnosticSeverity::note, "no-gpu-events", "the export has no GPU work", {},
                "record with nsys profile --trace=cuda,nvtx");
    if (!reading.has_session_start)
      out_.Note(DiagnosticSeverity::note, "no-wall-clock",
                "the export does not say when its session began; times are relative to its beginning");
    if (graphs_ > 0)
      out_.Note(DiagnosticSeverity::note, "graphs-as-a-whole",
                std::to_string(graphs_) +
                    " launches of CUDA graphs are recorded as a whole: their communication counts as compute",
                {}, "record with --cuda-graph-trace=node");
    if (reading.odd_rows > 0)
      out_.Note(DiagnosticSeverity::note, "odd-times",
                std::to_string(reading.odd_rows) + " rows that end before they start were ignored");
    if (dropped_ > 0)
      out_.Note(DiagnosticSeverity::warning, "too-many-events", std::to_string(dropped_) + " GPU events were not kept");
  }

  const FileView& file_;
  Fragment& out_;
  int64_t session_start_ns_ = 0;
  std::string host_;
  std::vector<DeviceOfProcess> devices_;
  std::map<int64_t, NsysProcess> processes_;  // by process id
  std::unordered_map<uint64_t, GroupIndex> groups_;
  uint64_t graphs_ = 0, dropped_ = 0;
};

}  // namespace

void ReadNsys(const FileView& file, Fragment& out) {
  out.bytes = {file.bytes.size(), 0, 0, file.bytes.size()};
  auto database = NsysDatabase::Open(file.bytes, file.mapped);
  if (!database) {
    out.Note(DiagnosticSeverity::warning, "unreadable", database.error().message, {}, database.error().hint);
    return;
  }
  if (!database->HasTable("StringIds") && !database->HasTable("CUPTI_ACTIVITY_KIND_KERNEL")) {
    out.Note(DiagnosticSeverity::note, "unknown-format", "a SQLite database, but not an Nsight Systems export");
    return;
  }
  NsysImport import(file, out);
  const NsysReading reading = ParseNsys(*database, import);
  import.Finish(reading);
  const bool damaged = file.cut || !database->problem().empty();
  out.bytes.understood = std::min<uint64_t>(reading.value_bytes, file.bytes.size());
  const uint64_t rest = file.bytes.size() - out.bytes.understood;
  out.bytes.ignored = damaged ? 0 : rest;
  out.bytes.not_understood = damaged ? rest : 0;
  if (!damaged) return;
  for (Timeline& timeline : out.timelines) timeline.cut = true;
  out.Note(DiagnosticSeverity::warning, "truncated",
           "the database is damaged or cut; what came before was read" +
               (database->problem().empty() ? "" : " (" + database->problem() + ")"),
           {}, "export it again: nsys export --type sqlite report.nsys-rep");
}

}  // namespace tacet
