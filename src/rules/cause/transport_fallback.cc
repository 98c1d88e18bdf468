// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "rules/findings/fallback_findings.h"
#include "rules/unexplained/told_finding.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/topology_words.h"

namespace tacet {

extern const Rule kTransportFallbackRule;
namespace {

// What the set-up lines of each process tell of its network. A process is enough: most logs name no rank.
struct NetworkChoice {
  ToldEvents fast;         // an InfiniBand or RoCE device was found
  ToldEvents none;         // ... was sought and not found
  ToldEvents no_library;   // ... was not sought: libibverbs is not installed
  ToldEvents no_provider;  // libfabric found none
  ToldEvents no_plugin;    // the plugin for the fast network did not start
  ToldEvents no_setup;     // ... since this failed
  ToldEvents mpi;          // Open MPI does without the fast network
  ToldEvents socket;       // sockets were chosen
  ToldEvents beside;       // ... although the same process, or its host, has a fast device
  ToldEvents staged;       // a connection over InfiniBand without GPUDirect
  ToldEvents direct_off;   // NCCL says that GPUDirect is off for an adapter
  bool direct_on = false;
  // Whoever pasted the log says that GPUDirect RDMA is off, or that the hosts have fast adapters.
  const Event *told_staged = nullptr, *told_fast = nullptr;
  const Event* socket_interface = nullptr;  // sockets were set up for data, which NCCL does where nothing else is found
  bool PassedOver() const { return told_fast && told_fast->As<NetworkDevice>().passed_over; }
};

NetworkChoice ReadChoices(const Case& facts) {
  NetworkChoice choice;
  std::set<uint32_t> fast_processes, direct_processes;
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::gpu_direct && event.Means(Meaning::in_prose)) {
      choice.told_staged = choice.told_staged ? choice.told_staged : &event;
      continue;
    }
    if (event.kind == EventKind::interface_used && event.As<NetworkDevice>().use == DeviceUse::data &&
        !choice.socket_interface)
      choice.socket_interface = &event;
    if (event.kind == EventKind::device_found && event.Means(Meaning::in_prose))
      choice.told_fast = &event;
    else if (event.kind == EventKind::device_found)
      TakeTold(facts, event, choice.fast), fast_processes.insert(event.speaker);
    if (event.kind == EventKind::no_device && event.As<NetworkName>().name == "IB") TakeTold(facts, event, choice.none);
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "ibverbs-missing")
      TakeTold(facts, event, choice.no_library);
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "libfabric-no-provider")
      TakeTold(facts, event, choice.no_provider);
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "net-plugin-not-started")
      TakeTold(facts, event, choice.no_plugin);
    if (IsSurvivedSetup(event)) TakeTold(facts, event, choice.no_setup);
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == "mpi-network-unused")
      TakeTold(facts, event, choice.mpi);
    const bool direct = (event.Means(Meaning::over_infiniband) && event.Means(Meaning::gpu_direct)) ||
                        (event.kind == EventKind::gpu_direct && event.As<GpuDirect>().on);
    if (direct) direct_processes.insert(event.speaker);
  }
  for (const Event& event : facts.incident.events) {
    if (event.kind == EventKind::network && event.As<NetworkName>().name == "Socket") {
      TakeTold(facts, event, choice.socket);
      const Process* process = ProcessOf(facts.incident, event);
      const bool on_host = process && !process->host.empty() && choice.fast.hosts.contains(process->host);
      if (fast_processes.contains(event.speaker) || on_host) TakeTold(facts, event, choice.beside);
    }
    // A process with GPUDirect on one adapter may do without it on another that is far from its GPU.
    if (direct_processes.contains(event.speaker)) continue;
    if (event.Means(Meaning::over_infiniband)) TakeTold(facts, event, choice.staged);
    if (event.kind == EventKind::gpu_direct && !event.As<GpuDirect>().on && !event.Means(Meaning::in_prose))
      TakeTold(facts, event, choice.direct_off);
  }
  choice.direct_on = !direct_processes.empty();
  return choice;
}

// The rule's advice, in its order: only what fits is given, without the condition that the list of all steps needs.
enum class Slow : uint8_t { sockets, shared_memory, staged };
std::string Advice(Slow kind) {
  const std::string_view step = kTransportFallbackRule.fix[static_cast<size_t>(kind)];
  const size_t colon = step.find(": ");
  std::string words(colon == std::string_view::npos ? step : step.substr(colon + 2));
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words;
}

std::string UseWords(const ToldEvents& told, std::string_view verb) {
  return TellerWords(told) + " " + std::string(verb) + (TellSeveral(told) ? "" : "s");
}

