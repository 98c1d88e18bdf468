// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_import.h"
#include "model/assembly/nccl_warning_ranks.h"

namespace tacet {
namespace {

// How often one process may say the same kind of warning before only the number counts.
constexpr uint32_t kWarningsKept = 32;
constexpr size_t kMaxLoose = 4096;
constexpr uint32_t kTransportsTold = 64;  // pairs of ranks, by one process

std::string Capped(std::string_view text) { return std::string(text.substr(0, Event::kMaxText)); }

// "misc/socket.cc:72 (socketProgress)"
CodePlace PlaceOf(std::string_view source) {
  CodePlace place;
  const size_t colon = source.find(':');
  place.file = source.substr(0, colon);
  if (colon == std::string_view::npos) return place;
  source.remove_prefix(colon + 1);
  TakeNumber(source, &place.line);
  if (TakeLiteral(source, " (") && source.ends_with(")")) place.function = source.substr(0, source.size() - 1);
  return place;
}

}  // namespace

// True for the first time that a speaker says this.
bool NcclLogImport::IsNew(EventKind kind, uint32_t speaker, std::string_view subject, std::string_view text) {
  const std::hash<std::string_view> hash;
  return told_.insert(MixHash(MixHash(MixHash(static_cast<uint64_t>(kind), speaker), hash(subject)), hash(text)))
      .second;
}

// NCCL version 2.28.9+cuda13.0
NcclLogImport::Use NcclLogImport::ReadVersion(const NcclLogLine& line, uint32_t speaker) {
  std::string_view version = line.message.substr(std::string_view("NCCL version ").size());
  TakeLiteral(version, ": ");  // RCCL version : 2.22.3-HEAD
  version = TakeWord(version);
  if (version.empty()) return Use::not_understood;
  const std::string maker = line.message.starts_with("RCCL") ? "RCCL " : "";
  const StringId named = out_.strings.Intern(maker + Capped(version));
  if (file_version_ == StringId{}) file_version_ = named;
  if (speaker != kNobody) {
    ProcessOf(line).minor_release = MinorRelease(version);
    ProcessOf(line).version = named;
  }
  if (!IsNew(EventKind::nccl_version, speaker, version, {})) return Use::understood;
  if (Event* event = AddEvent(EventKind::nccl_version, line, speaker)) event->Make<Version>().number = Capped(version);
  return Use::understood;
}

NcclLogImport::Use NcclLogImport::ReadEnvironment(const NcclLogLine& line) {
  NcclSetting setting;
  if (!ParseEnvironment(line.message, &setting)) return Use::not_understood;
  if (setting.name == "NCCL_DEBUG_SUBSYS" && (Contains(setting.value, "COLL") || Contains(setting.value, "ALL")))
    ProcessOf(line).calls_are_logged = true;
  const uint32_t speaker = SpeakerOf(line);
  if (!IsNew(EventKind::environment, speaker, setting.name, setting.value)) return Use::understood;
  if (Event* event = AddEvent(EventKind::environment, line, speaker)) {
    auto& told = event->Make<EnvironmentSetting>();
    told.name = Capped(setting.name);
    told.value = Capped(setting.value);
  }
  return Use::understood;
}

// Using network Socket
NcclLogImport::Use NcclLogImport::ReadNetwork(const NcclLogLine& line) {
  const std::string_view name = Trim(line.message.substr(std::string_view("Using network ").size()));
  const uint32_t speaker = SpeakerOf(line);
  if (name.empty()) return Use::not_understood;
  if (!IsNew(EventKind::network, speaker, name, {})) return Use::understood;
  if (Event* event = AddEvent(EventKind::network, line, speaker)) event->Make<NetworkName>().name = Capped(name);
  return Use::understood;
}

NcclLogImport::Use NcclLogImport::ReadDevices(const NcclLogLine& line, bool are_interfaces) {
  const size_t using_at = line.message.find("Using ");
  if (using_at == std::string_view::npos) return Use::not_understood;
  const std::string_view list = line.message.substr(using_at + 6);
  channels_.TakeDevices(line);
  if (are_interfaces) {
    TellDevices(line, EventKind::interface_used, list,
                line.message.starts_with("Bootstrap") ? DeviceUse::bootstrap : DeviceUse::data);
    return Use::understood;
  }
  const size_t out_of_band = list.find("; OOB ");
  ExcuseUnopened(SpeakerOf(line));
  TellDevices(line, EventKind::device_found, list.substr(0, out_of_band), DeviceUse::data);
  if (out_of_band != std::string_view::npos)
    TellDevices(line, EventKind::interface_used, list.substr(out_of_band + 6), DeviceUse::setup);
  return Use::understood;
}

// An adapter that cannot be opened may belong to another container; this process goes on with those that can.
void NcclLogImport::ExcuseUnopened(uint32_t speaker) {
  std::erase_if(unopened_, [&](uint32_t index) {
    Event& warning = out_.events[index];
    if (warning.speaker != speaker) return false;
    warning.Make<Warning>().role = NcclWarningRole::notice;
    return true;
  });
}

void NcclLogImport::TellDevices(const NcclLogLine& line, EventKind kind, std::string_view list, DeviceUse use) {
  const uint32_t speaker = SpeakerOf(line);
  NcclDevice device;
  while (TakeDevice(list, &device)) {
    if (!IsNew(kind, speaker, device.name, device.address)) continue;
    Event* event = AddEvent(kind, line, speaker);
    if (!event) return;
    auto& told = event->Make<NetworkDevice>();
    told.name = Capped(device.name);
    told.address = Capped(device.address);
    told.use = use;
  }
}

// NET/IB : No device found.
NcclLogImport::Use NcclLogImport::ReadNoDevice(const NcclLogLine& line) {
  std::string_view name = line.message;
  TakeLiteral(name, "NET/");
  name = Trim(TakeUntil(name, ':'));
  const uint32_t speaker = SpeakerOf(line);
  if (!IsNew(EventKind::no_device, speaker, name, {})) return Use::understood;
  if (Event* event = AddEvent(EventKind::no_device, line, speaker)) event->Make<NetworkName>().name = Capped(name);
  return Use::understood;
}

// comm 0x2ad6a510 rank 1 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0
NcclLogImport::Use NcclLogImport::ReadNodes(const NcclLogLine& line) {
  const int64_t nodes = IntAfter(line.message, " nNodes ").value_or(-1);
  const uint32_t speaker = SpeakerOf(line);
  if (nodes < 1 || !IsNew(EventKind::node_count, speaker, std::to_string(nodes), {})) return Use::understood;
  if (Event* event = AddEvent(EventKind::node_count, line, speaker)) {
    event->Make<NodeCount>() = {nodes, IntAfter(line.message, " localRanks ").value_or(-1)};
  }
  return Use::understood;
}

// cudaDriverVersion 12040
NcclLogImport::Use NcclLogImport::ReadDriver(const NcclLogLine& line) {
  std::string_view rest = line.message;
  TakeWord(rest);
  SkipBlanks(rest);
  const std::string_view version = TakeWord(rest);
  const uint32_t speaker = SpeakerOf(line);
  if (version.empty()) return Use::not_understood;
  if (!IsNew(EventKind::driver_version, speaker, version, {})) return Use::understood;
  if (Event* event = AddEvent(EventKind::driver_version, line, speaker))
    event->Make<Version>().number = Capped(version);
  return Use::understood;
}

// NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'
// NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
// NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'      sockets never have it
NcclLogImport::Use NcclLogImport::ReadGpuDirect(const NcclLogLine& line) {
  const auto state = After(line.message, "GPU Direct RDMA ");
  const bool on = state && state->starts_with("Enabled"), off = state && state->starts_with("Disabled");
  if ((!on && !off) || line.message.starts_with("NET/Socket")) return Use::ignored;
  channels_.TakeNetRemark(line);
  const auto quoted = After(*state, "'");
  const std::string_view adapter = quoted ? quoted->substr(0, quoted->find('\'')) : std::string_view();
  const uint32_t speaker = SpeakerOf(line);
  if (!IsNew(EventKind::gpu_direct, speaker, adapter, on ? "on" : "off")) return Use::understood;
  if (Event* event = AddEvent(EventKind::gpu_direct, line, speaker)) {
    event->Make<GpuDirect>() = {Capped(adapter), on};
    event->text = Capped(Trim(line.message));
  }
  return Use::understood;
}

NcclLogImport::Use NcclLogImport::ReadConnection(const NcclLogLine& line) {
  NcclConnectionLines lines;
  if (!ParseConnection(line.message, &lines.connection)) return Use::not_understood;
  lines.channels.Add(lines.connection.channel);
  return TakeConnection(line, lines);
}

// One event for each kind of connection between two ranks, not one for each channel.
NcclLogImport::Use NcclLogImport::TakeConnection(const NcclLogLine& line, const NcclConnectionLines& lines) {
  const NcclConnection& connection = lines.connection;
  Process& process = ProcessOf(line);
  const uint32_t index = process.comm;
  channels_.TakeConnection(line, connection, lines.channels, index);
  // The receiver prints "[receive]", the sender all else.
  if (index == CommunicatorTable::kNone)
    NotePlace(connection.direction == NcclConnection::Direction::receive ? connection.to : connection.from,
              SpeakerOf(line));
  // The channels hold every connection; as events a few of each kind are enough.
  const bool each_pair = process.transports_told < kTransportsTold;
  uint64_t key = MixHash(channels_.ClassOf(connection.via),
                         MixHash(uint64_t{line.writer} << 32 | index, static_cast<uint64_t>(connection.direction)));
  if (each_pair)
    key = MixHash(key, static_cast<uint64_t>(connection.from) << 32 | static_cast<uint32_t>(connection.to));
  const auto [place, is_new] = transport_event_.try_emplace(key, static_cast<uint32_t>(out_.events.size()));
  if (!is_new) {
    if (place->second < out_.events.size()) out_.events[place->second].Make<PairTransport>().lines += lines.lines;
    return Use::understood;
  }
  ++process.transports_told;
  const bool has_comm = index != CommunicatorTable::kNone;
  Event* event = AddEvent(EventKind::transport, line, has_comm ? comms_[index].speaker : SpeakerOf(line));
  if (!event) return Use::understood;
  if (has_comm) event->comm = comms_[index].id != 0 ? comms_[index].id : comms_[index].address;
  event->group_rank = GroupRank{connection.from};
  event->peer_group_rank = GroupRank{connection.to};
  if (!process.tells_init_start && process.loose_transports.size() < kMaxLoose)
    process.loose_transports.emplace_back(line.tid, place->second);
  auto& transport = event->Make<PairTransport>();
  transport.via = Capped(connection.via);
  transport.lines = lines.lines;
  if (connection.direction != NcclConnection::Direction::both)
    transport.direction = connection.direction == NcclConnection::Direction::send ? TransportDirection::send
                                                                                  : TransportDirection::receive;
  return Use::understood;
}

// The first error code of a process is its own; what follows is the way up the call stack. During an abort, and where
// NCCL merely tried a network that is not there, the code means nothing.
NcclLogImport::Use NcclLogImport::ReadPropagation(const NcclLogLine& line) {
  const int64_t code = ParsePropagation(line.message);
  if (code < 0) {
    // "init.cc:1020 Cuda failure 'out of memory'": an error that is not passed on.
    const size_t cuda = line.message.find("Cuda failure ");
    if (cuda == std::string_view::npos) return Use::ignored;
    NcclLogLine failure = line;
    failure.source = Trim(line.message.substr(0, cuda));
    failure.message.remove_prefix(cuda);
    return ReadWarning(failure, true);
  }
  Process& process = ProcessOf(line);
  if (!process.error_told && !process.aborting && process.error_code < 0 && code > 0) {
    process.error_code = code;
    process.error_line = line;
  }
  return Use::understood;
}

void NcclLogImport::SettleError(Process& process, bool harmless) {
  if (process.error_code < 0) return;
  const int64_t code = process.error_code;
  process.error_code = -1;
  if (harmless) return;
  process.error_told = true;
  if (Event* event = AddEvent(EventKind::nccl_error, process.error_line, process.speakers.front(), &late_events_)) {
    static constexpr std::string_view kCodes[] = {"success",
                                                  "unhandled cuda error",
                                                  "unhandled system error",
                                                  "internal error",
                                                  "invalid argument",
                                                  "invalid usage",
                                                  "remote process exited or there was a network error",
                                                  "operation in progress",
                                                  "timeout"};
    auto& error = event->Make<NcclError>();
    error.code = code;
    error.result = code < static_cast<int64_t>(std::size(kCodes)) ? kCodes[code] : "unknown error";
    // misc/socket.cc:564 -> 2: the first file that passes the code on is the one whose call failed.
    const std::string_view place = process.error_line.message.substr(0, process.error_line.message.find(':'));
    error.of_socket = place.ends_with("socket.cc") || place.ends_with("socket.h");
    event->text = Capped(process.error_line.message);
  }
}

static bool IsLastTry(std::string_view message) {
  auto counts = After(message, "retrying (");
  int64_t tried = 0, most = 0;
  return counts && TakeNumber(*counts, &tried) && TakeLiteral(*counts, "/") && TakeNumber(*counts, &most) && most > 0 &&
         tried >= most;
}

// [Proxy Service 2] Failed to execute operation Connect from rank 2, retcode 2: of the process that writes it, while
// the rank behind "from" is whoever asked it.
void NcclLogImport::NoteProxyRank(const NcclLogLine& line, uint32_t speaker) {
  std::string_view rest = line.message;
  int64_t rank = -1;
  if (!TakeLiteral(rest, "[Proxy Service ") || !TakeNumber(rest, &rank) || !rest.starts_with("] Failed to execute"))
    return;
  NotePlace(rank, speaker);
}

void NcclLogImport::NotePlace(int64_t rank, uint32_t speaker) {
  int32_t& known = voices_[speaker].proxy_rank;
  if (rank < 0 || rank > INT32_MAX || (known != -1 && known != rank))
    known = RankEvidence::kSeveral;
  else
    known = static_cast<int32_t>(rank);
}

// The last line of a paste may be cut: "NCCL WARN Fa" below "NCCL WARN Failed to open libibverbs.so[.1]".
static bool IsCutWarning(std::string_view message, const std::vector<Event>& events) {
  constexpr size_t kLongest = 40;
  message = Trim(message);
  return message.size() < kLongest && std::any_of(events.begin(), events.end(), [&](const Event& event) {
           return event.kind == EventKind::nccl_warning && event.text.size() > message.size() &&
                  event.text.starts_with(message);
         });
}

NcclLogImport::Use NcclLogImport::ReadWarning(const NcclLogLine& line, bool at_info_level) {
  const std::string_view message = line.message;
  const NcclWarning* warning = at_info_level ? ClassifyInfoWarning(message) : &ClassifyWarning(message);
  if (!warning) return Use::ignored;
  if (warning->id == "graph-search-failed") ReadGraph(line);  // what newer releases say at INFO
  // Multicast memory in a state that does not allow it: the fabric manager has not set the NVSwitches up.
  // The same call refuses its arguments where the fabric manager was started again under running GPUs.
  if (warning->id == "cuda-failure" && line.source.starts_with("transport/nvls.cc") &&
      (message.starts_with("Cuda failure 401") || message.starts_with("Cuda failure 1 ")))
    if (const NcclWarning* bind = FindNcclWarning("nvls-bind-failed")) warning = bind;
  // Opening a peer's memory is nearly all that CUDA is asked for there; it may have other reasons to refuse.
  const bool perhaps_p2p = warning->id == "cuda-failure" && Contains(line.source, "transport/p2p.cc") &&
                           Contains(message, "'invalid argument'");
  if (perhaps_p2p)
    if (const NcclWarning* peering = FindNcclWarning("p2p-peering-failed")) warning = peering;
  // RAS, NCCL's monitor, has sockets of its own; without them everything else works as before.
  if (line.source.starts_with("ras/") && warning->role == NcclWarningRole::cause && !warning->id.starts_with("ras-"))
    if (const NcclWarning* ras = FindNcclWarning("ras-socket-failed")) warning = ras;
  // "... connect returned No route to host, retrying (34/34) after sleep for 3400 msec": the last try.
  if (warning->id == "connect-retry" && IsLastTry(message))
    if (const NcclWarning* failed = FindNcclWarning("connect-failed")) warning = failed;
  const uint32_t speaker = SpeakerOf(line);
  if (warning->id == "proxy-failed" || warning->id == "proxy-operation-failed") NoteProxyRank(line, speaker);
  Repeated& repeated = warnings_[MixHash(reinterpret_cast<uintptr_t>(warning), speaker)];
  if (repeated.kept > 0 && repeated.first_event < out_.events.size())
    ++out_.events[repeated.first_event].Make<Warning>().times;
  if (repeated.kept >= kWarningsKept) return Use::understood;
  if (warning->id == "other" && IsCutWarning(message, out_.events)) return Use::understood;
  if (repeated.kept++ == 0) repeated.first_event = static_cast<uint32_t>(out_.events.size());
  const NcclWarningNumbers numbers = ParseWarningNumbers(*warning, message);
  Event* event = AddEvent(EventKind::nccl_warning, line, speaker);
  if (!event) return Use::understood;
  event->text = Capped(Trim(message));
  auto& told = event->Make<Warning>();
  told.id = warning->id;
  told.number = perhaps_p2p ? 1 : numbers.value;
  told.role = RoleOf(*warning, numbers, at_info_level);
  told.times = 1;
  if (warning->id == "ib-open-failed" && unopened_.size() < kMaxLoose)
    unopened_.push_back(static_cast<uint32_t>(out_.events.size() - 1));
  told.object = Capped(ParseWarningObject(*warning, message));
  told.place = PlaceOf(line.source);
  if (const auto ranks = ParseWarningRanks(*warning, message)) {
    event->group_rank = GroupRank{ranks->first};
    event->peer_group_rank = GroupRank{ranks->second};
  }
  // "... with datatype ncclBfloat16. NCCL_ALGO was set to tree."
  for (const std::string_view name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (auto value = After(message, std::string(name) + " was set to "); value && warning->id == "no-algorithm") {
      std::string_view word = TakeWord(*value);
      while (word.ends_with('.')) word.remove_suffix(1);
      if (!IsNew(EventKind::environment, speaker, name, word)) continue;
      if (Event* setting = AddEvent(EventKind::environment, line, speaker))
        setting->detail = EnvironmentSetting{std::string(name), Capped(word)};
    }
  const std::string_view fault = at_info_level ? std::string_view() : FatalCudaError(*warning, message);
  if (!fault.empty() && IsNew(EventKind::cuda_error, speaker, fault, {})) {
    if (Event* error = AddEvent(EventKind::cuda_error, line, speaker)) {
      error->Make<CudaError>().words = Capped(fault);
      error->text = Capped(Trim(message));
    }
  }
  if (!IsConnectionLoss(*warning)) return Use::understood;
  const std::string_view peer = ParsePeerAddress(message);
  if (!IsNew(EventKind::connection_lost, speaker, peer, {})) return Use::understood;
  if (Event* lost = AddEvent(EventKind::connection_lost, line, speaker)) {
    lost->Make<LostPeer>().address = Capped(peer);
    lost->text = Capped(Trim(message));
  }
  return Use::understood;
}

}  // namespace tacet