// Shared memory, or even the network, between GPUs that NVLink joins.
void JudgePairs(const Case& facts, RuleAnswer& answer) {
  const TopologyChecks& checks = facts.analyses.topology_checks;
  const TopologyView& view = facts.analyses.topology;
  if (checks.slow_pairs.empty()) return;
  for (const std::string_view name : {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE"})
    if (checks.Setting(name)) return;  // environment-cripples names the variable
  std::vector<uint32_t> nodes;
  std::set<std::pair<int32_t, int32_t>> pairs;
  std::set<Rank> ranks;
  std::set<std::string> ways;
  for (const SlowPair& pair : checks.slow_pairs) {
    nodes.push_back(pair.node);
    pairs.insert(std::minmax(pair.from, pair.to));
    const Transport& transport = facts.incident.transports[pair.transport];
    ways.insert(transport.kind == TransportKind::shm ? "shared memory" : "the network");
    const RankChannels& record = facts.incident.rank_channels[pair.record];
    if (record.rank.known()) ranks.insert(record.rank);
    for (const CommView& comm : view.comms)
      if (comm.group == record.group)
        for (const int32_t end : {pair.from, pair.to})
          if (const Rank rank = JobRank(facts, comm, end); rank.known()) ranks.insert(rank);
  }
  Finding finding = DegradedFinding("transport-fallback");
  finding.ranks.assign(ranks.begin(), ranks.end());
  finding.headline = RankWords(finding.ranks) + " on " + NodeWords(view, nodes) + " use " +
                     ListWords({ways.begin(), ways.end()}) + " although NVLink connects their GPUs";
  if (pairs.size() > 1) finding.headline += " (" + std::to_string(pairs.size()) + " pairs)";
  finding.evidence.push_back(CitePair(facts, checks.slow_pairs.front(), "a connection that should be P2P"));
  finding.fix = {Advice(Slow::shared_memory)};
  answer.findings.push_back(std::move(finding));
}

// GPUDirect RDMA is possible for this rank as far as the hardware tells.
bool CouldUseGdr(const Case& facts, const SlowPair& pair) {
  const NodeView& node = facts.analyses.topology.nodes[pair.node];
  const GpuView* gpu = node.GpuOf(facts.incident.rank_channels[pair.record].rank);
  if (!node.knows_paths || !gpu) return true;  // nothing speaks against it
  return IsNear(gpu->nearest) || gpu->nearest == NcclPath::pxn;
}

// Host memory is the only way there is, or another cause names what is wrong with the path.
bool StagingIsExplained(const Case& facts) {
  const TopologyChecks& checks = facts.analyses.topology_checks;
  if (checks.staged.empty()) return false;
  return !checks.failed_searches.empty() ||
         std::all_of(checks.staged.begin(), checks.staged.end(),
                     [&](const SlowPair& pair) { return IsFarNode(checks, pair.node) || !CouldUseGdr(facts, pair); });
}

// Connections of a process are told one by one only up to a number; what all of them show is in the topology.
Finding StagedFinding(const Case& facts, const ToldEvents& told) {
  Finding finding = FallbackFinding(told);
  std::set<Rank> ranks(told.ranks.begin(), told.ranks.end());
  for (const SlowPair& pair : facts.analyses.topology_checks.staged)
    if (const Rank rank = facts.incident.rank_channels[pair.record].rank; rank.known()) ranks.insert(rank);
  finding.ranks.assign(ranks.begin(), ranks.end());
  const std::string who =
      finding.ranks.empty() ? UseWords(told, "use") : RankWords(finding.ranks) + (ranks.size() == 1 ? " uses" : " use");
  // The pairs of the topology may use another network: EFA, or that of a plugin.
  finding.headline =
      who + (told ? " InfiniBand" : " the network") + " without GPUDirect RDMA: data is staged through host memory";
  constexpr std::string_view kSays = "the connection lacks /GDRDMA";
  finding.evidence.push_back(told ? CiteEvent(*told.events.front(), std::string(kSays))
                                  : CitePair(facts, facts.analyses.topology_checks.staged.front(), std::string(kSays)));
  return finding;
}

bool IsToldToUseSockets(const Case& facts) {
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    if (event.kind != EventKind::environment || event.Means(Meaning::in_prose)) return false;
    const auto& setting = event.As<EnvironmentSetting>();
    return (setting.name == "NCCL_IB_DISABLE" && setting.value != "0") || setting.name == "NCCL_NET";
  });
}

// libfabric asks each provider several times, and says of each time what it got: where the plugin works in the end, one
// that found nothing means nothing.
bool UsesFabric(const Case& facts) {
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [](const Event& event) {
    return event.kind == EventKind::network && event.As<NetworkName>().name != "Socket" &&
           event.As<NetworkName>().name != "IB";
  });
}

Finding NoProviderFinding(const NetworkChoice& choice) {
  if (const std::string plugin = choice.no_provider ? std::string() : OtherPlugin(choice.no_plugin); !plugin.empty())
    return OtherPluginFinding(plugin, choice.no_plugin, choice.socket);
  const ToldEvents& told = choice.no_provider ? choice.no_provider : choice.no_plugin;
  Finding finding = FallbackFinding(told);
  finding.confidence = choice.socket ? Confidence::certain : Confidence::likely;
  const std::string provider = choice.no_provider ? told.events.front()->As<Warning>().object : std::string();
  finding.headline =
      (choice.no_provider ? "libfabric finds no device" + (provider.empty() ? "" : " of the provider " + provider) +
                                " " + AtTellerWords(told)
                          : "the plugin for libfabric (EFA) could not start " + AtTellerWords(told)) +
      ": NCCL " +
      (choice.socket ? "uses TCP sockets instead" : "cannot use that network there, and uses TCP sockets or fails");
  finding.evidence.push_back(
      CiteEvent(*told.events.front(), choice.no_provider ? "what libfabric answers" : "the plugin gives up"));
  if (choice.socket) finding.evidence.push_back(CiteEvent(*choice.socket.events.front(), "the network NCCL chose"));
  finding.fix = {
      "On that host and inside the container: fi_info -p efa; ls /dev/infiniband. A container needs the devices "
      "(docker "
      "--device /dev/infiniband/uverbs0 for each adapter; in Kubernetes the EFA device plugin and "
      "vpc.amazonaws.com/efa).",
      "Check that the instance has EFA adapters attached, and that libfabric in the image is the one from the EFA "
      "installer."};
  TellFailedSetup(choice.no_setup, finding);
  return finding;
}

// The adapters are there by the word of whoever knows the hosts, and NCCL does not find them.
Finding UnseenAdaptersFinding(const NetworkChoice& choice, bool told_slow) {
  const ToldEvents& none = choice.none ? choice.none : choice.no_library;
  Finding finding = FallbackFinding({});
  // Whoever tells it looks at a job that runs, and knows what it could use.
  finding.status = told_slow ? Status::slow : Status::degraded;
  finding.confidence = Confidence::likely;
  finding.headline = "NCCL uses TCP sockets" +
                     (none ? ": it finds no InfiniBand device (" + TellerWords(none) + ")," : std::string()) +
                     " although the hosts have " + choice.told_fast->As<NetworkDevice>().name +
                     ", as the text around the log says";
  finding.evidence.push_back({choice.told_fast->source, choice.told_fast->text, "said in the text around the log"});
  if (none)
    finding.evidence.push_back(CiteEvent(
        *none.events.front(), choice.none ? "NCCL finds no InfiniBand device" : "libibverbs cannot be opened"));
  if (choice.socket)
    finding.evidence.push_back(CiteEvent(*choice.socket.events.front(), "the network NCCL chose"));
  else if (choice.socket_interface)
    finding.evidence.push_back(CiteEvent(*choice.socket_interface, "NCCL sets up sockets for its data"));
  finding.fix = {
      "On each host, and inside the container where the job runs in one: ibv_devinfo. If it lists the adapters on the "
      "host only, give the container /dev/infiniband and the capability IPC_LOCK, and install rdma-core (libibverbs).",
      "If it lists them in the job, too: check whether a port is ACTIVE, and whether NCCL_IB_HCA or NCCL_IB_DISABLE "
      "exclude them.",
      "Then NCCL_DEBUG=INFO must show 'NET/IB : Using' and 'Using network IB'."};
  return finding;
}

}  // namespace

// Every process that is seen is on one host, by its name: NCCL counts nodes by NCCL_HOSTID, which may be set otherwise.
static bool SeesOneHost(const Incident& incident) {
  return HostsSeen(incident).size() == 1 &&
         std::all_of(incident.process_of.begin(), incident.process_of.end(),
                     [&](const auto& one) { return !incident.processes[one.second].host.empty(); }) &&
         static_cast<int64_t>(incident.process_of.size()) >= incident.world_size;
}

static RuleAnswer JudgeFallback(const Case& facts) {
  RuleAnswer answer;
  JudgePairs(facts, answer);
  const NetworkChoice choice = ReadChoices(facts);
  const bool one_host = NodesOf(facts.incident) == 1;
  Finding finding;
  if (choice.beside) {
    finding = FallbackFinding(choice.beside);
    finding.headline = UseWords(choice.beside, "use") + " TCP sockets although InfiniBand devices exist (" +
                       choice.fast.events.front()->As<NetworkDevice>().name + ")";
    finding.evidence.push_back(CiteEvent(*choice.beside.events.front(), "the network NCCL chose"));
    finding.fix = {Advice(Slow::sockets)};
    finding.evidence.push_back(CiteEvent(*choice.fast.events.front(), "a faster device of the same host"));
  } else if (choice.socket && choice.fast) {
    // Some hosts have the fast network, others do not: the slowest decides for all.
    finding = FallbackFinding(choice.socket);
    // A setting may have forbidden to look for devices: then nobody knows whether the host has some.
    finding.headline =
        (choice.none ? TellerWords(choice.socket) + (TellSeveral(choice.socket) ? " have" : " has") +
                           " no InfiniBand device while other ranks do"
                     : UseWords(choice.socket, "use") + " TCP sockets while other ranks use InfiniBand") +
        ": the slowest path limits all";
    finding.evidence.push_back(CiteEvent(*(choice.none ? choice.none : choice.socket).events.front(),
                                         choice.none ? "no device on this host" : "the network chosen on this host"));
    finding.evidence.push_back(CiteEvent(*choice.fast.events.front(), "a device on another host"));
    finding.fix = {Advice(Slow::sockets)};
  } else if ((choice.staged || !facts.analyses.topology_checks.staged.empty()) && !StagingIsExplained(facts)) {
    finding = StagedFinding(facts, choice.staged);
    finding.fix = {Advice(Slow::staged)};
  } else if (choice.direct_off) {
    const Event& off = *choice.direct_off.events.front();
    const std::string& adapter = off.As<GpuDirect>().adapter;
    finding = FallbackFinding(choice.direct_off);
    finding.confidence = choice.direct_on ? Confidence::certain : Confidence::likely;
    finding.headline = "GPUDirect RDMA is off" + (adapter.empty() ? std::string() : " for " + adapter) + " (" +
                       TellerWords(choice.direct_off) + "): data is staged through host memory" +
                       (choice.direct_on ? ", while other ranks have it" : "");
    finding.evidence.push_back(CiteEvent(off, "NCCL says so when it starts"));
    if (choice.told_staged) {
      finding.evidence.push_back(CiteEvent(*choice.told_staged, "what the text asks about"));
      // Of a part of the job nobody is the odd one.
      if (!choice.direct_on) finding.affected_ranks = std::move(finding.ranks), finding.ranks.clear();
    }
    finding.fix = {Advice(Slow::staged)};
  } else if ((choice.no_provider || choice.no_plugin) && !UsesFabric(facts)) {
    finding = NoProviderFinding(choice);
    // Where all that are seen report it, nobody is the odd one.
    const auto& life = facts.analyses.life.ranks;
    const auto seen = std::count_if(life.begin(), life.end(), [](const auto& one) { return one.second.any(); });
    if (static_cast<int64_t>(finding.ranks.size()) >= seen)
      finding.affected_ranks = std::move(finding.ranks), finding.ranks.clear();
  } else if (choice.told_staged && !choice.direct_on && facts.analyses.end.kind != JobEnding::hung &&
             facts.analyses.end.kind != JobEnding::crashed) {
    finding = FallbackFinding({});
    finding.confidence = Confidence::possible;
    finding.headline =
        "GPUDirect RDMA is not used, as the text around the log says: data is staged through host memory";
    finding.evidence.push_back(CiteEvent(*choice.told_staged, "said in the text around the log"));
    finding.fix = {Advice(Slow::staged)};
  } else if (choice.told_fast && (choice.none || choice.no_library || choice.PassedOver()) && !choice.socket &&
             !one_host && facts.analyses.end.kind != JobEnding::hung && facts.analyses.end.kind != JobEnding::crashed) {
    finding = UnseenAdaptersFinding(choice, FindToldWords(facts.incident, EventKind::told_slow) != nullptr);
  } else if (choice.mpi && !choice.socket) {
    finding = MpiFallbackFinding(choice.mpi);
    if (IsNoteOfNoAdapter(facts, choice.mpi)) finding.severity = Severity::note;
  } else if (choice.socket) {
    // Nothing faster exists here: no fault. Beside a hang or a crash, or a setting that forbade to look, it is no help.
    const JobEnding end = facts.analyses.end.kind;
    const std::vector<const Event*> splitters = HostSplitters(facts.incident);
    if ((!choice.no_library || !splitters.empty()) &&
        (end == JobEnding::hung || end == JobEnding::crashed || IsToldToUseSockets(facts)))
      return answer;
    if (!splitters.empty()) {
      answer.findings.push_back(SplitHostFinding(facts, choice.socket, splitters));
      return answer;
    }
    if (choice.told_fast && !one_host &&
        (choice.none || choice.no_library || choice.PassedOver() ||
         FindToldWords(facts.incident, EventKind::told_slow))) {
      answer.findings.push_back(
          UnseenAdaptersFinding(choice, FindToldWords(facts.incident, EventKind::told_slow) != nullptr));
      return answer;
    }
    finding = FallbackFinding({});
    finding.severity = Severity::note;
    finding.affected_ranks = choice.socket.ranks;
    const bool here = SeesOneHost(facts.incident);
    finding.headline = choice.no_library ? "NCCL uses TCP sockets because libibverbs is not installed: InfiniBand and "
                                           "RoCE devices were not looked for"
                       : one_host ? "all ranks are on one host, so no network is needed between them (NCCL found "
                                    "only TCP sockets)"
                                  : "NCCL uses TCP sockets; no faster network device was found on " +
                                        (choice.socket.hosts.size() == 1 ? *choice.socket.hosts.begin()
                                         : here                          ? "this host"
                                                                         : "these hosts");
    finding.evidence.push_back(CiteEvent(*choice.socket.events.front(), "the network NCCL chose"));
    finding.fix = {"If the hosts have Ethernet alone, nothing is wrong; `ethtool INTERFACE` shows its speed."};
    if (choice.no_library) {
      finding.evidence.push_back(CiteEvent(*choice.no_library.events.front(), "the library cannot be opened"));
      finding.fix = {
          "If the hosts have InfiniBand or RoCE adapters (lspci, ibv_devinfo): install rdma-core "
          "(libibverbs) in the image.",
          "If they have Ethernet alone: nothing is wrong; `ethtool INTERFACE` shows its speed."};
    }
    if (choice.none)
      finding.evidence.push_back(CiteEvent(*choice.none.events.front(), "there is no InfiniBand device"));
    if (!one_host && !choice.no_library && !facts.incident.training.empty())
      answer.open.push_back(
          {std::string(here ? "Does this host have" : "Do these hosts have") +
               " InfiniBand or RoCE adapters that NCCL does not see?",
           "ibv_devinfo (or ibstat) on " + std::string(here ? "the host" : "each host") +
               " and inside the container: a container needs the devices (/dev/infiniband) and libibverbs; then "
               "NCCL_IB_HCA chooses the adapters, and NCCL_DEBUG=INFO shows 'NET/IB : Using'"});
  } else {
    return answer;
  }
  // Ranks of one host do not use the network: what it is matters when the job grows.
  if (one_host && finding.severity != Severity::note) {
    finding.severity = Severity::note;
    finding.affected_ranks = std::move(finding.ranks);
    finding.ranks.clear();
    finding.headline += "; all ranks are on one host, so it costs nothing now";
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

const Rule kTransportFallbackRule = {
    "transport-fallback",
    "NCCL uses a slower transport",
    "NCCL logs (INIT, NET)",
    "NCCL fell back to a slower transport although no setting asks for it: sockets although InfiniBand devices exist, "
    "shared "
    "memory or the network between GPUs that NVLink connects, or InfiniBand without GPUDirect RDMA.",
    "Sockets on a host that has nothing else are normal and only noted, and so is shared memory between GPUs without "
    "NVLink. GPUs that reach their network device only through the CPU cannot use GPUDirect RDMA. A variable that "
    "forces the slow path is a separate cause (environment-cripples).",
    {"Sockets although there is InfiniBand: look for 'NET/IB' and 'NET/Plugin' lines; device permissions in the "
     "container (/dev/infiniband), ulimit -l, NCCL_IB_HCA, a missing plugin on cloud images.",
     "Shared memory although there is NVLink: peer access is off in the container, or blocked by ACS or the IOMMU; "
     "check `nvidia-smi topo -p2p r`, and that the processes see each other's GPUs (CUDA_VISIBLE_DEVICES, one IPC "
     "namespace).",
     "No GDRDMA: load nvidia_peermem or use DMA-BUF, check ACS and that GPU and NIC share a PCIe switch (nvidia-smi "
     "topo -m)."},
    {"Check 'Using network' and '/GDRDMA' in the log of every new image before long jobs."},
    JudgeFallback};

}  // namespace tacet
